#pragma once
// Reductions over any axes. Max and Min propagate NaN; ArgMax and ArgMin return the first index. An
// empty reduction gives the neutral element (mean: NaN, for integers 0).

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"
#include "core/shape.h"

namespace halfstep::backend::cuda::kernels {

enum class Reduction { all, any, arg_max, arg_min, max, mean, min, prod, sum };

inline constexpr std::array<std::pair<std::string_view, Reduction>, 9> k_reductions{{
    {"All", Reduction::all},
    {"Any", Reduction::any},
    {"ArgMax", Reduction::arg_max},
    {"ArgMin", Reduction::arg_min},
    {"Max", Reduction::max},
    {"Mean", Reduction::mean},
    {"Min", Reduction::min},
    {"Prod", Reduction::prod},
    {"Sum", Reduction::sum},
}};

/// The reduction of an op, such as "ArgMax"; nothing for other ops.
std::optional<Reduction> reduction_of(std::string_view op);

/// x has `shape`; y has one element per index along the kept axes, in row-major order.
struct ReduceParams {
  Reduction reduction{};
  DType dtype{};               ///< of x, and of y except for indices
  DType index = DType::int64;  ///< of arg_max's and arg_min's y: int32 or int64
  const void* x = nullptr;
  void* y = nullptr;
  Shape shape;
  unsigned axes = 0;          ///< bit i: axis i is reduced
  void* workspace = nullptr;  ///< of reduce_workspace() bytes
  Tickets tickets = {};
};
/// Depends on reduction, dtype, shape and axes.
std::size_t reduce_workspace(const ReduceParams& params);
void reduce(Stream stream, const ReduceParams& params);

/// y = sum(x^2) / 2, floating.
struct L2LossParams {
  DType dtype{};
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t elements = 0;
  void* workspace = nullptr;  ///< of l2_loss_workspace() bytes
  Tickets tickets = {};
};
std::size_t l2_loss_workspace(const L2LossParams& params);
void l2_loss(Stream stream, const L2LossParams& params);

/// y[row] = fewer than k classes of the row score above its target; false where the target is out
/// of range or a score of the row is not finite.
/// Shapes: scores [rows, classes], targets [rows], k [], y [rows]. Dtypes: float32; `index`: bool.
struct InTopKParams {
  DType index{};  ///< of targets and k: int32 or int64
  const float* scores = nullptr;
  const void* targets = nullptr;
  const void* k = nullptr;
  bool* y = nullptr;
  std::int64_t rows = 0;
  std::int64_t classes = 0;
};
void in_top_k(Stream stream, const InTopKParams& params);

}  // namespace halfstep::backend::cuda::kernels
