#pragma once
// Writing to variables; nothing is written where *ok is false. `ok` may be null: always.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// variable = value.
struct AssignParams {
  void* variable = nullptr;
  const void* value = nullptr;
  std::size_t bytes = 0;
  const bool* ok = nullptr;
};
void assign(Stream stream, const AssignParams& params);

/// variable += value; `dtype` is any number's.
struct AssignAddParams {
  DType dtype{};
  void* variable = nullptr;
  const void* value = nullptr;
  std::int64_t elements = 0;
  const bool* ok = nullptr;
};
void assign_add(Stream stream, const AssignAddParams& params);

}  // namespace halfstep::backend::cuda::kernels
