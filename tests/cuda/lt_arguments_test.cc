// cuBLASLt's arguments for row-major products: column-major semantics on these arguments give what
// the row-major formula gives.

#include "backend/cuda/vendor/lt_arguments.h"

#include <doctest/doctest.h>

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "backend/cuda/vendor/emulated/matmul.h"
#include "core/error.h"
#include "cuda/random_values.h"
#include "support/tolerance.h"

namespace halfstep::backend::cuda {
namespace {

using halfstep::testing::pick;
using halfstep::testing::poisoned_tensor;
using halfstep::testing::random_tensor;
using halfstep::testing::tolerance;

/// Elements between the starts of two rows.
std::int64_t row_of(std::int64_t given, std::int64_t columns) {
  return given == 0 ? columns : given;
}

/// The operands of a key and where each element of a matrix lies, in row-major words alone.
struct Operands {
  Tensor a, b, c, bias;
  std::vector<std::uint8_t> mask;
  Tensor before;  ///< c before the product

  Operands(const MatmulKey& key, RandomStream& random) {
    const auto elements = [&](std::int64_t rows, std::int64_t row, std::int64_t stride) {
      return rows * row + (key.batch - 1) * stride;
    };
    a = random_tensor(key.in, elements(rows_a(key), row_a(key), key.stride_a), random);
    b = random_tensor(key.in, elements(rows_b(key), row_b(key), key.stride_b), random);
    c = random_tensor(key.out, elements(key.m, row_of(key.row_c, key.n), key.stride_c), random);
    before = c.clone();
    bias = random_tensor(key.out, key.n, random);
    mask.assign(static_cast<std::size_t>(mask_bytes(key.m, key.n)), 0xaa);
  }

  static std::int64_t rows_a(const MatmulKey& key) { return key.transpose_a ? key.k : key.m; }
  static std::int64_t rows_b(const MatmulKey& key) { return key.transpose_b ? key.n : key.k; }
  static std::int64_t row_a(const MatmulKey& key) {
    return row_of(key.row_a, key.transpose_a ? key.m : key.k);
  }
  static std::int64_t row_b(const MatmulKey& key) {
    return row_of(key.row_b, key.transpose_b ? key.k : key.n);
  }

