#pragma once
// A tensor with a name: the input of the NPZ and safetensors writers.

#include <string>

#include "core/tensor.h"

namespace halfstep::data {

struct NamedTensor {
  std::string name;
  TensorView view;
};

}  // namespace halfstep::data
