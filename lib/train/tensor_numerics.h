#pragma once
// What rounding to 16 bits does to one tensor, counted.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace halfstep::train {

/// How many finite, non-zero values have which binary exponent, floor(log2 |x|).
struct ExponentCounts {
  int lo = 0;                        ///< exponent of counts[0]
  std::vector<std::int64_t> counts;  ///< without zeros at either end

  void add(const ExponentCounts& other);
  std::int64_t total() const;
  /// Values below 2^exponent.
  std::int64_t below(int exponent) const;

  bool operator==(const ExponentCounts&) const = default;
};

/// The powers of two, from low to high, that a loss scale may have; low above high: none.
struct ScaleWindow {
  double low = 0;   ///< at it, at most one in a thousand non-zero values becomes zero
  double high = 0;  ///< at it, the largest value still fits

  bool operator==(const ScaleWindow&) const = default;
};

/// What a tensor of a step holds.
struct TensorNumerics {
  std::string name;
  std::string op;
  std::string layer;
  std::string phase;
  std::string dtype;
  std::int64_t elements = 0;
  /// Largest finite magnitude; of the float32 source where it is at hand.
  double absmax = 0;
  /// log2(largest number of the dtype / absmax), negative where that overflows; absent when all
  /// are zero.
  std::optional<double> headroom_bits;
  double zero_frac = 0;  ///< share of zeros
  /// Share of values that were not zero in the float32 they were rounded from and are now; absent
  /// where that float32 is not at hand.
  std::optional<double> zero_underflow_frac;
  double subnormal_frac = 0;  ///< share below the smallest normal number of the dtype, zeros aside
  std::int64_t nonfinite = 0;
  /// Of the float32 source where it is at hand, of the tensor itself otherwise.
  ExponentCounts exponents;
  std::optional<ScaleWindow> safe_loss_scale;  ///< of gradients in, or on their way to, float16
  std::int64_t steps = 1;                      ///< that these numbers are of
};

/// Measures `tensor` (any floating dtype). `source` is what it was rounded from, or nullptr.
/// Name, op, layer and phase are left to the caller.
TensorNumerics measure(const TensorView& tensor, const TensorView* source);

/// Where a float16 gradient with these exponents may be scaled to. The values stand there times
/// `scale`. Nothing when all are zero.
std::optional<ScaleWindow> safe_window(const ExponentCounts& exponents,
                                       double absmax,
                                       double scale);

/// Adds the same tensor of another step: magnitudes by maximum, shares by mean, windows by what
/// they have in common, counts by sum.
void merge(TensorNumerics& sum, const TensorNumerics& other);

/// One sampled step.
struct NumericsSample {
  std::int64_t ordinal = 0;  ///< of the batch
  std::optional<double> loss_scale;
  std::vector<TensorNumerics> tensors;  ///< in the order in which the step makes them
};

/// All sampled steps of a process.
struct NumericsSummary {
  std::vector<std::int64_t> sampled_steps;  ///< ordinals
  std::vector<TensorNumerics> tensors;

  void add(const NumericsSample& sample);

 private:
  std::map<std::string, std::size_t> index_;
};

}  // namespace halfstep::train
