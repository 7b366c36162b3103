// Matmuls on the device against sums in double.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <ostream>
#include <utility>

#include "backend/cuda/kernels/narrow_gradient.h"
#include "cuda_device/device.h"
#include "support/cuda/matmul_case.h"

namespace halfstep::testing {
namespace {

using backend::cuda::Epilogue;
using backend::cuda::Float32Math;
using backend::cuda::Matmul;
using backend::cuda::MatmulKey;

/// A random matmul in a dtype that this device has.
MatmulKey matmul_of_device(RandomStream& random, std::uint64_t largest) {
  const std::vector<DType> all = dtypes();
  for (;;) {
    const MatmulKey key = random_matmul(random, largest);
    if (std::find(all.begin(), all.end(), key.in) != all.end()) return key;
  }
}

/// Runs the matmul of `p`, `times` times from the same operands, and reads its outputs. False when
/// the library does not support it.
bool run(MatmulCase& p, bool accumulate = false, bool captured = false) {
  const std::unique_ptr<Matmul> matmul = device().matmul(p.key);
  if (!matmul) return false;
  CAPTURE(matmul->description());
  if (p.key.in == DType::float32 && p.key.float32 == Float32Math::ieee) {
    CHECK_FALSE(matmul->uses_tensor_cores());
  }
  const OnDevice a(p.a), b(p.b), c(p.c), bias(p.bias), mask(p.mask);
  const OnDevice workspace(matmul->workspace_bytes());
  const Matmul::Operands operands{.a = a.address(),
                                  .b = b.address(),
                                  .c = c.address(),
                                  .bias = bias.address(),
                                  .mask = mask.address(),
                                  .accumulate = accumulate};
  if (captured) {
    device().begin_capture();
    matmul->run(operands, workspace.address());
    const auto graph = device().end_capture();
    graph->launch();
    device().synchronize();
  } else {
    matmul->run(operands, workspace.address());
  }
  c.read(p.c);
  bias.read(p.bias);
  mask.read(p.mask);
  return true;
}

bool same_bits(const Tensor& x, const Tensor& y) {
  return x.bytes() == y.bytes() && std::memcmp(x.view().data, y.view().data, x.bytes()) == 0;
}

void expect_forward(const MatmulCase& p, bool accumulate = false) {
  for (std::int64_t batch = 0; batch < p.key.batch; ++batch) {
    for (std::int64_t i = 0; i < p.key.m; ++i) {
      for (std::int64_t j = 0; j < p.key.n; ++j) {
        const double before =
            accumulate ? element_as_double(p.before.view(), p.c_index(batch, i, j)) : 0;
        const double want = before + p.forward(batch, i, j);
        REQUIRE(std::abs(p.c_at(batch, i, j) - want) <= p.allowed(want));
      }
    }
  }
}

void expect_sums_of_b(const MatmulCase& p) {
  for (std::int64_t j = 0; j < p.key.n; ++j) {
    double want = 0;
    for (std::int64_t l = 0; l < p.key.k; ++l) want += p.b_at(0, l, j);
    REQUIRE(std::abs(p.bias_at(j) - want) <= p.allowed(want));
  }
}

TEST_CASE("device matmuls: every dtype, transposition and odd shape") {
  RandomStream random(21, 0);
  for (int round = 0; round < 80; ++round) {
    MatmulKey key = matmul_of_device(random, round % 8 == 0 ? 150 : 40);
    key.float32 = round % 2 == 0 ? Float32Math::ieee : Float32Math::tf32;
    const bool accumulate = random.below(3) == 0;
    if (round % 5 == 1) {
      key.batch = 3;
      key.stride_a = key.m * key.k;
      key.stride_b = random.below(2) == 0 ? 0 : key.k * key.n;
      key.stride_c = key.m * key.n;
    }
    CAPTURE(to_string(key));
    CAPTURE(accumulate);
    MatmulCase p(key, random);
    REQUIRE(run(p, accumulate));
    expect_forward(p, accumulate);
  }
}

TEST_CASE("device matmuls: the shapes of a training step") {
  RandomStream random(22, 0);
  for (const DType dtype : dtypes()) {
    for (const MatmulKey& shape : {MatmulKey{.m = 128, .n = 64, .k = 784},
                                   MatmulKey{.m = 128, .n = 10, .k = 64},
                                   MatmulKey{.m = 128, .n = 64, .k = 10, .transpose_b = true},
                                   MatmulKey{.m = 784, .n = 64, .k = 128, .transpose_a = true}}) {
      MatmulKey key = shape;
      key.in = key.out = dtype;
      CAPTURE(to_string(key));
      MatmulCase p(key, random);
      REQUIRE(run(p));
      expect_forward(p);
    }
  }
}

TEST_CASE("device matmuls: epilogues, where the library has them") {
  RandomStream random(23, 0);
  int missing = 0;
  for (int round = 0; round < 60; ++round) {
    MatmulKey key = matmul_of_device(random, 70);
    key.epilogue =
        pick(random,
             {Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_relu_mask, Epilogue::sums_of_b});
    // A library may have epilogues for rows of 16 bytes' multiples alone.
    if (round % 4 != 0) key.n = (key.n + 7) / 8 * 8;
    if (key.epilogue == Epilogue::sums_of_b) {
      key.transpose_a = true;
      key.transpose_b = false;
    }
    CAPTURE(to_string(key));
    MatmulCase p(key, random);
    if (!run(p)) {
      MESSAGE("no algorithm for " << to_string(key));
      ++missing;
      continue;
    }
    expect_forward(p);
    if (key.epilogue == Epilogue::sums_of_b) expect_sums_of_b(p);
  }
  MESSAGE(missing << " of 60 matmuls with epilogues have no algorithm");
}

TEST_CASE("device matmuls: the gradient of weights of few outputs by an own kernel") {
  namespace own = backend::cuda::kernels;
  RandomStream random(26, 0);
  // Rows less than a chunk and more than one, parts, one block of inputs and several, an odd pack.
  for (const auto& [rows, inputs] : {std::pair{1, 4}, {130, 12}, {700, 128}, {1100, 260}}) {
    for (const std::int64_t outputs : {1, 9, 10, 16}) {
      for (const DType dtype : dtypes()) {
        if (!is_half(dtype)) continue;
        MatmulKey key{.m = inputs, .n = outputs, .k = rows, .transpose_a = true};
        key.in = key.out = dtype;
        key.epilogue = Epilogue::sums_of_b;
        CAPTURE(to_string(key));
        MatmulCase p(key, random);
        own::NarrowGradientParams params{.dtype = dtype,
                                         .rows = rows,
                                         .inputs = inputs,
                                         .outputs = outputs,
                                         .tickets = tickets()};
        const OnDevice a(p.a), b(p.b), c(p.c), bias(p.bias);
        const OnDevice workspace(own::narrow_gradient_workspace(params));
        params.x = a.address();
        params.dy = b.address();
        params.dw = c.address();
        params.dbias = bias.address();
        params.workspace = workspace.address();
        own::narrow_gradient(device().stream(), params);
        c.read(p.c);
        bias.read(p.bias);
        expect_forward(p);
        expect_sums_of_b(p);
      }
    }
  }
  CHECK(tickets_are_zero());
}

TEST_CASE("device matmuls: the mask of a forward matmul serves the backward one") {
  RandomStream random(24, 0);
  for (const DType dtype : dtypes()) {
    for (const std::int64_t n : {64, 72, 128, 10}) {
      MatmulKey forward{.m = 96, .n = n, .k = 48, .in = dtype, .out = dtype};
      forward.epilogue = Epilogue::bias_relu_mask;
      MatmulKey backward{.m = 96, .n = n, .k = 40, .transpose_b = true, .in = dtype, .out = dtype};
      backward.epilogue = Epilogue::relu_gradient_bias_gradient;
      CAPTURE(to_string(forward));
      MatmulCase f(forward, random);
      MatmulCase b(backward, random);
      if (!run(f)) continue;
      b.mask = f.mask.clone();
      if (!run(b)) continue;
      for (std::int64_t j = 0; j < n; ++j) {
        double column = 0;
        for (std::int64_t i = 0; i < backward.m; ++i) {
          const double want = f.c_at(0, i, j) > 0 ? b.matmul(0, i, j) : 0;
          REQUIRE(std::abs(b.c_at(0, i, j) - want) <= b.allowed(want));
          column += want;
        }
        REQUIRE(std::abs(b.bias_at(j) - column) <= b.allowed_in_sums(backward.m, column));
      }
    }
  }
}

TEST_CASE("device matmuls: NaN passes through the fused ReLU") {
  RandomStream random(25, 0);
  for (const DType dtype : dtypes()) {
    CAPTURE(name(dtype));
    MatmulKey key{.m = 16, .n = 16, .k = 16, .in = dtype, .out = dtype};
    key.epilogue = Epilogue::bias_relu;
    MatmulCase p(key, random);
    p.a = poisoned_tensor(dtype, p.a.elements());
    if (!run(p)) continue;
    CHECK(std::isnan(p.c_at(0, 3, 5)));
  }
}

TEST_CASE("device matmuls: the same bits each time, in a captured graph too") {
  RandomStream random(26, 0);
  for (const DType dtype : dtypes()) {
    MatmulKey key{.m = 130, .n = 65, .k = 2000, .in = dtype, .out = dtype};
    CAPTURE(to_string(key));
    MatmulCase p(key, random);
    REQUIRE(run(p));
    const Tensor first = p.c.clone();
    REQUIRE(run(p));
    CHECK(same_bits(first, p.c));
    REQUIRE(run(p, false, true));
    CHECK(same_bits(first, p.c));
  }
}

}  // namespace
}  // namespace halfstep::testing
