#include "backend/cuda/vendor/matmul_padding.h"

#include <doctest/doctest.h>

#include <ostream>

namespace halfstep::backend::cuda {
namespace {

/// A matmul of the ten-wide layer after 4096 units, with 8192 samples.
MatmulKey logits(DType dtype = DType::float16) {
  return {.m = 8192, .n = 10, .k = 4096, .in = dtype, .out = dtype};
}

}  // namespace

TEST_CASE("padding: ten classes behind a wide layer are multiplied as sixteen") {
  MatmulKey forward = logits();
  forward.epilogue = Epilogue::bias;
  const auto y = padding_of(forward);
  REQUIRE(y.has_value());
  CHECK(y->key.n == 16);
  CHECK(y->key.k == 4096);
  CHECK_FALSE(y->a);
  CHECK(y->b);
  CHECK(y->c);
  CHECK(y->bias);

  const MatmulKey input{.m = 8192,
                        .n = 4096,
                        .k = 10,
                        .transpose_b = true,
                        .in = DType::bfloat16,
                        .out = DType::bfloat16,
                        .epilogue = Epilogue::relu_gradient_bias_gradient};
  const auto dx = padding_of(input);
  REQUIRE(dx.has_value());
  CHECK(dx->key.k == 16);
  CHECK(dx->a);
  CHECK(dx->b);
  CHECK_FALSE(dx->c);
  CHECK_FALSE(dx->bias);

  const MatmulKey weights{.m = 4096,
                          .n = 10,
                          .k = 8192,
                          .transpose_a = true,
                          .in = DType::float16,
                          .out = DType::float16,
                          .epilogue = Epilogue::sums_of_b};
  const auto dw = padding_of(weights);
  REQUIRE(dw.has_value());
  CHECK(dw->key.n == 16);
  CHECK_FALSE(dw->a);
  CHECK(dw->b);
  CHECK(dw->c);
  CHECK(dw->bias);
}

TEST_CASE("padding: not where rows are good, numbers are wide, or copies cost more") {
  CHECK_FALSE(padding_of(logits(DType::float32)));
  MatmulKey key = logits();
  key.n = 16;
  CHECK_FALSE(padding_of(key));
  // No row of x^T dy is as long as the batch.
  CHECK_FALSE(padding_of({.m = 4096,
                          .n = 4096,
                          .k = 8191,
                          .transpose_a = true,
                          .in = DType::float16,
                          .out = DType::float16}));
  key = logits();
  key.m = 128;
  key.k = 64;
  CHECK_FALSE(padding_of(key));
  // The large matrix would be copied.
  key = logits();
  key.k = 4095;
  CHECK_FALSE(padding_of(key));
  // Its mask would have other extents.
  key = logits();
  key.epilogue = Epilogue::bias_relu_mask;
  CHECK_FALSE(padding_of(key));
  key = logits();
  key.row_b = 16;
  CHECK_FALSE(padding_of(key));
}

}  // namespace halfstep::backend::cuda
