#pragma once
// Predicted execution times of kernels. Where several kernels accept a node and the cost model
// covers them, the one with the smallest predicted time runs it.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/capabilities.h"
#include "core/dtype.h"

namespace halfstep::backend {

struct Accepts;
struct NodeView;

/// The batch size for which times are predicted, also the number of rows of a dense layer's GEMM.
/// The actual size is ignored on purpose, so that an op gets the same kernel for batches of every
/// size: a wrong choice costs microseconds in small batches, but seconds in large ones.
inline constexpr std::int64_t k_nominal_batch = 512;

/// The shape and dtype of an op that several kernels compute, without its batch.
struct Workload {
  /// matmul: shape is {n, k} of an [m, k] x [k, n] GEMM, the forward pass of a dense layer.
  /// matmul_backward_data: {n, k} of an [m, k] x [n, k]^T GEMM, its gradient with respect to the
  /// input. matmul_backward_weights: {n, m} of a [k, m]^T x [k, n] GEMM, its gradient with respect
  /// to the weights; k is the batch. pack: shape is {1, k} of an [m, k] operand that is packed into
  /// the blocked order of the matrix units. conv_forward, conv_backward_data, conv_backward_filter:
  /// shape is {pixels of y, input channels, output channels, filter taps, stride}.
  enum class Kind {
    matmul,
    matmul_backward_data,
    matmul_backward_weights,
    pack,
    conv_forward,
    conv_backward_data,
    conv_backward_filter
  };
  using Extents = std::array<std::int64_t, 5>;

  Kind kind = Kind::matmul;
  DType dtype = DType::float32;
  /// bfloat16 partial products per multiplication of float16 values, 3 or 4; 1 for other dtypes; 0
  /// in a sample of a kernel whose time does not depend on it.
  std::int64_t products = 1;
  Extents shape{1, 1, 1, 1, 1};

  /// Multiplications and additions for k_nominal_batch samples.
  double flops() const;
};

std::string_view name(Workload::Kind kind);
/// Whether it is one of the three GEMMs.
bool is_matmul(Workload::Kind kind);

/// The workload of a MatMul, PackedMatMul, PackedMatMulUpdate, Conv2D, Conv2DBias,
/// Conv2DBackpropInput or Conv2DBackpropFilter node; none for other ops, for grouped convolutions
/// and for empty tensors.
std::optional<Workload> workload_of(const NodeView& node);

/// Measured times of kernels on one kind of processor, and their interpolation between shapes.
class CostModel {
 public:
  /// One measurement: seconds of one thread for k_nominal_batch samples.
  struct Sample {
    std::string kernel;
    Workload workload;
    double seconds = 0;
  };
  /// The rate of the processor's fastest multiply-add unit on operands that stay in registers.
  struct Peak {
    int threads = 1;
    double flops_per_second = 0;  ///< of all threads together
    std::string processor;        ///< processor_name()
    bool operator==(const Peak&) const = default;
  };

  CostModel() = default;
  /// `origin`: "shipped for amx", or the machine and date of the measurement.
  CostModel(std::string origin, std::vector<Sample> samples, std::vector<Peak> peaks = {});

  /// The text form: a line "# origin", a line "# peak THREADS RATE PROCESSOR" per peak, then one
  /// line per sample: kind, dtype, `products`, extents, seconds and kernel, separated by spaces.
  /// Errors: UserError(data) with file and line for malformed text.
  static CostModel parse(const std::string& text, const std::string& file);
  std::string text() const;

  const std::string& origin() const { return origin_; }
  const std::vector<Sample>& samples() const { return samples_; }
  const std::vector<Peak>& peaks() const { return peaks_; }

  /// Predicted seconds of one thread for k_nominal_batch samples, or none where `kernel` has no
  /// sample of this kind and dtype. Equal to the measurement at a measured shape; elsewhere
  ///   flops * exp(sum_i w_i log(seconds_i / flops_i) / sum_i w_i),  w_i = 1 / d_i^4,
  /// with d_i the Euclidean distance of the logarithms of the shapes (inverse distance weighting;
  /// Shepard 1968).
  std::optional<double> seconds(std::string_view kernel, const Workload& workload) const;

  struct Prediction {
    std::string_view kernel;
    double seconds = 0;
  };
  /// For all kernels that have samples for the workload, the fastest first.
  std::vector<Prediction> predictions(const Workload& workload) const;

 private:
  std::string origin_;
  std::vector<Sample> samples_;
  std::vector<Peak> peaks_;
};

/// The model shipped for processors with instruction set `isa`; empty where none was measured.
const CostModel& shipped_cost_model(Isa isa);

/// Whether `packed`, a PackedMatMul on `kernel`, is predicted to be at least as fast as `matmul`,
/// the MatMul that it would replace, plus a pass over the result for bias and activation, which a
/// PackedMatMul applies in its epilogue. The time includes packing an operand that comes from a
/// PackOperand node; any other operand arrives packed, from the epilogue of the matmul that
/// computes it or, for a weight, from its update. Without measurements matmuls with n >= 16 and k
/// >= 32 are packed: padding to 32 then at most doubles n.
Accepts packing_pays(const NodeView& matmul,
                     const NodeView& packed,
                     std::string_view kernel,
                     const Capabilities& capabilities);

/// The model used for `capabilities`: `capabilities.costs`, or the model shipped for its `isa`.
const CostModel& cost_model(const Capabilities& capabilities);

/// "amx Intel(R) Xeon(R) Platinum 8481C": the instruction set in use, and this machine's processor.
std::string processor_name(const Capabilities& capabilities);

/// The peak of this processor with the instruction set and the threads of `capabilities`; null
/// where the model used has none: only `halfstep tune` measures one.
const CostModel::Peak* register_peak(const Capabilities& capabilities);

}  // namespace halfstep::backend
