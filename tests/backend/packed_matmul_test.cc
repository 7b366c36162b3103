// Matmuls of packed operands: every micro-kernel, every output, odd shapes.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <ostream>

#include "backend/cpu/kernels.h"
#include "backend/cpu/packed/kernels.h"
#include "core/parallel.h"
#include "fixture.h"
#include "graph/ops/packed.h"
#include "packed.h"
#include "support/kernels.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using namespace std::string_view_literals;
namespace packed = backend::cpu::packed;

constexpr MatMulCase k_matmul_cases[] = {
    {1, 1, 1},
    {16, 32, 16},
    {15, 31, 17, DType::bfloat16, 1, true},
    {33, 65, 31, DType::bfloat16, 1, true, true},
    {64, 64, 64, DType::bfloat16, 1, false, true, true},
    {100, 384, 63, DType::bfloat16, 1, false, false, true},
    {65, 385, 70, DType::bfloat16, 1, true, true},
    {130, 900, 97, DType::bfloat16, 1, true},
    {17, 33, 15, DType::float16, 3, true},
    {16, 32, 16, DType::float16, 4},
    {63, 100, 100, DType::float16, 3, true, true},
    {100, 450, 120, DType::float16, 3, false, false, true},
    {101, 200, 33, DType::float16, 4, true, true, true},
    {1, 1, 1, DType::float16},
    {63, 100, 100, DType::float16, 1, true, true},
    {65, 385, 70, DType::float16, 1, false, false, true},
    // b exceeds half of a cache of 1 MiB and is widened tile by tile.
    {70, 800, 340, DType::float16, 1, true},
};

std::string text(const MatMulCase& c) {
  return fmt::format("{} x {} x {} {} by {}{}{}{}",
                     c.m,
                     c.k,
                     c.n,
                     name(c.dtype),
                     c.products,
                     c.bias ? " bias" : "",
                     c.relu ? " relu" : "",
                     c.mask ? " mask" : "");
}

}  // namespace

TEST_CASE(
    "packed matmul: every micro-kernel agrees with sums in double, and all outputs with each "
    "other") {
  for (const MatMulCase& c : k_matmul_cases) {
    CAPTURE(text(c));
    const PackedMatMul matmul(c);
    for (const Runner& runner : runners()) {
      if (!runner.takes(c.format())) continue;
      CAPTURE(runner.name);
      matmul.check(matmul.run(runner));
    }
  }
}

TEST_CASE("packed matmul: the same bits with packing and epilogues of any instruction set") {
  const std::vector<Runner> all = runners();
  for (const MatMulCase& c : k_matmul_cases) {
    CAPTURE(text(c));
    const PackedMatMul matmul(c);
    for (const std::string_view unit : {"emulated tiles"sv, "emulated fma"sv}) {
      CAPTURE(unit);
      std::vector<Tensor> plain;
      for (const Runner& runner : all) {
        if (!runner.name.starts_with(unit) || !runner.takes(c.format())) continue;
        const std::vector<Tensor> own = matmul.run(runner);
        for (std::size_t i = 0; i < plain.size(); ++i) {
          CAPTURE(PackedMatMul::k_outputs[i]);
          const Comparison same = compare_bits(own[i].view(), plain[i].view());
          CHECK_MESSAGE(same, same.text);
        }
        if (plain.empty()) plain = matmul.run(runner);
      }
    }
  }
}

