#pragma once
// Softmax over rows [rows, classes] and the cross-entropies with their gradients, computed from the
// logits less the largest one of the row. A NaN or +inf logit makes its row NaN.

#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// y = softmax(x) or its logarithm. y may alias x.
struct SoftmaxParams {
  DType dtype{};
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  bool logarithm = false;
};
void softmax(Stream stream, const SoftmaxParams& params);

/// loss[row] = -sum(labels * log_softmax(logits)), gradient = softmax(logits) - labels. A class
/// with label 0 adds nothing, whatever its logit. All of one dtype.
struct CrossEntropyParams {
  DType dtype{};
  const void* logits = nullptr;
  const void* labels = nullptr;  ///< [rows, classes]
  void* loss = nullptr;          ///< [rows]
  void* gradient = nullptr;      ///< [rows, classes]
  std::int64_t rows = 0;
  std::int64_t classes = 0;
};
void cross_entropy(Stream stream, const CrossEntropyParams& params);

/// loss[row] = -log_softmax(logits)[label], gradient = softmax(logits) - onehot(label). A label out
/// of range makes the row's loss and gradient NaN.
struct SparseCrossEntropyParams {
  DType dtype{};
  DType label{};  ///< int32 or int64
  const void* logits = nullptr;
  const void* labels = nullptr;  ///< [rows]
  void* loss = nullptr;          ///< [rows]
  void* gradient = nullptr;      ///< [rows, classes]
  std::int64_t rows = 0;
  std::int64_t classes = 0;
};
void sparse_cross_entropy(Stream stream, const SparseCrossEntropyParams& params);

/// The softmax of the logits in float32, and the sparse cross-entropy of it, as at the op's
/// definition (graph/ops/softmax.cc). Each result may be null. Sums over the rows have a fixed
/// order.
struct SoftmaxLossParams {
  DType dtype{};  ///< of logits and gradient: float32, float16 or bfloat16
  DType label{};  ///< int32 or int64
  const void* logits = nullptr;
  const void* labels = nullptr;  ///< [rows]
  const float* seed = nullptr;   ///< with the gradient
  float* probabilities = nullptr;
  float* losses = nullptr;
  float* mean = nullptr;
  float* correct = nullptr;
  void* gradient = nullptr;
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  std::int64_t columns = 0;   ///< of logits and gradient, which is 0 beyond the classes
  void* workspace = nullptr;  ///< of softmax_loss_workspace() bytes
  Tickets tickets = {};
};
std::size_t softmax_loss_workspace(const SoftmaxLossParams& params);
void softmax_loss(Stream stream, const SoftmaxLossParams& params);

}  // namespace halfstep::backend::cuda::kernels
