// The kernels of recurrent layers against the reference under each instruction set that this
// processor has, and against themselves with other numbers of threads.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <ostream>

#include "backend/cpu/kernels.h"
#include "backend/cpu/processor.h"
#include "backend/cpu/recurrent/panel_matmul.h"
#include "core/parallel.h"
#include "packed.h"
#include "support/evaluate.h"
#include "support/kernels.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using backend::Capabilities;
using backend::Isa;

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
                        {DType::bfloat16, {&k_emulated_unit, 1}, 0},
                        {DType::float16, {&k_emulated_unit, 3}, 0x1p-16}};
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

}  // namespace halfstep::testing