TEST_CASE("packed matmul: the same bits with any number of threads") {
  const ThreadGuard guard;
  for (const MatMulCase& c : {MatMulCase{70, 400, 130, DType::bfloat16, 1, true, true},
                              MatMulCase{40, 100, 700, DType::bfloat16, 1},
                              MatMulCase{130, 200, 110, DType::float16, 3, false, false, true},
                              MatMulCase{130, 200, 110, DType::float16, 1, false, false, true},
                              MatMulCase{70, 800, 340, DType::float16}}) {
    CAPTURE(text(c));
    const PackedMatMul matmul(c);
    for (const Runner& runner : runners()) {
      if (runner.name.starts_with("reference/")) continue;  // slow, and cut block by block
      if (!runner.takes(c.format())) continue;
      CAPTURE(runner.name);
      set_thread_count(1);
      const std::vector<Tensor> one = matmul.run(runner, 1);
      for (const int threads : {2, 3}) {
        set_thread_count(threads);
        const std::vector<Tensor> many = matmul.run(runner, threads);
        for (std::size_t i = 0; i < one.size(); ++i) {
          const Comparison same = compare_bits(many[i].view(), one[i].view());
          CHECK_MESSAGE(same, same.text);
        }
      }
    }
  }
}

TEST_CASE("packed matmul: a row-major operand a gives the bits of the packed one") {
  const ThreadGuard guard;
  // One kc block and several, fewer panels than threads and more.
  for (const MatMulCase& c : {MatMulCase{1, 1, 1},
                              MatMulCase{33, 65, 31, DType::bfloat16, 1, true, true},
                              MatMulCase{70, 420, 40, DType::bfloat16, 1, true},
                              MatMulCase{17, 33, 15, DType::float16, 3, true},
                              MatMulCase{131, 210, 33, DType::float16, 3, false, false, true},
                              MatMulCase{40, 200, 97, DType::float16, 4, true, true, true},
                              MatMulCase{131, 410, 33, DType::float16, 1, true}}) {
    CAPTURE(text(c));
    const PackedMatMul matmul(c);
    for (const DType source : {c.dtype, DType::float32}) {
      for (const bool transpose : {false, true}) {
        CAPTURE(name(source));
        CAPTURE(transpose);
        const Tensor x = random_tensor(source, transpose ? Shape{c.k, c.m} : Shape{c.m, c.k}, 9);
        const PackedNode plain = matmul.node(matmul.packed_a(x, transpose), false);
        const PackedNode row_major = matmul.node(x, transpose);
        for (const Runner& runner : runners()) {
          if (!runner.takes(c.format())) continue;
          // Plain loops are slow.
          const bool slow = !runner.name.starts_with("packed/");
          if (runner.name.starts_with("reference/") && c.m * c.k * c.n > 1 << 17) continue;
          CAPTURE(runner.name);
          set_thread_count(1);
          const std::vector<Tensor> want = plain.run(runner.prepare(plain.view(), 1));
          for (const int threads : slow ? std::vector{3} : std::vector{1, 2, 3, 5}) {
            CAPTURE(threads);
            set_thread_count(threads);
            const std::vector<Tensor> got =
                row_major.run(runner.prepare(row_major.view(), threads));
            for (std::size_t i = 0; i < want.size(); ++i) {
              CAPTURE(PackedMatMul::k_outputs[i]);
              const Comparison same = compare_bits(got[i].view(), want[i].view());
              CHECK_MESSAGE(same, same.text);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("packed matmul: a row-major operand is refused where b is large or threads would idle") {
  struct Case {
    MatMulCase matmul;
    bool transpose;
    bool accepted;
    int threads = 2;
  };
  for (const auto& [c, transpose, accepted, threads] :
       {Case{{64, 64, 128}, false, true},
        // Too little work for a second thread; two panels for three threads.
        Case{{64, 64, 128}, false, true, 64},
        Case{{64, 4096, 128}, false, false, 3},
        Case{{96, 4096, 128}, false, true, 3},
        Case{{64, 64, 129}, false, false},
        Case{{64, 64, 129}, true, false},
        // b has 1 MiB: read for each row panel, but once for a transposed a.
        Case{{64, 4096, 128}, false, true},
        Case{{64, 4128, 128}, false, false},
        Case{{64, 4128, 128}, true, true},
        Case{{64, 2080, 128, DType::float16, 3}, false, false}}) {
    CAPTURE(text(c));
    CAPTURE(transpose);
    const PackedMatMul matmul(c);
    const Tensor a(c.dtype, transpose ? Shape{c.k, c.m} : Shape{c.m, c.k});
    const PackedNode node = matmul.node(a, transpose);
    const backend::Capabilities capabilities{.threads = threads};
    CHECK(static_cast<bool>(packed::accepts_matmul(node.view(), capabilities)) == accepted);
    CHECK(packed::accepts_matmul(matmul.node().view(), capabilities));
  }
}

TEST_CASE("packed matmul: non-finite values reach all results that depend on them, and no others") {
  constexpr float k_infinity = std::numeric_limits<float>::infinity();
  for (const bool relu : {false, true}) {
    PackedMatMul matmul({40, 70, 33, DType::bfloat16, 1, false, relu});
    for (auto* x : {&matmul.a, &matmul.b}) {
      for (std::int64_t i = 0; i < x->elements(); ++i) {
        bfloat16& e = x->as<bfloat16>()[i];
        e = bfloat16(1 + std::abs(static_cast<float>(e)));
      }
    }
    const auto put = [&](std::int64_t row, std::int64_t k, float value) {
      matmul.a.as<bfloat16>()[row * 70 + k] = bfloat16(value);
    };
    put(3, 5, k_infinity);
    put(17, 69, -k_infinity);
    put(39, 0, std::numeric_limits<float>::quiet_NaN());
    for (const Runner& runner : runners()) {
      if (!runner.takes(matmul.c.format())) continue;
      CAPTURE(runner.name);
      CAPTURE(relu);
      const std::vector<Tensor> results = matmul.run(runner);
      const packed::Layout layout{40, 33, {}};
      for (std::int64_t row = 0; row < 64; ++row) {
        CAPTURE(row);
        for (std::int64_t column = 0; column < 64; ++column) {
          const double got = packed_value(results[4], layout, 'a', row, column);
          if (row >= 40 || column >= 33) {
            CHECK(got == 0);
          } else if (row == 3) {
            CHECK(got == k_infinity);
          } else if (row == 17) {
            CHECK(got == (relu ? 0 : -k_infinity));
          } else {
            CHECK(std::isnan(got) == (row == 39));
          }
        }
      }
    }
  }
}

TEST_CASE("packed matmul: infinite float16 operands give results that are not finite") {
  for (const std::int64_t products : {1, 3}) {
    PackedMatMul matmul({20, 40, 20, DType::float16, products});
    matmul.a.as<float16>()[2 * 40 + 7] = float16(std::numeric_limits<float>::infinity());
    for (const Runner& runner : runners()) {
      if (!runner.takes(matmul.c.format())) continue;
      CAPTURE(runner.name);
      const std::vector<Tensor> results = matmul.run(runner);
      for (std::int64_t i = 0; i < 400; ++i) {
        CHECK(std::isfinite(element_as_double(results[0].view(), i)) == (i / 20 != 2));
      }
    }
  }
}

TEST_CASE(
    "packed matmul: a block is rounded, and its max-norm is finite just where all values are") {
  constexpr float k_infinity = std::numeric_limits<float>::infinity();
  constexpr float k_largest = std::numeric_limits<float>::max();
  const packed::BlockKernels* all[] = {
      &packed::portable_block_kernels(),
      &packed::block_kernels(backend::cpu_backend(2).capabilities.isa),
  };
  // 65519 rounds to the largest float16 and 65520 to infinity; float32's largest number rounds to
  // infinity in bfloat16, and 1.9921875 * 2^127 is the largest one there.
  for (const float special : {0.0F,
                              -3.0F,
                              65519.0F,
                              -65520.0F,
                              0x1.fep+127F,
                              -k_largest,
                              k_infinity,
                              -k_infinity,
                              std::numeric_limits<float>::quiet_NaN()}) {
    CAPTURE(special);
    for (const DType dtype : {DType::bfloat16, DType::float16}) {
      CAPTURE(name(dtype));
      for (std::int64_t at = 0; at < 1024; at += 33) {
        Tensor accumulators = random_tensor(DType::float32, {1024}, 5);
        accumulators.as<float>()[at] = special;
        // A full block with these outputs only has a separate loop.
        for (const auto& [rows, columns] :
             {std::pair<std::int64_t, std::int64_t>{30, 29}, {32, 32}}) {
          CAPTURE(rows);
          double want = 0;
          std::vector<double> values;
          for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t column = 0; column < columns; ++column) {
              // Accumulators are stored in tiles of 16 x 16.
              const std::int64_t i =
                  row / 16 * 512 + column / 16 * 256 + row % 16 * 16 + column % 16;
              values.push_back(testing::rounded(dtype, accumulators.as<float>()[i]));
              const double y = std::abs(values.back());
              want = std::isnan(y) || y > want ? y : want;
            }
          }
          const auto same = [](double x, double y) {
            return std::isnan(x) ? std::isnan(y) : x == y;
          };
          for (const packed::BlockKernels* blocks : all) {
            Tensor norm(dtype, {1}), y(dtype, {rows, columns});
            blocks->of({dtype}).epilogue({.accumulators = accumulators.as<float>(),
                                          .rows = rows,
                                          .columns = columns,
                                          .stride = columns,
                                          .rounded = y.as<std::byte>(),
                                          .max_norm = norm.as<std::uint16_t>()});
            CHECK(same(want, element_as_double(norm.view(), 0)));
            std::int64_t wrong = 0;
            for (std::size_t i = 0; i < values.size(); ++i) {
              wrong += !same(values[i], element_as_double(y.view(), static_cast<std::int64_t>(i)));
            }
            CHECK(wrong == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("packed matmul: results written past the caches are the same") {
  const packed::BlockKernels& blocks =
      packed::block_kernels(backend::cpu_backend(2).capabilities.isa);
  const Tensor accumulators = random_tensor(DType::float32, {1024}, 5);
  for (const graph::ops::PackedFormat format :
       {graph::ops::PackedFormat{}, {DType::float16, 1}, {DType::float16, 2}}) {
    const std::int64_t bytes = graph::ops::packed_bytes(32, 32, format);
    std::vector<Tensor> packed_outputs;
    for (const bool stream : {false, true}) {
      packed_outputs.emplace_back(DType::uint8, Shape{3 * bytes});
      auto* to = packed_outputs.back().as<std::byte>();
      blocks.of(format).epilogue({.accumulators = accumulators.as<float>(),
                                  .rows = 30,
                                  .columns = 32,
                                  .as_a = to,
                                  .as_a_transposed = to + bytes,
                                  .as_b = to + 2 * bytes,
                                  .stream = stream});
    }
    const Comparison same = compare_bits(packed_outputs[1].view(), packed_outputs[0].view());
    CHECK_MESSAGE(same, same.text);
  }
}

TEST_CASE("packed kernels: the nodes that each kernel accepts, and reasons to refuse") {
  using backend::Isa;
  struct Case {
    MatMulCase matmul;
    Isa isa;
    std::string_view kernel;
    std::string_view answer;
  };
  const Case cases[] = {
      {{128, 128, 128}, Isa::avx512_bf16, "packed/avx512_bf16", ""},
      {{128, 128, 128}, Isa::avx512, "packed/avx512_bf16", "needs avx512_bf16"},
      {{128, 128, 128}, Isa::avx512_bf16, "packed/amx", "needs amx"},
      {{128, 128, 128}, Isa::amx, "packed/amx", ""},
      {{128, 128, 128, DType::float16, 3}, Isa::amx, "packed/amx", ""},
      {{128, 128, 128, DType::float16, 3},
       Isa::avx512_bf16,
       "packed/avx512_bf16",
       "partial products of float16 are slower than float32 without amx"},
      {{1, 1, 1}, Isa::amx, "packed/amx", ""},
      {{128, 128, 128, DType::float16}, Isa::amx, "packed/amx", "multiplies float16 in two parts"},
      {{128, 128, 128, DType::float16}, Isa::avx512_bf16, "packed/avx512 by float32", ""},
      {{128, 128, 128, DType::float16}, Isa::avx2, "packed/avx512 by float32", "needs avx512"},
      {{128, 128, 128, DType::float16},
       Isa::amx,
       "packed/avx512 by float32",
       "amx multiplies float16 faster"},
      {{128, 128, 128, DType::float16, 3},
       Isa::avx512_bf16,
       "packed/avx512 by float32",
       "multiplies values as they are"},
      {{128, 128, 128}, Isa::avx512, "packed/avx512 by float32", ""},
      {{128, 128, 128},
       Isa::avx512_bf16,
       "packed/avx512 by float32",
       "avx512_bf16 multiplies bfloat16 faster"},
  };
  for (const Case& c : cases) {
    CAPTURE(text(c.matmul));
    CAPTURE(c.kernel);
    const PackedNode node = PackedMatMul(c.matmul).node();
    for (const backend::Kernel& kernel : backend::cpu::packed_kernels()) {
      if (kernel.op != node.view().node.op || kernel.name != c.kernel) continue;
      CHECK(kernel.accepts(node.view(), {.isa = c.isa}).refusal == c.answer);
    }
  }
}

TEST_CASE("packed kernels: each agrees with the reference") {
  const backend::Capabilities machine = backend::cpu_backend(2).capabilities;
  for (const backend::Kernel& kernel : backend::cpu::packed_kernels()) {
    // Those have shapes of their own: packed_conv_test.cc.
    if (kernel.name.starts_with("packed/conv")) continue;
    CAPTURE(kernel.name);
    const bool by_float32 = kernel.name.ends_with("by float32");
    const auto names = [&](std::string_view isa) {
      return kernel.name.find(isa) != kernel.name.npos;
    };
    const backend::Isa needed = names("amx")           ? backend::Isa::amx
                                : names("avx512_bf16") ? backend::Isa::avx512_bf16
                                                       : backend::Isa::avx512;
    // It refuses values that a stronger instruction set multiplies faster.
    backend::Capabilities capabilities = machine;
    if (by_float32) capabilities.isa = std::min(machine.isa, backend::Isa::avx512);
    const bool here = machine.isa >= needed;
    CHECK((check_against_reference(kernel, capabilities, op_cases()) > 0) == here);
  }
}

TEST_CASE("outer products: a long sum agrees with the reference, for any number of threads") {
  const backend::Capabilities machine = backend::cpu_backend(2).capabilities;
  const ThreadGuard guard;
  for (const backend::Kernel& kernel : backend::cpu::packed_kernels()) {
    if (!kernel.name.starts_with("packed/outer") || machine.isa < backend::Isa::avx512) continue;
    struct Sizes {
      std::int64_t m, k, n;
    };
    // More terms than are summed at a time, parts of rows and of columns, and masked columns.
    for (const auto& [m, k, n] : {Sizes{28, 300, 120}, Sizes{203, 150, 31}, Sizes{8, 1, 24}}) {
      const OpCase c{.name = "gradient",
                     .op = "MatMul",
                     .attrs = {{"transpose_a", true}},
                     .inputs = {uniform({k, m}, -1, 1), uniform({k, n}, -1, 1)},
                     .terms = k,
                     .magnitude = static_cast<double>(k),
                     .check_gradient = false};
      CAPTURE(m);
      CHECK(check_against_reference(kernel, machine, std::vector{c}) > 0);
      std::vector<Tensor> one;
      for (const int threads : {1, 2, 3, 5}) {
        set_thread_count(threads);
        BuiltCase built = build(c, kernel.widens ? DType::float16 : DType::float32);
        std::vector<Tensor> many =
            OneKernel(kernel, {.isa = machine.isa, .threads = threads}).run(built);
        if (one.empty()) one = std::move(many);
        for (std::size_t i = 0; i < many.size(); ++i) {
          const Comparison same = compare_bits(many[i].view(), one[i].view());
          CHECK_MESSAGE(same, same.text);
        }
      }
    }
  }
}

}  // namespace halfstep::testing
