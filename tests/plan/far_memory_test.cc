#include <doctest/doctest.h>

#include <cstring>
#include <ostream>
#include <set>
#include <string_view>

#include "plan/steps.h"

namespace halfstep::plan {
namespace {

/// Memory that only launches access: the host sees it through copies alone, and so does
/// the test.
class FarMemory final : public backend::Memory {
 public:
  ~FarMemory() override { CHECK(blocks_.empty()); }

  std::byte* allocate(std::size_t bytes) override {
    std::byte* block = backend::host_memory()->allocate(bytes);
    if (block != nullptr) blocks_.emplace(block, bytes);
    return block;
  }
  void release(std::byte* address) noexcept override {
    blocks_.erase({address, size(address)});
    backend::host_memory()->release(address);
  }
  std::size_t alignment() const override { return backend::host_memory()->alignment(); }
  std::uint64_t available_bytes() const override {
    return backend::host_memory()->available_bytes();
  }
  bool is_host() const override { return false; }
  void upload(const void* host, void* address, std::size_t bytes) override {
    CHECK(holds(address));
    CHECK_FALSE(holds(host));
    copy_bytes(host, address, bytes);
  }
  void download(const void* address, void* host, std::size_t bytes) override {
    CHECK(holds(address));
    CHECK_FALSE(holds(host));
    copy_bytes(address, host, bytes);
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    CHECK(holds(from));
    CHECK(holds(to));
    copy_bytes(from, to, bytes);
  }
  std::unique_ptr<backend::Staging> staging(std::size_t bytes) override {
    return backend::pageable_staging(*this, bytes);
  }

  bool holds(const void* address) const {
    for (const auto& [block, bytes] : blocks_) {
      if (address >= block && address < block + bytes) return true;
    }
    return false;
  }

 private:
  std::size_t size(const std::byte* address) const {
    for (const auto& [block, bytes] : blocks_) {
      if (block == address) return bytes;
    }
    return 0;
  }
  static void copy_bytes(const void* from, void* to, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }

  std::set<std::pair<std::byte*, std::size_t>> blocks_;
};

struct TrainingSteps {
  explicit TrainingSteps(const backend::Backend& backend, std::string_view policy)
      : graph(step_graph(policy, 12)),
        state(graph, 7, backend.memory),
        plan(compile(graph, backend)),
        arena(backend.memory) {
    arena.reserve(plan.arena_bytes());
    plan.bind(state, arena);
  }

  void run(std::uint32_t steps) {
    for (std::uint32_t seed = 1; seed <= steps; ++seed) {
      feed(plan, seed);
      plan.run();
    }
  }

  graph::Graph graph;
  State state;
  Plan plan;
  Arena arena;
};

backend::Backend far_cpu() {
  backend::Backend backend = cpu();
  backend.memory = std::make_shared<FarMemory>();
  return backend;
}

}  // namespace

TEST_CASE("memory: a backend with memory of its own computes the bits of the host") {
  for (const std::string_view policy : {"float32", "mixed_float16"}) {
    CAPTURE(policy);
    TrainingSteps near(cpu(), policy);
    TrainingSteps far(far_cpu(), policy);
    CHECK(near.state.full_hash() == far.state.full_hash());
    near.run(3);
    far.run(3);
    CHECK(near.plan.read<float>("loss") == far.plan.read<float>("loss"));
    CHECK(near.state.full_hash() == far.state.full_hash());
  }
}

TEST_CASE(
    "memory: the host side of the variables changes when it is asked to, and so does the far one") {
  TrainingSteps far(far_cpu(), "float32");
  const Tensor& host = far.state.tensor("dense/bias");
  const Tensor before = host.clone();
  far.run(1);
  CHECK(std::memcmp(host.view().data, before.view().data, host.bytes()) == 0);
  far.state.to_host();
  CHECK(std::memcmp(host.view().data, before.view().data, host.bytes()) != 0);

  const std::vector<Tensor> weights = far.state.weights();
  const std::string hash = far.state.weights_hash();
  far.run(2);
  CHECK(far.state.weights_hash() != hash);
  far.state.set_weights(weights);
  far.state.to_host();
  CHECK(far.state.weights_hash() == hash);
}

TEST_CASE("memory: a trace shows values where they are, without copies to the host") {
  const backend::Backend backend = far_cpu();
  const auto& memory = static_cast<const FarMemory&>(*backend.memory);
  TrainingSteps far(backend, "mixed_bfloat16");
  feed(far.plan, 5);
  int seen = 0;
  far.plan.trace(
      [&](const graph::Node&, std::span<const TensorView> in, std::span<const TensorView> out) {
        for (const auto views : {in, out}) {
          for (const TensorView& view : views) CHECK(memory.holds(view.data));
        }
        ++seen;
      });
  CHECK(seen > 20);
}

}  // namespace halfstep::plan
