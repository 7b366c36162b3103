// Every kernel of the device through the plugin, compared with the reference kernels of the CPU.

#include "support/kernels.h"

#include <doctest/doctest.h>

#include <ostream>
#include <set>
#include <string_view>

#include "backend/cuda/kernel_table.h"
#include "backend/cuda/plugin.h"
#include "cuda_run/device.h"
#include "graph/ops/ops.h"
#include "support/paths.h"

namespace halfstep::train {
namespace {

using backend::Args;
using backend::Buffer;
using backend::Memory;

/// Copies of tensors in the device's memory.
class DeviceCopies {
 public:
  explicit DeviceCopies(std::span<const TensorView> tensors) {
    Memory& memory = *emulated().memory;
    for (const TensorView& tensor : tensors) {
      buffers_.emplace_back(emulated().memory, tensor.bytes());
      memory.upload(tensor.data, buffers_.back().data(), tensor.bytes());
      views.push_back({tensor.dtype, tensor.shape, buffers_.back().data()});
    }
  }

  void fetch(std::size_t i, const TensorView& to) const {
    emulated().memory->download(views[i].data, to.data, to.bytes());
  }

  std::vector<TensorView> views;

 private:
  std::vector<Buffer> buffers_;
};

bool aliases(const backend::Kernel& row) { return graph::op_table().find(row.op)->aliases; }

/// A launch of the device on host memory: inputs are copied to the device, writable tensors back.
backend::Prepared prepare_on_device(const backend::NodeView& node, const backend::Capabilities&) {
  const backend::Choice choice = backend::choose(emulated(), node);
  auto prepared = std::make_shared<backend::Prepared>(emulated().prepare(*choice.kernel, node));
  std::vector<bool> variable;
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    variable.push_back(node.input(i).dtype == DType::resource);
  }
  return backend::launch([prepared, variable](const Args& args) {
    const DeviceCopies in(args.in), out(args.out);
    const Buffer workspace(emulated().memory, prepared->workspace_bytes);
    prepared->launch->run({in.views, out.views, workspace.data()});
    for (std::size_t i = 0; i < args.out.size(); ++i) out.fetch(i, args.out[i]);
    for (std::size_t i = 0; i < variable.size(); ++i) {
      if (variable[i]) in.fetch(i, args.in[i]);
    }
  });
}

}  // namespace

TEST_CASE("device: each row gives what the reference gives" * doctest::test_suite("slow")) {
  std::vector<testing::OpCase> cases = testing::op_cases();
  for (const auto& family : {testing::more_conv_cases(),
                             testing::more_pool_cases(),
                             testing::more_norm_cases(),
                             testing::more_update_cases()}) {
    cases.insert(cases.end(), family.begin(), family.end());
  }
  // Sums of huge numbers leave float32 before they cancel; the reference sums in double.
  std::erase_if(cases, [](const testing::OpCase& c) { return c.name == "MatMul/special"; });
  std::set<std::string_view> among_ranks;
  const std::vector<graph::OpDef> collective = graph::ops::collective_ops();
  for (const graph::OpDef& op : collective) among_ranks.insert(op.name);
  for (backend::Kernel row : backend::cuda::kernel_table()) {
    // Products that share a mask are tested in pairs (epilogues_test.cc), sums over ranks with
    // several of them (ranks_test.cc).
    if (aliases(row) || row.op == "FusedMatMul" || among_ranks.contains(row.op)) continue;
    CAPTURE(row.op);
    row.prepare = prepare_on_device;
    CHECK(testing::check_against_reference(row, emulated().capabilities, cases) > 0);
  }
}

TEST_CASE("device: the plugin has each row, and no others") {
  const auto opened = backend::cuda::open_plugin({test::emulated_plugin().string(), {}});
  const auto& plugin = *std::get<backend::cuda::OpenedPlugin>(opened).plugin;
  std::set<std::string_view> wanted;
  for (const backend::Kernel& row : backend::cuda::kernel_table()) {
    if (!aliases(row)) wanted.insert(row.name);
  }
  const std::vector<std::string_view> found = plugin.kernels();
  CHECK(std::set(found.begin(), found.end()) == wanted);
}

