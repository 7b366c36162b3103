// The kernels of recurrent layers against the reference under each instruction set that this
// processor has, and against themselves with other numbers of threads.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <ostream>
#include <string_view>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/processor.h"
#include "backend/cpu/recurrent/panel_matmul.h"
#include "backend/cpu/vector/loops.h"
#include "core/parallel.h"
#include "packed.h"
#include "support/evaluate.h"
#include "support/kernels.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using backend::Capabilities;
using backend::Isa;
namespace vector = backend::cpu::vector;

std::vector<Isa> instruction_sets() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    if (isa <= backend::cpu::detect_isa()) all.push_back(isa);
  }
  return all;
}

}  // namespace

TEST_CASE("recurrent: every kernel agrees with the reference under every instruction set") {
  for (const backend::Kernel& kernel : backend::cpu::recurrent_kernels()) {
    for (const Isa isa : instruction_sets()) {
      CAPTURE(backend::name(isa));
      CHECK(check_against_reference(kernel, {.isa = isa, .threads = 2}, op_cases()) > 40);
    }
  }
}

TEST_CASE("recurrent: a panel is multiplied alike in all forms of its operands") {
  namespace packed = backend::cpu::packed;
  using backend::cpu::recurrent::PanelMatMul;
  struct Form {
    DType dtype;
    packed::HalfMicroKernel half;
    double terms;  // the error of a product of float16 values in three partial products
  };
  const Form forms[] = {{DType::float32, {}, 0},
                        {DType::bfloat16, {}, 0},
                        {DType::float16, {}, 0},
                        {DType::bfloat16, {&k_emulated_tiles, 1}, 0},
                        {DType::float16, {&k_emulated_tiles, 3}, 0x1p-16}};
  for (const Form& form : forms) {
    for (const bool transposed : {false, true}) {
      for (const auto& [rows, depth, columns] : {std::array<std::int64_t, 3>{5, 7, 9},
                                                 std::array<std::int64_t, 3>{32, 64, 96},
                                                 std::array<std::int64_t, 3>{31, 450, 33}}) {
        CAPTURE(name(form.dtype));
        CAPTURE(transposed);
        CAPTURE(depth);
        const OpCase c{.name = "panel", .op = "Relu", .inputs = {uniform({rows, depth})}};
        const Tensor x = build(c, form.dtype).feeds.at("x0").clone();
        // Rows of a larger matrix, as those of one gate are.
        const std::int64_t stride = (transposed ? depth : columns) + 5;
        const Shape shape{transposed ? columns : depth, stride};
        const OpCase k{.name = "kernel", .op = "Relu", .inputs = {uniform(shape)}};
        const Tensor kernel = build(k, form.dtype).feeds.at("x0").clone();
        const PanelMatMul matmul(
            backend::cpu::detect_isa(), form.dtype, form.half, depth, columns, transposed);
        Tensor b(DType::uint8, {matmul.packed_bytes()}),
            scratch(DType::uint8, {matmul.scratch_bytes()});
        Tensor z(DType::float32, {32, matmul.stride()});
        matmul.pack(kernel.view().as<std::byte>(), stride, b.view().as<std::byte>());
        matmul.begin();
        matmul.multiply(x.view().as<std::byte>(),
                        depth,
                        rows,
                        b.view().as<std::byte>(),
                        scratch.view().as<std::byte>(),
                        z.span<float>().data());
        matmul.end();
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) {
            double want = 0, magnitude = 0;
            for (std::int64_t n = 0; n < depth; ++n) {
              const double term =
                  element_as_double(x.view(), i * depth + n) *
                  element_as_double(kernel.view(), transposed ? j * stride + n : n * stride + j);
              want += term;
              magnitude += std::abs(term);
            }
            const double got = static_cast<double>(z.span<float>()[i * matmul.stride() + j]);
            CHECK(std::abs(got - want) <=
                  magnitude * (static_cast<double>(depth) * 0x1p-24 + form.terms));
          }
        }
      }
    }
  }
}

TEST_CASE("recurrent: the number of threads changes no bit") {
  const int threads = thread_count();
  for (const backend::Kernel& kernel : backend::cpu::recurrent_kernels()) {
    for (const OpCase& c : op_cases()) {
      if (c.op != kernel.op || (c.dtypes && c.dtypes->contains(DType::float64))) continue;
      for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
        CAPTURE(c.name);
        const auto result = [&](int count) {
          set_thread_count(count);
          const Capabilities capabilities{.isa = backend::cpu::detect_isa(), .threads = count};
          BuiltCase built = build(c, dtype);
          return OneKernel(kernel, capabilities).run(built);
        };
        const std::vector<Tensor> want = result(1), got = result(3);
        for (std::size_t i = 0; i < want.size(); ++i) {
          const Comparison same = compare_bits(got[i].view(), want[i].view());
          CHECK_MESSAGE(same, same.text);
        }
      }
    }
  }
  set_thread_count(threads);
}

