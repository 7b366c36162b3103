// bench_gemm [PART]: bfloat16 GEMMs of dense layers with operands packed in advance (own) and
// packed in the same call (own+pack), against the best oneDNN matmul in bfloat16 and float32, and
// against the processor's register peak of bfloat16 dot products. One JSON object per GEMM and
// line; PART selects GEMMs by a part of their name. Random data; alternating samples; medians.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "backend/cpu/processor.h"
#include "bench.h"
#include "core/parallel.h"

namespace halfstep::bench {
namespace {

using backend::cpu::fastest_unit;
using backend::cpu::PeakUnit;

struct Case {
  std::string name;
  Product product;
};

/// Forward pass and both gradients of a dense layer.
std::vector<Case> cases() {
  std::vector<Case> all;
  constexpr std::int64_t k_layers[][3] = {{8192, 4096, 4096},
                                          {1024, 4096, 4096},
                                          {128, 4096, 4096},
                                          {8192, 784, 4096},
                                          {256, 512, 512}};
  for (const auto& [batch, in, out] : k_layers) {
    const std::string layer = fmt::format("{},{},{} ", batch, in, out);
    all.push_back({layer + "fwd", {batch, in, out}});
    all.push_back({layer + "dx", {batch, out, in, false, true}});
    all.push_back({layer + "dw", {in, batch, out, true, false}});
  }
  return all;
}

/// PackOperand for one operand of a GEMM.
Node packing(const backend::Backend& cpu, const Product& p, char side) {
  const bool transpose = side == 'a' ? p.ta : p.tb;
  const std::int64_t rows = side == 'a' ? p.m : p.k;
  const std::int64_t columns = side == 'a' ? p.k : p.n;
  const Shape shape = transpose ? Shape{columns, rows} : Shape{rows, columns};
  return {cpu,
          "PackOperand",
          {{DType::bfloat16, shape}},
          {{"dtype", DType::bfloat16}, {"side", std::string(1, side)}, {"transpose", transpose}}};
}

/// About a millisecond of the unit.
constexpr int k_bursts = 20;

void measure(const backend::Backend& cpu, const Case& c, const PeakUnit& unit) {
  const Product& p = c.product;
  Node a = packing(cpu, p, 'a');
  Node b = packing(cpu, p, 'b');
  Node product(cpu,
               "PackedMatMul",
               {a.result(), b.result()},
               {{"T", DType::bfloat16},
                {"Targs", std::vector<DType>{}},
                {"Tresults", std::vector<DType>{DType::bfloat16}},
                {"m", p.m},
                {"n", p.n},
                {"k", p.k},
                {"forms", std::string("r")}});
  product.read(0, a);
  product.read(1, b);
  a.run();
  b.run();
  RawMatmul bf16(p, DType::bfloat16, false), bf16_any(p, DType::bfloat16, true);
  RawMatmul f32(p, DType::float32, false), f32_any(p, DType::float32, true);
  double operations = 0;
  const std::function<void()> functions[] = {
      [&] { product.run(); },
      [&] {
        a.run();
        b.run();
        product.run();
      },
      [&] { bf16.run(); },
      [&] { bf16_any.run(); },
      [&] { f32.run(); },
      [&] { f32_any.run(); },
      [&] {
        // Each part of the loop is a thread.
        std::atomic<double> sum = 0;
        parallel_for(thread_count(), 1, [&](std::int64_t, std::int64_t) {
          unit.begin();
          for (int i = 0; i < k_bursts; ++i) sum += unit.burst();
          unit.end();
        });
        operations = sum;
      }};
  const std::vector<double> t = medians(functions);
  const double onednn = std::min(t[2], t[3]);
  fmt::print(
      R"({{"product": "{}", "kernel": "{}", "own_ms": {:.4g}, "own_pack_ms": {:.4g}, )"
      R"("onednn_bf16_ms": {:.4g}, "onednn_f32_ms": {:.4g}, "own_gflops": {:.4g}, )"
      R"("peak_gflops": {:.4g}, "own_pack_speedup_bf16": {:.3g}, "own_pack_speedup_f32": {:.3g}}})"
      "\n",
      c.name,
      product.kernel(),
      t[0] * 1e3,
      t[1] * 1e3,
      onednn * 1e3,
      std::min(t[4], t[5]) * 1e3,
      p.flops() / t[0] * 1e-9,
      operations / t[6] * 1e-9,
      onednn / t[1],
      std::min(t[4], t[5]) / t[1]);
}

int run(std::string_view part) {
  const backend::Backend cpu = backend::cpu_backend(available_processors());
  const backend::Isa isa = cpu.capabilities.isa;
  const PeakUnit* unit = fastest_unit(isa);
  if (isa < backend::Isa::avx512_bf16 || unit == nullptr) {
    fmt::print(stderr, "no bfloat16 instructions here, only {}\n", backend::name(isa));
    return 6;
  }
  for (const Case& c : cases()) {
    if (c.name.find(part) == std::string::npos) continue;
    measure(cpu, c, *unit);
  }
  return 0;
}

}  // namespace
}  // namespace halfstep::bench

int main(int argc, char** argv) {
  try {
    return halfstep::bench::run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
