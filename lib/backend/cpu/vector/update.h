#pragma once
// The work of a FusedUpdate on any part of its variable, for its own kernel and for matmuls that
// apply the gradient they compute.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/cpu/packed/packing.h"
#include "backend/cpu/vector/convert.h"
#include "backend/kernel.h"
#include "graph/ops/fused_update.h"

namespace halfstep::backend::cpu::vector {

inline constexpr int k_max_resources = 4;
inline constexpr std::size_t k_max_scalars = 8;

/// The loop of an optimizer's op in one instruction set's table.
struct UpdateRule {
  const UpdateRow* row;
  Update loop;
  float weight_decay;  ///< the attribute
  std::size_t rate;    ///< index of the learning rate among the scalars

  /// `op` must be in the table, such as "ResourceApplyAdam".
  UpdateRule(const Loops& loops, std::string_view op, const graph::Attrs& attrs);

  /// The number of handles (variable and slots), and the input index of the gradient.
  std::size_t resources() const { return static_cast<std::size_t>(row->resources); }
  std::size_t gradient() const { return static_cast<std::size_t>(row->gradient); }
  /// Updates n elements of the variable, state[0], and its slots by as many of the gradient.
  void run(float* const* state, const float* gradient, std::int64_t n, const float* scalars) const;
  /// The scalars among the first `inputs` inputs, of the dtype that `source` reads.
  std::array<float, k_max_scalars> scalars(const Args& args,
                                           std::size_t inputs,
                                           const Source& source) const;
};

/// A node with the ports of a FusedUpdate. Float32 variable and slots; a gradient of any computed
/// dtype is widened and unscaled; the new weights are packed.
class FusedUpdate {
 public:
  /// `gradient`: its dtype, and the shape of the variable.
  FusedUpdate(const NodeView& node,
              const graph::TensorType& gradient,
              const Capabilities& capabilities);

  /// The values that a launch reads once.
  struct Step {
    const Args& args;
    std::array<float, k_max_scalars> scalars;
    float unscale;
  };
  Step step(const Args& args) const;

  bool packs() const { return !packings_.empty(); }

  /// Elements [i, i + n) of the variable, n <= k_run, by as many of the gradient.
  void elements(const Step& step, std::int64_t i, std::int64_t n, const std::byte* gradient) const;

  /// Columns [column, column + columns) of rows [32 panel, 32 panel + 32).
  struct Piece {
    std::int64_t panel, column, columns;
    const std::byte* gradient;  ///< of the first of them
    std::int64_t stride;        ///< elements of the gradient from row to row
    std::byte* scratch;  ///< scratch: 32 x columns new weights in the packed dtype; may be the
                         ///< gradient's memory
  };
  std::int64_t rows_of(const Piece& piece) const;
  /// Updates rows [begin, end) of a piece in the order of memory, and copies the new weights to
  /// `scratch`.
  void rows(const Step& step, const Piece& piece, std::int64_t begin, std::int64_t end) const;
  /// Prefetches the memory that rows() will read and write.
  void ask_for(const Step& step, const Piece& piece, std::int64_t begin, std::int64_t end) const;
  /// Packs a piece after all its rows are updated. Call done() after the last piece of a thread.
  void pack(const Step& step, const Piece& piece) const;
  void done() const { blocks_->fence(); }

 private:
  const Loops* loops_;
  graph::ops::FusedUpdatePorts ports_;
  UpdateRule rule_;
  Source gradient_;
  Scale scale_;  ///< of the gradient's dtype
  Shape shape_;
  const packed::Blocks* blocks_;
  std::vector<packed::Packing> packings_;
  Narrow narrow_ = nullptr;  ///< to the dtype of the packed weights
};

/// Whether a node with a gradient of this dtype is supported as a FusedUpdate.
Accepts accepts_fused_update(const NodeView& node, DType gradient);

}  // namespace halfstep::backend::cpu::vector
