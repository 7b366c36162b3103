#pragma once
// Predicted execution times of kernels. Where several kernels accept a node and the cost model
// knows them, the one with the least predicted time runs it.

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

/// Samples of a batch, and so rows of a dense layer's product, for which times are predicted. The
/// actual number is left out on purpose, so that an op gets the same kernel in batches of every
/// size. A kernel that loses in small batches loses microseconds there, one that loses in large
/// batches seconds.
inline constexpr std::int64_t k_nominal_batch = 512;

/// The shape and dtype of an op that kernels of several techniques compute, without its batch.
struct Workload {
  /// matmul: shape is {n, k} of an [m, k] x [k, n] product, a dense layer's forward pass.
  /// matmul_backward_data: {n, k} of an [m, k] x [n, k]^T product, its gradient towards the input.
  /// matmul_backward_weights: {n, m} of a [k, m]^T x [k, n] product, its gradient towards the
  /// weights; k is the batch. pack: shape is {1, k} of an [m, k] operand that is brought into the
  /// order of the matrix units. conv_forward, conv_backward_data, conv_backward_filter: shape is
  /// {pixels of y, input channels, output channels, filter taps, stride}.
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
  /// bfloat16 products for each product of float16 values, 3 or 4; 1 for other dtypes; 0 in a
  /// sample of a kernel whose time does not depend on it.
  std::int64_t products = 1;
  Extents shape{1, 1, 1, 1, 1};

  /// Multiplications and additions for k_nominal_batch samples.
  double flops() const;
};

std::string_view name(Workload::Kind kind);
/// Whether it is a matrix product.
bool is_matmul(Workload::Kind kind);

/// The workload of a MatMul, PackedMatMul, PackedMatMulUpdate, Conv2D, Conv2DBias,
/// Conv2DBackpropInput or Conv2DBackpropFilter node; none for other ops, for groups and for empty
/// tensors.
std::optional<Workload> workload_of(const NodeView& node);

/// Measured times of kernels on one kind of processor, and what they say of shapes in between.
class CostModel {
 public:
  /// One measurement: seconds of one thread for k_nominal_batch samples.
  struct Sample {
    std::string kernel;
    Workload workload;
    double seconds = 0;
  };

  CostModel() = default;
  /// `origin`: "shipped for amx", or where and when it was measured.
  CostModel(std::string origin, std::vector<Sample> samples);

  /// The text form: a line "# origin", then one line a sample:
  /// kind, dtype, products, extents, seconds and kernel, separated by spaces.
  /// Errors: UserError(data) with file and line for text that is not of this form.
  static CostModel parse(const std::string& text, const std::string& file);
  std::string text() const;

  const std::string& origin() const { return origin_; }
  const std::vector<Sample>& samples() const { return samples_; }

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
  /// Of all kernels that have samples for the workload, the fastest first.
  std::vector<Prediction> predictions(const Workload& workload) const;

 private:
  std::string origin_;
  std::vector<Sample> samples_;
};

/// The model that the program carries for processors with instruction set `isa`; empty for one that
/// none was measured for.
const CostModel& shipped_cost_model(Isa isa);

/// Whether `packed`, a PackedMatMul on `kernel`, is predicted to take no longer than `product`, the
/// MatMul that it is to replace, with a pass over its result for bias and activation, which a
/// packed product has in its epilogue. An operand that a PackOperand node makes is counted with its
/// packing; another one arrives packed: from the epilogue of the product that computes it or, a
/// weight, from its update. Where nothing was measured, products with n >= 16 and k >= 32 are
/// packed: padding to 32 then at most doubles n.
Accepts packing_pays(const NodeView& product,
                     const NodeView& packed,
                     std::string_view kernel,
                     const Capabilities& capabilities);

/// The model that chooses for `capabilities`: its own, or the shipped one of its instruction set.
const CostModel& cost_model(const Capabilities& capabilities);

}  // namespace halfstep::backend
