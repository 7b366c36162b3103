#pragma once
// A FusedUpdate on any part of its variable, for its kernel and for matmuls that apply the gradient
// in their epilogue.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/cpu/packed/packing.h"
#include "backend/cpu/vector/convert.h"
#include "backend/kernel.h"
#include "backend/update_inputs.h"

namespace halfstep::backend::cpu::vector {

inline constexpr int k_max_resources = 4;

/// The loop of an optimizer's op in one instruction set's table.
struct UpdateRule {
  graph::ops::UpdatePorts ports;
  std::vector<ScalarInput<float>> inputs;
  Update loop;
  float weight_decay;  ///< the attribute

  /// `op` must be in the table, such as "ResourceApplyAdam".
  UpdateRule(const Loops& loops, std::string_view op, const graph::Attrs& attrs);

  /// Updates n elements of the variable, state[0], and of its slots by n elements of the gradient.
  void run(float* const* state,
           const float* gradient,
           std::int64_t n,
           const functions::UpdateScalars<float>& scalars) const;
  /// The scalars of a launch, of the dtype that `source` reads.
  functions::UpdateScalars<float> scalars(const Args& args, const Source& source) const;
};

/// The update of a node with the ports of a FusedUpdate. Variable and slots are float32; a gradient
/// of float32, float16 or bfloat16 is widened and unscaled; the new weights are packed.
class FusedUpdate {
 public:
  /// `gradient`: its dtype, and the shape of the variable.
  FusedUpdate(const NodeView& node,
              const graph::TensorType& gradient,
              const Capabilities& capabilities);

  /// The inputs of a launch, with the scalars as float32.
  struct Inputs {
    const Args& args;
    functions::UpdateScalars<float> scalars;
    float unscale;
  };
  Inputs inputs(const Args& args) const;

  bool packs() const { return !packings_.empty(); }

  /// Updates elements [i, i + n) of the variable, n <= k_run, by n elements of the gradient.
  void elements(const Inputs& inputs,
                std::int64_t i,
                std::int64_t n,
                const std::byte* gradient) const;

  /// Columns [column, column + columns) of rows [32 panel, 32 panel + 32) of the variable.
  struct Tile {
    std::int64_t panel, column, columns;
    const std::byte* gradient;  ///< of the first element
    std::int64_t stride;        ///< elements of the gradient from row to row
    std::byte* scratch;         ///< 32 x columns weights in the packed dtype; may be `gradient`
  };
  std::int64_t rows_of(const Tile& tile) const;
  /// Updates rows [begin, end) of a tile, and copies the new weights to its scratch.
  void rows(const Inputs& inputs, const Tile& tile, std::int64_t begin, std::int64_t end) const;
  /// Prefetches the memory that rows() will read and write.
  void prefetch(const Inputs& inputs, const Tile& tile, std::int64_t begin, std::int64_t end) const;
  /// Packs a tile after all its rows are updated. Call fence() after the last tile of a thread.
  void pack(const Inputs& inputs, const Tile& tile) const;
  void fence() const { blocks_->fence(); }

 private:
  const Loops* loops_;
  graph::ops::FusedUpdatePorts ports_;
  UpdateRule rule_;
  Source gradient_;
  Scale scale_;  ///< of the gradient's dtype
  Shape shape_;
  const packed::BlockKernels* blocks_;
  std::vector<packed::Packing> packings_;
  Narrow narrow_ = nullptr;  ///< to the dtype of the packed weights
};

/// Whether a node with a gradient of this dtype is supported as a FusedUpdate.
Accepts accepts_fused_update(const NodeView& node, DType gradient);

}  // namespace halfstep::backend::cpu::vector