  double a_at(const MatmulKey& key, std::int64_t batch, std::int64_t i, std::int64_t l) const {
    const std::int64_t at = key.transpose_a ? l * row_a(key) + i : i * row_a(key) + l;
    return element_as_double(a.view(), batch * key.stride_a + at);
  }
  double b_at(const MatmulKey& key, std::int64_t batch, std::int64_t l, std::int64_t j) const {
    const std::int64_t at = key.transpose_b ? j * row_b(key) + l : l * row_b(key) + j;
    return element_as_double(b.view(), batch * key.stride_b + at);
  }
  static std::int64_t c_index(const MatmulKey& key,
                              std::int64_t batch,
                              std::int64_t i,
                              std::int64_t j) {
    return batch * key.stride_c + i * row_of(key.row_c, key.n) + j;
  }
};

void run(const MatmulKey& key, Operands& o, bool accumulate = false) {
  const LtArguments lt = lt_arguments(key);
  CHECK(o.mask.size() >= aux_bytes(lt));
  // cuBLASLt's A is our B.
  emulated::run_lt(lt,
                   o.b.view().data,
                   o.a.view().data,
                   o.c.view().data,
                   accumulate,
                   o.bias.view().data,
                   o.mask.data());
}

double product(
    const MatmulKey& key, const Operands& o, std::int64_t batch, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t l = 0; l < key.k; ++l)
    sum += o.a_at(key, batch, i, l) * o.b_at(key, batch, l, j);
  return sum;
}

/// How far one element may be off: k sums, a bias and a store.
double allowed(const MatmulKey& key, double result) {
  return tolerance(
      key.out, DType::float32, key.k + 2, static_cast<double>(key.k) + 2, std::abs(result));
}

MatmulKey random_key(RandomStream& random) {
  const auto extent = [&] { return 1 + static_cast<std::int64_t>(random.below(33)); };
  MatmulKey key{.m = extent(), .n = extent(), .k = extent()};
  key.transpose_a = random.below(2) == 1;
  key.transpose_b = random.below(2) == 1;
  key.in = pick(random, {DType::float16, DType::bfloat16, DType::float32});
  key.out = random.below(2) == 1 ? key.in : DType::float32;
  return key;
}

TEST_CASE("lt arguments: plain products of all shapes, dtypes and transpositions") {
  RandomStream random(1, 0);
  for (int round = 0; round < 150; ++round) {
    MatmulKey key = random_key(random);
    if (round % 3 == 1) {
      key.row_a = Operands::row_a(key) + static_cast<std::int64_t>(random.below(5));
      key.row_b = Operands::row_b(key) + static_cast<std::int64_t>(random.below(5));
      key.row_c = key.n + static_cast<std::int64_t>(random.below(5));
    }
    if (round % 3 == 2) {
      key.batch = 3;
      key.stride_a = round % 2 == 0 ? 0 : Operands::rows_a(key) * Operands::row_a(key);
      key.stride_b = Operands::rows_b(key) * Operands::row_b(key) + 3;
      key.stride_c = key.m * key.n;
    }
    const bool accumulate = random.below(2) == 1;
    CAPTURE(to_string(key));
    CAPTURE(accumulate);
    Operands o(key, random);
    run(key, o, accumulate);
    for (std::int64_t batch = 0; batch < key.batch; ++batch) {
      for (std::int64_t i = 0; i < key.m; ++i) {
        for (std::int64_t j = 0; j < key.n; ++j) {
          const std::int64_t at = Operands::c_index(key, batch, i, j);
          const double before = accumulate ? element_as_double(o.before.view(), at) : 0;
          const double want = before + product(key, o, batch, i, j);
          const double got = element_as_double(o.c.view(), at);
          REQUIRE(std::abs(got - want) <= allowed(key, want));
        }
      }
    }
    // What lies between the rows is nobody's.
    const std::int64_t row = row_of(key.row_c, key.n);
    if (key.batch == 1 && row > key.n) {
      const std::int64_t gap = key.n;
      CHECK(element_as_double(o.c.view(), gap) == element_as_double(o.before.view(), gap));
    }
  }
}

TEST_CASE("lt arguments: bias, with ReLU and without") {
  RandomStream random(2, 0);
  for (int round = 0; round < 60; ++round) {
    MatmulKey key = random_key(random);
    key.epilogue = pick(random, {Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_relu_mask});
    CAPTURE(to_string(key));
    Operands o(key, random);
    run(key, o);
    for (std::int64_t i = 0; i < key.m; ++i) {
      for (std::int64_t j = 0; j < key.n; ++j) {
        const double sum = product(key, o, 0, i, j) + element_as_double(o.bias.view(), j);
        const double want = key.epilogue == Epilogue::bias ? sum : std::max(sum, 0.0);
        const double got = element_as_double(o.c.view(), Operands::c_index(key, 0, i, j));
        REQUIRE(std::abs(got - want) <= allowed(key, want));
      }
    }
  }
}

TEST_CASE("lt arguments: the mask of the forward product zeroes the backward one where y was 0") {
  RandomStream random(3, 0);
  for (int round = 0; round < 60; ++round) {
    MatmulKey forward = random_key(random);
    forward.epilogue = Epilogue::bias_relu_mask;
    Operands f(forward, random);
    run(forward, f);

    // dx of the next layer has the forward output's shape: [m,n] = dy [m,k2] W [k2,n].
    MatmulKey backward = random_key(random);
    backward.m = forward.m;
    backward.n = forward.n;
    backward.epilogue =
        pick(random, {Epilogue::relu_gradient, Epilogue::relu_gradient_bias_gradient});
    CAPTURE(to_string(forward));
    CAPTURE(to_string(backward));
    Operands b(backward, random);
    b.mask = f.mask;
    const Tensor bias_before = b.bias.clone();
    run(backward, b);

    for (std::int64_t j = 0; j < backward.n; ++j) {
      double column = 0;
      for (std::int64_t i = 0; i < backward.m; ++i) {
        const double y = element_as_double(f.c.view(), Operands::c_index(forward, 0, i, j));
        // The sign that float32 sums saw; none here is so small that the store made it 0.
        const double want = y > 0 ? product(backward, b, 0, i, j) : 0;
        const double got = element_as_double(b.c.view(), Operands::c_index(backward, 0, i, j));
        REQUIRE(std::abs(got - want) <= allowed(backward, want));
        column += want;
      }
      const double got = element_as_double(b.bias.view(), j);
      if (backward.epilogue == Epilogue::relu_gradient) {
        REQUIRE(got == element_as_double(bias_before.view(), j));
      } else {
        const auto terms = backward.m + backward.k;
        REQUIRE(std::abs(got - column) <= tolerance(backward.out,
                                                    DType::float32,
                                                    terms,
                                                    static_cast<double>(backward.m * backward.k),
                                                    std::abs(column)));
      }
    }
  }
}

TEST_CASE("lt arguments: sums_of_b is the bias gradient beside dW = x^T dy") {
  RandomStream random(4, 0);
  for (int round = 0; round < 40; ++round) {
    MatmulKey key = random_key(random);
    key.transpose_a = true;
    key.transpose_b = false;
    key.epilogue = Epilogue::sums_of_b;
    CAPTURE(to_string(key));
    Operands o(key, random);
    o.bias = poisoned_tensor(key.out, key.n);
    run(key, o);
    for (std::int64_t j = 0; j < key.n; ++j) {
      double want = 0;
      for (std::int64_t l = 0; l < key.k; ++l) want += o.b_at(key, 0, l, j);
      const double got = element_as_double(o.bias.view(), j);
      REQUIRE(std::abs(got - want) <= allowed(key, want));
    }
  }
}

TEST_CASE("lt arguments: infinities and NaN pass through products and ReLU") {
  const MatmulKey key{.m = 1,
                      .n = 3,
                      .k = 1,
                      .in = DType::float16,
                      .out = DType::float16,
                      .epilogue = Epilogue::bias_relu_mask};
  RandomStream random(5, 0);
  Operands o(key, random);
  o.a.as<float16>()[0] = float16(1e30F);
  o.b.as<float16>()[0] = float16(1.0F);
  o.b.as<float16>()[1] = float16(-1.0F);
  o.b.as<float16>()[2] = float16(0.0F);
  run(key, o);
  CHECK(std::isinf(element_as_double(o.c.view(), 0)));
  CHECK(element_as_double(o.c.view(), 1) == 0);
  CHECK(std::isnan(element_as_double(o.c.view(), 2)));
}

TEST_CASE("lt arguments: what the library is told") {
  const MatmulKey key{.m = 8192,
                      .n = 4096,
                      .k = 784,
                      .in = DType::float16,
                      .out = DType::float16,
                      .epilogue = Epilogue::bias_relu_mask};
  const LtArguments lt = lt_arguments(key);
  CHECK(lt.m == 4096);
  CHECK(lt.n == 8192);
  CHECK(lt.k == 784);
  CHECK(lt.a == LtMatrix{DType::float16, 4096, 784, 4096, 0});
  CHECK(lt.b == LtMatrix{DType::float16, 784, 8192, 784, 0});
  CHECK(lt.d == LtMatrix{DType::float16, 4096, 8192, 4096, 0});
  CHECK(lt.bias_elements == 4096);
  CHECK(lt.bias_dtype == DType::float16);
  CHECK(lt.aux_leading == 4096);
  CHECK(aux_bytes(lt) == 4096 / 8 * 8192);
  CHECK_FALSE(lt.strict_float32);

  MatmulKey narrow = key;
  narrow.n = 10;
  CHECK(lt_arguments(narrow).aux_leading == 128);
  CHECK(mask_bytes(narrow.m, narrow.n) == 128 / 8 * 8192);

  MatmulKey wide = key;
  wide.in = wide.out = DType::float32;
  CHECK(lt_arguments(wide).strict_float32);
  CHECK(lt_arguments(wide).compute == LtCompute::float32);
  wide.float32 = Float32Math::tf32;
  CHECK_FALSE(lt_arguments(wide).strict_float32);
  CHECK(lt_arguments(wide).compute == LtCompute::float32_fast_tf32);
}

TEST_CASE("lt arguments: what no library takes is a mistake of the caller") {
  const MatmulKey good{.m = 2, .n = 3, .k = 4};
  const auto with = [&](auto change) {
    MatmulKey key = good;
    change(key);
    return key;
  };
  CHECK_NOTHROW(lt_arguments(good));
  CHECK_THROWS_AS(lt_arguments(with([](MatmulKey& k) { k.k = 0; })), InternalError);
  CHECK_THROWS_AS(lt_arguments(with([](MatmulKey& k) { k.in = DType::float64; })), InternalError);
  CHECK_THROWS_AS(lt_arguments(with([](MatmulKey& k) { k.out = DType::float16; })), InternalError);
  CHECK_THROWS_AS(lt_arguments(with([](MatmulKey& k) { k.row_b = 2; })), InternalError);
  CHECK_THROWS_AS(lt_arguments(with([](MatmulKey& k) {
                    k.batch = 2;
                    k.epilogue = Epilogue::bias;
                  })),
                  InternalError);
}

}  // namespace
}  // namespace halfstep::backend::cuda
