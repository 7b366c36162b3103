#pragma once
// The allowed error of a computed number, and a comparison that reports misses.

#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace halfstep::testing {

/// The distance between the numbers below the smallest normal one.
double smallest(DType dtype);

/// The largest error that rounding explains: one unit in the last place of `stored` at `result`,
/// and one of `accumulated` at `magnitude` for each of `terms` roundings on the way.
double tolerance(
    DType stored, DType accumulated, std::int64_t terms, double magnitude, double result);

/// The same for a result of the magnitude of its terms.
double tolerance(DType stored, DType accumulated, std::int64_t terms, double magnitude);

/// `x` rounded to `dtype` (to nearest even), as a double.
double rounded(DType dtype, double x);

struct Comparison {
  std::int64_t misses = 0;
  double worst = 0;  ///< the largest error in units of the allowed error
  std::string text;  ///< the first five misses and the worst; empty when there are none

  explicit operator bool() const { return misses == 0; }
};

/// Compares `got` with `want`, which may have a wider dtype. Floating: within tolerance(), NaN with
/// NaN, infinities with overflowing values. Integers and booleans: equal.
Comparison compare(const TensorView& got,
                   const TensorView& want,
                   DType accumulated,
                   std::int64_t terms,
                   double magnitude);

/// Compares bit for bit.
Comparison compare_bits(const TensorView& got, const TensorView& want);

}  // namespace halfstep::testing