TEST_CASE("device: captured graphs and events may outlive it") {
  backend::Backend device = open_emulated();
  const std::unique_ptr<backend::CapturedGraph> captured = device.device->capture([] {});
  const std::unique_ptr<backend::Event> event = device.device->make_event();
  event->record();
  device = {};
  CHECK(captured->nodes() == 0);
}

TEST_CASE("device: memory is given up without an error where the device refuses to release it") {
  const backend::Backend device = open_emulated();
  Buffer buffer(device.memory, 1000);
  CHECK_NOTHROW(device.device->capture([&] { buffer = {}; }));
  CHECK_THROWS_AS(device.device->capture([&] { buffer = Buffer(device.memory, 1000); }),
                  InternalError);
}

TEST_CASE("device: without the other ranks it computes, and launches no step captured with them") {
  /// One rank, which finds that another one is lost when it waits.
  class Alone final : public comm::Communicator {
   public:
    int rank() const override { return 0; }
    int size() const override { return 1; }
    const comm::Transport& transport() const override { return transport_; }
    comm::Traffic traffic() const override { return {}; }
    void set_timeout(double) override {}
    std::unique_ptr<comm::Collective> collective(std::int64_t,
                                                 DType,
                                                 comm::CollectiveKind) override {
      return nullptr;
    }
    void wait(const std::byte*) override {}
    void wait_for(const std::function<bool()>&) override { throw comm::RankLost({1}, "lost", ""); }
    std::vector<std::string> gather(std::string_view text) override { return {std::string(text)}; }
    void shift(const std::byte*, std::byte*, std::size_t) override {}
    void close() override {}

   private:
    comm::Transport transport_;
  };
  const backend::Backend device = open_emulated();
  auto& gpu = dynamic_cast<backend::cuda::Gpu&>(*device.memory);
  gpu.join(gpu.new_rank_id(), std::make_shared<Alone>());
  const std::unique_ptr<backend::CapturedGraph> captured = device.device->capture([] {});
  CHECK_NOTHROW(captured->launch());
  CHECK_THROWS_AS(device.device->synchronize(), comm::RankLost);
  CHECK_NOTHROW(device.device->synchronize());
  CHECK_THROWS_AS(captured->launch(), InternalError);
}

TEST_CASE("device: the setting of float32_math reaches each kernel that multiplies matrices") {
  for (const bool tf32 : {false, true}) {
    backend::cuda::DeviceOptions options;
    options.tf32 = tf32;
    const backend::Backend device = open_emulated(options);
    for (const backend::Kernel& row : backend::cuda::kernel_table()) {
      if (!row.name.starts_with("cublaslt/") || row.op == "FusedMatMul") continue;
      int prepared = 0;
      for (const testing::OpCase& c : testing::op_cases()) {
        if (c.op != row.op || c.dtypes) continue;
        const testing::BuiltCase built = testing::build(c, DType::float32);
        const backend::NodeView node{built.graph, built.graph.node(built.node)};
        const auto algorithm = device.prepare(row, node).launch->algorithm();
        if (!algorithm) continue;  // nothing is multiplied
        CAPTURE(c.name);
        CHECK((algorithm->text.find("tf32 allowed") != std::string::npos) == tf32);
        ++prepared;
      }
      CHECK(prepared > 0);
    }
  }
}

TEST_CASE("device: memory that is not there is told in needed and free bytes") {
  backend::Memory& memory = *emulated().memory;
  try {
    memory.allocate(std::size_t{1} << 50);
    FAIL("a pebibyte");
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::memory);
    CHECK(std::string_view(error.what()).find("1073741824.0 MiB are needed") !=
          std::string_view::npos);
    CHECK(std::string_view(error.what()).find("MiB are free") != std::string_view::npos);
  }
  const Buffer usable(emulated().memory, 1000);
  CHECK(usable.data() != nullptr);
}

}  // namespace halfstep::train