TEST_CASE("recurrent: an lstm's step has the bits of its ops under every instruction set") {
  constexpr std::int64_t k_units = 37;
  // Rows of units: sums, bias and projections of four gates, then carry, dh, direct and dy.
  std::vector<float> x(20 * k_units);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 4 * std::sin(static_cast<float>(i * i));
  x[3] = NAN;
  x[2 * k_units + 5] = HUGE_VALF;
  x[k_units + 7] = -200;
  const auto unit = [&](std::int64_t i) { return x.data() + i * k_units; };
  for (Isa isa : instruction_sets()) {
    CAPTURE(backend::name(isa));
    const vector::Loops& l = vector::loops(isa);
    const auto apply = [&](std::string_view op, std::vector<const float*> in) {
      const auto* row = std::find_if(
          l.maps.begin(), l.maps.end(), [&](const vector::MapLoop& r) { return op == r.op; });
      REQUIRE(row != l.maps.end());
      std::vector<float> y(k_units);
      row->loop(y.data(), in.data(), k_units, 0);
      return y;
    };
    const auto binary = [&](std::string_view op, const auto& a, const auto& b) {
      return apply(op, {&a[0], &b[0]});
    };
    std::vector<float> gates(4 * k_units), c(unit(12), unit(13)), saved(k_units), h(k_units);
    l.lstm[0]({unit(0), unit(4), unit(8), gates.data(), c.data(), saved.data(), h.data()}, k_units);
    std::vector<float> dz(4 * k_units), dc(unit(16), unit(17));
    l.lstm_grad[0](
        {gates.data(), c.data(), unit(12), unit(13), unit(14), unit(15), dz.data(), dc.data()},
        k_units);

    std::vector<float> gate[4];
    for (std::int64_t i = 0; i < 4; ++i) {
      const auto sums = binary("AddV2", binary("AddV2", unit(i), unit(4 + i)).data(), unit(8 + i));
      gate[i] = apply(i == 2 ? "Tanh" : "Sigmoid", {sums.data()});
    }
    const auto& [in, forget, candidate, out] = gate;
    const auto after =
        binary("AddV2", binary("Mul", unit(12), forget), binary("Mul", in, candidate));
    const auto y = apply("Tanh", {after.data()});
    const auto total = binary("AddV2", binary("AddV2", unit(13), unit(14)), unit(15));
    const auto through =
        binary("AddV2", unit(16), binary("TanhGrad", y, binary("Mul", total, out)));
    const std::vector<float> wanted[] = {
        in,
        forget,
        candidate,
        out,
        after,
        after,
        binary("Mul", y, out),
        binary("SigmoidGrad", in, binary("Mul", through, candidate)),
        binary("SigmoidGrad", forget, binary("Mul", through, unit(12))),
        binary("TanhGrad", candidate, binary("Mul", through, in)),
        binary("SigmoidGrad", out, binary("Mul", total, y)),
        binary("Mul", through, forget)};
    const float* const got[] = {&gates[0],
                                &gates[k_units],
                                &gates[2 * k_units],
                                &gates[3 * k_units],
                                &c[0],
                                &saved[0],
                                &h[0],
                                &dz[0],
                                &dz[k_units],
                                &dz[2 * k_units],
                                &dz[3 * k_units],
                                &dc[0]};
    for (std::size_t i = 0; i < std::size(wanted); ++i) {
      CAPTURE(i);
      std::int64_t wrong = 0;
      for (std::size_t k = 0; k < k_units; ++k) {
        const float want = wanted[i][k];
        wrong += std::isnan(want) ? !std::isnan(got[i][k])
                                  : std::bit_cast<std::uint32_t>(want) !=
                                        std::bit_cast<std::uint32_t>(got[i][k]);
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("recurrent: an lstm's step in float16 is that of the widened values, rounded") {
  constexpr std::int64_t k_units = 37;
  const auto n = static_cast<std::size_t>(k_units);
  std::vector<float> x(20 * n);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 4 * std::sin(static_cast<float>(i * i));
  x[8 * n + 3] = NAN;
  for (Isa isa : instruction_sets()) {
    CAPTURE(backend::name(isa));
    const vector::Loops& l = vector::loops(isa);
    std::vector<std::uint16_t> in(4 * n), gates(4 * n), h(n), dy(n), dz(4 * n);
    l.narrow_float16(in.data(), &x[8 * n], 4 * k_units);
    l.narrow_float16(dy.data(), &x[15 * n], k_units);
    std::vector<float> c(&x[12 * n], &x[13 * n]), dc(&x[16 * n], &x[17 * n]);
    l.lstm[1]({&x[0], &x[4 * n], in.data(), gates.data(), c.data(), c.data(), h.data()}, k_units);
    l.lstm_grad[1]({gates.data(),
                    c.data(),
                    &x[12 * n],
                    &x[13 * n],
                    &x[14 * n],
                    dy.data(),
                    dz.data(),
                    dc.data()},
                   k_units);

    const auto widened = [&](const std::vector<std::uint16_t>& values) {
      std::vector<float> wide(values.size());
      l.widen_float16(wide.data(), values.data(), static_cast<std::int64_t>(values.size()));
      return wide;
    };
    const auto rounded = [&](const std::vector<float>& values) {
      std::vector<std::uint16_t> narrow(values.size());
      l.narrow_float16(narrow.data(), values.data(), static_cast<std::int64_t>(values.size()));
      return narrow;
    };
    const std::vector<float> wide_in = widened(in), wide_dy = widened(dy), saved = widened(gates);
    std::vector<float> want_gates(4 * n), want_h(n), want_dz(4 * n);
    std::vector<float> want_c(&x[12 * n], &x[13 * n]), want_dc(&x[16 * n], &x[17 * n]);
    l.lstm[0]({&x[0],
               &x[4 * n],
               wide_in.data(),
               want_gates.data(),
               want_c.data(),
               want_c.data(),
               want_h.data()},
              k_units);
    l.lstm_grad[0]({saved.data(),
                    want_c.data(),
                    &x[12 * n],
                    &x[13 * n],
                    &x[14 * n],
                    wide_dy.data(),
                    want_dz.data(),
                    want_dc.data()},
                   k_units);
    CHECK(gates == rounded(want_gates));
    CHECK(h == rounded(want_h));
    CHECK(dz == rounded(want_dz));
    CHECK(std::memcmp(c.data(), want_c.data(), n * sizeof(float)) == 0);
    CHECK(std::memcmp(dc.data(), want_dc.data(), n * sizeof(float)) == 0);
  }
}

}  // namespace halfstep::testing
