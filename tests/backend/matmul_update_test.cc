// Matmuls that apply the gradient they compute, compared with a separate matmul and update.

#include <doctest/doctest.h>

#include <algorithm>
#include <ostream>
#include <string_view>

#include "backend/cpu/kernels.h"
#include "backend/cpu/packed/kernels.h"
#include "core/parallel.h"
#include "fixture.h"
#include "packed.h"
#include "support/tolerance.h"
#include "update_cases.h"

namespace halfstep::testing {
namespace {

using graph::Value;
namespace packed = backend::cpu::packed;

/// Kernels of the emulated micro-kernels.
const packed::MicroKernel& emulated_micro_kernel(const backend::NodeView& node) {
  return graph::ops::operand_format(node.attrs()) == graph::ops::PackedFormat{DType::float16, 1}
             ? k_emulated_fma
             : k_emulated_tiles;
}
backend::Prepared emulated_matmul(const backend::NodeView& node,
                                  const backend::Capabilities& capabilities) {
  return packed::prepare_matmul(node,
                                emulated_micro_kernel(node),
                                packed::block_kernels(capabilities.isa),
                                capabilities.threads);
}
backend::Prepared emulated_update(const backend::NodeView& node,
                                  const backend::Capabilities& capabilities) {
  return packed::prepare_matmul_update(node, emulated_micro_kernel(node), capabilities);
}

/// A device with one pair of matmul kernels, and the operands that it multiplies.
struct Device {
  std::string_view name;
  backend::Isa isa;
  std::vector<backend::Kernel> rows;
  std::vector<graph::ops::PackedFormat> formats;

  backend::Backend backend(int threads) const {
    return {.name = "cpu", .capabilities = {.isa = isa, .threads = threads}, .kernels = rows};
  }
};

std::vector<Device> devices() {
  const backend::Isa machine = backend::cpu_backend(2).capabilities.isa;
  std::vector<Device> all;
  using Formats = std::vector<graph::ops::PackedFormat>;
  constexpr graph::ops::PackedFormat k_bfloat16, k_float16{DType::float16, 1},
      k_parts{DType::float16, 2};
  const auto add =
      [&](std::string_view name, backend::Isa isa, const Formats& formats, const auto& wanted) {
        Device device{name, isa, {}, formats};
        if (name == "emulated") {
          device.rows = {
              {.op = "PackedMatMul", .name = "emulated", .prepare = emulated_matmul},
              {.op = "PackedMatMulUpdate", .name = "emulated", .prepare = emulated_update}};
        }
        for (const backend::Kernel& kernel : backend::cpu::all_kernels()) {
          const bool is_matmul = kernel.op.starts_with("PackedMatMul");
          if (!is_matmul || wanted(kernel)) device.rows.push_back(kernel);
        }
        all.push_back(std::move(device));
      };
  const auto none = [](const backend::Kernel&) { return false; };
  const auto named = [](std::string_view name) {
    return [=](const backend::Kernel& kernel) { return kernel.name.starts_with(name); };
  };
  const Formats every{k_bfloat16, k_float16, k_parts};
  add("emulated", backend::Isa::baseline, every, none);
  if (machine > backend::Isa::baseline) add("emulated", machine, every, none);
  if (machine >= backend::Isa::avx512) {
    add("avx512", backend::Isa::avx512, {k_bfloat16, k_float16}, named("packed/avx512 by float32"));
  }
  if (machine >= backend::Isa::avx512_bf16) {
    add("avx512_bf16", backend::Isa::avx512_bf16, {k_bfloat16}, named("packed/avx512_bf16"));
  }
  if (machine >= backend::Isa::amx) {
    add("amx", machine, {k_bfloat16, k_parts}, named("packed/amx"));
  }
  return all;
}

struct Problem {
  std::int64_t m, n, k;  ///< of the gradient
  DType dtype = DType::bfloat16;
  std::int64_t products = 1;
  double unscale = 1;

  graph::ops::PackedFormat format() const { return graph::ops::operand_format(dtype, products); }
};

/// A variable, its slots and its packed forms after an update.
struct After {
  std::vector<Tensor> tensors;

