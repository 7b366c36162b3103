#pragma once
// A convolution with random operands, and the expected results by the definition in double.

#include <cstdint>
#include <vector>

#include "backend/cuda/vendor/conv_key.h"
#include "core/tensor.h"
#include "support/cuda/random_values.h"

namespace halfstep::testing {

/// Small images and filters with strides, dilations, paddings and groups.
graph::ops::ConvGeometry random_geometry(RandomStream& random);

struct ConvCase {
  backend::cuda::ConvKey key;
  Tensor x;       ///< [N,H,W,C]
  Tensor filter;  ///< [O,h,w,C/groups]
  Tensor y;       ///< [N,H',W',O]
  Tensor bias;

  ConvCase(const backend::cuda::ConvKey& key, RandomStream& random);

  /// The tensor that the key computes.
  Tensor& output();
  const Tensor& output() const;
  /// Its elements, from the other two tensors.
  std::vector<double> wanted() const;
  /// How far one of them may be off.
  double allowed(double result) const;
};

}  // namespace halfstep::testing
