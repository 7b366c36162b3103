#pragma once
// An input that is broadcast to the shape of the output, read in runs of the output.

#include <array>
#include <cstdint>

#include "backend/cpu/vector/convert.h"
#include "core/shape.h"

namespace halfstep::backend::cpu::vector {

class Operand {
 public:
  /// Floats of scratch for start() and read(), per thread.
  static constexpr std::int64_t k_scratch = 2 * k_run;

  Operand() = default;
  /// An input of this dtype and shape, broadcast to the shape `output`.
  Operand(const Loops& loops, DType dtype, const Shape& shape, const Shape& output);

  /// Lets read() prefetch the next elements.
  void prefetch() { source_.prefetches = true; }
  /// Prepares `scratch` for reading `data` in runs of at most `max_length` elements.
  void start(const void* data, float* scratch, std::int64_t max_length = k_run) const;
  /// The values broadcast to elements [i, i + n) of the output, n <= k_run; in place or in
  /// `scratch`.
  const float* read(const void* data, float* scratch, std::int64_t i, std::int64_t n) const;

 private:
  /// Merged axes of the output over which the operand is either dense or a single element.
  struct Axis {
    std::int64_t extent = 1;
    std::int64_t stride = 0;
  };

  void gather(const void* data, float* scratch, std::int64_t i, std::int64_t n) const;

  Source source_;
  std::array<Axis, Shape::k_max_rank> axes_;  // outermost first
  std::size_t axis_count_ = 0;
  std::int64_t period_ = 0;  // of a short operand, which start() repeats in scratch
};

}  // namespace halfstep::backend::cpu::vector
