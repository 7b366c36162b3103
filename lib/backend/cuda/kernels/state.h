#pragma once
// Writes to variables; nothing is written where *ok is false. `ok` may be null: always write.

#include <array>
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

/// variable += value; `dtype` is any numeric dtype.
struct AssignAddParams {
  DType dtype{};
  void* variable = nullptr;
  const void* value = nullptr;
  std::int64_t elements = 0;
  const bool* ok = nullptr;
};
void assign_add(Stream stream, const AssignAddParams& params);

/// averages[i] = averages[i] * momentum + values[i] * share for each tensor, each operation rounded
/// to float32.
struct MovingAveragesParams {
  static constexpr std::size_t k_max_tensors = 32;
  struct Tensor {
    float* average = nullptr;
    const float* value = nullptr;
    std::int64_t elements = 0;
    float momentum = 0;
    float share = 0;
  };

  std::size_t count = 0;
  std::array<Tensor, k_max_tensors> tensors{};
  const bool* ok = nullptr;
};
void moving_averages(Stream stream, const MovingAveragesParams& params);

/// Row *ordinal mod slots of the log = the bytes of each value, in cells of 8.
struct LogScalarsParams {
  static constexpr std::size_t k_max_values = 64;
  static constexpr std::size_t k_cell = 8;

  void* log = nullptr;
  const std::int64_t* ordinal = nullptr;
  std::int64_t slots = 1;
  std::size_t count = 0;
  std::array<const void*, k_max_values> values{};
  std::array<std::uint8_t, k_max_values> bytes{};  ///< of each, at most k_cell
};
void log_scalars(Stream stream, const LogScalarsParams& params);

/// Where *ok and *taken are false: kept = state, *taken = true. Logs scalars in any case.
struct KeepStateParams {
  void* kept = nullptr;
  const void* state = nullptr;
  std::size_t bytes = 0;
  bool* taken = nullptr;
  const bool* ok = nullptr;
  LogScalarsParams log = {};
  Tickets tickets = {};
};
void keep_state(Stream stream, const KeepStateParams& params);

}  // namespace halfstep::backend::cuda::kernels
