#pragma once
// What the writers of NPZ and safetensors files take.

#include <string>

#include "core/tensor.h"

namespace halfstep::data {

struct NamedTensor {
  std::string name;
  TensorView view;
};

}  // namespace halfstep::data
