#pragma once
// Statistics of one tensor about rounding to 16 bits.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/fields.h"
#include "core/tensor.h"

namespace halfstep::train {

/// A histogram of the binary exponents, floor(log2 |x|), of the finite, non-zero values.
struct ExponentCounts {
  int lo = 0;                        ///< exponent of counts[0]
  std::vector<std::int64_t> counts;  ///< without empty bins at either end

  /// Adds the counts of another tensor or step.
  void add(const ExponentCounts& other);
  std::int64_t total() const;
  /// Values below 2^exponent.
  std::int64_t below(int exponent) const;

  void fields(Fields& f);
  bool operator==(const ExponentCounts&) const = default;
};

/// The range of loss scales, powers of two, that is safe; low > high: empty.
struct ScaleWindow {
  double low =
      0;  ///< the lowest scale at which at most one in a thousand non-zero values becomes zero
  double high = 0;  ///< the highest scale at which the largest value does not overflow

  bool operator==(const ScaleWindow&) const = default;
};

/// Statistics of a tensor of a step.
struct TensorNumerics {
  std::string name;
  std::string op;
  std::string layer;
  std::string phase;
  std::string dtype;
  std::int64_t elements = 0;
  /// Largest finite magnitude; of the float32 source where it is available.
  double absmax = 0;
  /// log2(largest finite number of the dtype / absmax), negative where absmax overflows it; absent
  /// when all values are zero.
  std::optional<double> headroom_bits;
  double zero_frac = 0;  ///< fraction of zeros
  /// Fraction of values that are zero now but were not zero in float32 before rounding; absent
  /// where the float32 source is not available.
  std::optional<double> zero_underflow_frac;
  double subnormal_frac =
      0;  ///< fraction of non-zero values below the dtype's smallest normal number
  std::int64_t nonfinite = 0;
  /// Of the float32 source where it is available, else of the tensor itself.
  ExponentCounts exponents;
  std::optional<ScaleWindow> safe_loss_scale;  ///< of gradients in, or on their way to, float16
  std::int64_t steps = 1;                      ///< that these numbers are of

  void fields(Fields& f);
};

/// Measures `tensor` (any floating dtype) on the host. `source` is the tensor it was rounded from,
/// or nullptr. The caller sets name, op, layer and phase.
TensorNumerics measure(const TensorView& tensor, const TensorView* source);

/// The safe loss scales of a float16 gradient with these exponents, measured at the loss scale
/// `scale`. Nothing when all values are zero.
std::optional<ScaleWindow> safe_window(const ExponentCounts& exponents,
                                       double absmax,
                                       double scale);

/// Merges the statistics of the same tensor in another step: magnitudes by maximum, fractions by
/// mean, ranges by intersection, counts by sum.
void merge(TensorNumerics& sum, const TensorNumerics& other);

/// One sampled step.
struct NumericsSample {
  std::int64_t ordinal = 0;  ///< of the batch
  std::optional<double> loss_scale;
  std::vector<TensorNumerics> tensors;  ///< in execution order
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