  After(const backend::Backend& device, const Problem& p, const UpdateCase& c, bool inside) {
    Fixture fixture(device);
    std::vector<Value> handles;
    for (int i = 0; i <= c.slots; ++i) {
      handles.push_back(fixture.variable("v" + std::to_string(i),
                                         initial_state(DType::float32, {p.m, p.n}, c, i)));
    }
    std::vector<Value> copies;
    for (const bool transpose : {false, true}) {
      copies.push_back(fixture.b().add("PackedVariable",
                                       {handles[0]},
                                       {{"dtype", p.dtype},
                                        {"parts", p.format().parts},
                                        {"side", std::string("b")},
                                        {"transpose", transpose}}));
    }
    const auto operand = [&](const Shape& shape, char letter, unsigned seed) {
      const Tensor x = random_tensor(p.dtype, shape, seed);
      return fixture.input(pack(packed::portable_block_kernels(), x, p.format(), letter, false));
    };
    const Value a = operand({p.m, p.k}, 'a', 50);
    const Value b = operand({p.k, p.n}, 'b', 51);
    graph::Attrs matmul{
        {"T", p.dtype}, {"m", p.m}, {"n", p.n}, {"k", p.k}, {"products", p.products}};
    graph::Attrs update = c.attrs;
    update.set("rule", c.op);
    update.set("packed", static_cast<std::int64_t>(copies.size()));

    std::vector<Value> inputs = handles;
    for (double x : c.before({}, 1)) inputs.push_back(fixture.b().scalar(DType::float32, x));
    if (inside) {
      inputs.push_back(a);
    } else {
      matmul.set("Tresults", std::vector<DType>{p.dtype});
      inputs.push_back(fixture.b().add("PackedMatMul", {a, b}, matmul));
    }
    for (double x : c.after({}, 1)) inputs.push_back(fixture.b().scalar(DType::float32, x));
    inputs.push_back(fixture.b().scalar(DType::float32, p.unscale));
    inputs.insert(inputs.end(), copies.begin(), copies.end());
    if (inside) {
      inputs.push_back(b);
      for (const auto& [name, value] : matmul) update.set(name, value);
    }
    fixture.b().add_node(inside ? "PackedMatMulUpdate" : "FusedUpdate", inputs, update);
    fixture.run();
    for (const Value handle : handles) tensors.push_back(fixture.held(handle).clone());
    for (const Value form : copies) tensors.push_back(fixture.result(form).clone());
  }

  /// The first tensor in which two differ, by its number; -1 without one.
  int differs(const After& other) const {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!compare_bits(tensors[i].view(), other.tensors[i].view())) return static_cast<int>(i);
    }
    return -1;
  }
};

// The smallest packed shape, several kc blocks and tiles, and fewer rows than a block has.
constexpr std::int64_t k_short = 60;  // where all optimizers are tried
constexpr Problem k_problems[] = {
    {77, 130, 33, DType::bfloat16, 1, 0.375},
    {161, 45, 400},
    {17, 520, 61},
    {45, 101, 58, DType::float16, 3, 0.375},
    {33, 97, 130, DType::float16, 4},
    {45, 101, 58, DType::float16, 1, 0.375},
};

}  // namespace

TEST_CASE("matmul update: the same bits as the matmul, then the update, for every optimizer") {
  const ThreadGuard guard;
  for (const Device& device : devices()) {
    CAPTURE(device.name);
    for (const Problem& p : k_problems) {
      if (std::count(device.formats.begin(), device.formats.end(), p.format()) == 0) continue;
      CAPTURE(p.m);
      CAPTURE(name(p.dtype));
      for (const UpdateCase& c : update_cases()) {
        if (p.k > k_short && c.name != "rmsprop") continue;
        CAPTURE(c.name);
        set_thread_count(1);
        const After separate(device.backend(1), p, c, false);
        const After inside(device.backend(1), p, c, true);
        CHECK(inside.differs(separate) == -1);
      }
    }
  }
}

TEST_CASE("matmul update: the same bits with any number of threads") {
  const ThreadGuard guard;
  const UpdateCase c = update_cases().front();
  for (const Device& device : devices()) {
    CAPTURE(device.name);
    for (const Problem& p : {Problem{130, 161, 100}, Problem{40, 700, 50}}) {
      CAPTURE(p.m);
      set_thread_count(1);
      const After one(device.backend(1), p, c, true);
      for (const int threads : {2, 3}) {
        CAPTURE(threads);
        set_thread_count(threads);
        CHECK(After(device.backend(threads), p, c, true).differs(one) == -1);
      }
    }
  }
}

TEST_CASE("matmul update: shapes that do not fit are refused") {
  Fixture fixture;
  const Value w = fixture.variable("w", Tensor(DType::float32, {64, 32}));
  const Value one = fixture.b().scalar(DType::float32, 1);
  const auto operand = [&](std::int64_t rows) {
    return fixture.input(Tensor(DType::uint8, {graph::ops::packed_bytes(rows, 32, {})}));
  };
  const auto update = [&](std::int64_t m, std::int64_t rows_a, std::int64_t rows_b) {
    fixture.b().add_node("PackedMatMulUpdate",
                         {w, one, operand(rows_a), one, operand(rows_b)},
                         {{"T", DType::bfloat16},
                          {"m", m},
                          {"n", std::int64_t{32}},
                          {"k", std::int64_t{32}},
                          {"rule", std::string("ResourceApplyGradientDescent")}});
  };
  CHECK_NOTHROW(update(64, 64, 32));
  CHECK_THROWS_WITH_AS(update(64, 32, 32),
                       doctest::Contains("input 2 must have shape [4096], got [2048]"),
                       UserError);
  CHECK_THROWS_WITH_AS(update(64, 64, 64),
                       doctest::Contains("input 4 must have shape [2048], got [4096]"),
                       UserError);
  CHECK_THROWS_WITH_AS(update(96, 96, 32),
                       doctest::Contains("a variable is float32 [64, 32], its gradient [96, 32]"),
                       UserError);
}

}  // namespace halfstep::testing
