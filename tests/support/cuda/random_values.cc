#include "support/cuda/random_values.h"

#include <cstring>

namespace halfstep::testing {

Tensor random_tensor(DType dtype, std::int64_t elements, RandomStream& random) {
  Tensor wide(DType::float32, {elements});
  for (float& x : wide.span<float>()) x = 2 * random.uniform() - 1;
  Tensor tensor(dtype, {elements});
  convert(wide.view(), tensor.view());
  return tensor;
}

Tensor poisoned_tensor(DType dtype, std::int64_t elements) {
  Tensor tensor(dtype, {elements});
  std::memset(tensor.view().data, 0xff, tensor.bytes());
  return tensor;
}

}  // namespace halfstep::testing
