// cuBLASLt's arguments for row-major matmuls: column-major semantics on these arguments equal the
// row-major formula.

#include "backend/cuda/vendor/lt_arguments.h"

#include <doctest/doctest.h>

#include <cmath>
#include <ostream>

#include "backend/cuda/vendor/emulated/libraries.h"
#include "core/error.h"
#include "support/cuda/matmul_case.h"

namespace halfstep::backend::cuda {
namespace {

using halfstep::testing::MatmulCase;
using halfstep::testing::pick;
using halfstep::testing::poisoned_tensor;
using halfstep::testing::random_matmul;

constexpr std::uint64_t k_largest = 33;

void run(MatmulCase& p, bool accumulate = false) {
  const LtArguments lt = lt_arguments(p.key);
  CHECK(p.mask.bytes() >= aux_bytes(lt));
  // cuBLASLt's A is our B.
  emulated::run_lt(lt,
                   p.b.view().data,
                   p.a.view().data,
                   p.c.view().data,
                   accumulate,
                   p.bias.view().data,
                   p.mask.view().data);
}

TEST_CASE("lt arguments: plain matmuls of all shapes, dtypes and transpositions") {
  RandomStream random(1, 0);
  for (int round = 0; round < 150; ++round) {
    MatmulKey key = random_matmul(random, k_largest);
    if (round % 3 == 1) {
      key.row_b = (key.transpose_b ? key.k : key.n) + static_cast<std::int64_t>(random.below(5));
    }
    if (round % 3 == 2) {
      key.batch = 3;
      key.stride_a = round % 2 == 0 ? 0 : key.m * key.k;
      key.stride_b = key.k * key.n + 3;
      key.stride_c = key.m * key.n;
    }
    const bool accumulate = random.below(2) == 1;
    CAPTURE(to_string(key));
    CAPTURE(accumulate);
    MatmulCase p(key, random);
    run(p, accumulate);
    for (std::int64_t batch = 0; batch < key.batch; ++batch) {
      for (std::int64_t i = 0; i < key.m; ++i) {
        for (std::int64_t j = 0; j < key.n; ++j) {
          const double before =
              accumulate ? element_as_double(p.before.view(), p.c_index(batch, i, j)) : 0;
          const double want = before + p.matmul(batch, i, j);
          REQUIRE(std::abs(p.c_at(batch, i, j) - want) <= p.allowed(want));
        }
      }
    }
  }
}

TEST_CASE("lt arguments: bias, with ReLU and without") {
  RandomStream random(2, 0);
  for (int round = 0; round < 60; ++round) {
    MatmulKey key = random_matmul(random, k_largest);
    key.epilogue = pick(random, {Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_relu_mask});
    CAPTURE(to_string(key));
    MatmulCase p(key, random);
    run(p);
    for (std::int64_t i = 0; i < key.m; ++i) {
      for (std::int64_t j = 0; j < key.n; ++j) {
        const double want = p.forward(0, i, j);
        REQUIRE(std::abs(p.c_at(0, i, j) - want) <= p.allowed(want));
      }
    }
  }
}

TEST_CASE("lt arguments: the mask of the forward matmul zeroes the backward one where y was 0") {
  RandomStream random(3, 0);
  for (int round = 0; round < 60; ++round) {
    MatmulKey forward = random_matmul(random, k_largest);
    forward.epilogue = Epilogue::bias_relu_mask;
    MatmulCase f(forward, random);
    run(f);

    // dx of the next layer has the forward output's shape: [m,n] = dy [m,k2] W [k2,n].
    MatmulKey backward = random_matmul(random, k_largest);
    backward.m = forward.m;
    backward.n = forward.n;
    backward.epilogue =
        pick(random, {Epilogue::relu_gradient, Epilogue::relu_gradient_bias_gradient});
    CAPTURE(to_string(forward));
    CAPTURE(to_string(backward));
    MatmulCase b(backward, random);
    b.mask = f.mask.clone();
    const Tensor bias_before = b.bias.clone();
    run(b);

    for (std::int64_t j = 0; j < backward.n; ++j) {
      double column = 0;
      for (std::int64_t i = 0; i < backward.m; ++i) {
        // The sign that float32 sums saw; none here is so small that the store made it 0.
        const double want = f.c_at(0, i, j) > 0 ? b.matmul(0, i, j) : 0;
        REQUIRE(std::abs(b.c_at(0, i, j) - want) <= b.allowed(want));
        column += want;
      }
      if (backward.epilogue == Epilogue::relu_gradient) {
        REQUIRE(b.bias_at(j) == element_as_double(bias_before.view(), j));
      } else {
        REQUIRE(std::abs(b.bias_at(j) - column) <= b.allowed_in_sums(backward.m, column));
      }
    }
  }
}

TEST_CASE("lt arguments: sums_of_b is the bias gradient beside dW = x^T dy") {
  RandomStream random(4, 0);
  for (int round = 0; round < 40; ++round) {
    MatmulKey key = random_matmul(random, k_largest);
    key.transpose_a = true;
    key.transpose_b = false;
    key.epilogue = Epilogue::sums_of_b;
    CAPTURE(to_string(key));
    MatmulCase p(key, random);
    p.bias = poisoned_tensor(key.out, key.n);
    run(p);
    for (std::int64_t j = 0; j < key.n; ++j) {
      double want = 0;
      for (std::int64_t l = 0; l < key.k; ++l) want += p.b_at(0, l, j);
      REQUIRE(std::abs(p.bias_at(j) - want) <= p.allowed(want));
    }
  }
}

TEST_CASE("lt arguments: infinities and NaN pass through matmuls and ReLU") {
  const MatmulKey key{.m = 1,
                      .n = 3,
                      .k = 1,
                      .in = DType::float16,
                      .out = DType::float16,
                      .epilogue = Epilogue::bias_relu_mask};
  RandomStream random(5, 0);
  MatmulCase o(key, random);
  o.a.as<float16>()[0] = float16(1e30F);
  o.b.as<float16>()[0] = float16(1.0F);
  o.b.as<float16>()[1] = float16(-1.0F);
  o.b.as<float16>()[2] = float16(0.0F);
  run(o);
  CHECK(std::isinf(o.c_at(0, 0, 0)));
  CHECK(o.c_at(0, 0, 1) == 0);
  CHECK(std::isnan(o.c_at(0, 0, 2)));
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
  CHECK(graph::ops::fused_mask_bytes(narrow.m, narrow.n) == 128 / 8 * 8192);

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
