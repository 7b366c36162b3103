#pragma once
// The modes, gates and extents of RNN and RNNGrad, shared by the shape rules and the kernels, those
// of devices too.

#include <cstdint>

namespace halfstep {
class Shape;
namespace graph {
class Attrs;
}
}  // namespace halfstep

namespace halfstep::graph::ops {

/// lstm: long short-term memory; gru: gated recurrent unit with reset_after; gru_reset_before: with
/// the reset gate before the candidate's recurrent matmul; simple_rnn: h = activation(z).
enum class RnnMode { lstm, gru, gru_reset_before, simple_rnn };

/// The extents of a layer: `gates` blocks of `units` columns in the projections, `saved` blocks in
/// result `gates`, which the gradient reads.
struct RnnGeometry {
  RnnMode mode = RnnMode::lstm;
  std::int64_t batch = 1;
  std::int64_t steps = 1;
  std::int64_t units = 1;
  std::int64_t gates = 4;
  std::int64_t saved = 4;
  bool backwards = false;  ///< the sequence is processed from its end
  bool training = true;    ///< the results for the gradient are written

  constexpr std::int64_t columns() const { return gates * units; }
  constexpr bool is_gru() const {
    return mode == RnnMode::gru || mode == RnnMode::gru_reset_before;
  }
  /// The columns of the recurrent kernel that h is multiplied by; gru_reset_before multiplies those
  /// of the candidate by the gated h.
  constexpr std::int64_t state_columns() const {
    return mode == RnnMode::gru_reset_before ? 2 * units : columns();
  }
  /// The position in the sequence of the `i`-th processed time step.
  constexpr std::int64_t position(std::int64_t i) const { return backwards ? steps - 1 - i : i; }
};

/// Geometry of a node with projections [batch, steps, gates * units], or of a gradient node with
/// output [batch, steps, units]. Reads rnn_mode, go_backwards and is_training. Errors: ShapeError.
RnnGeometry rnn_geometry(const Attrs& attrs, const Shape& projections);
RnnGeometry rnn_grad_geometry(const Attrs& attrs, const Shape& output);

}  // namespace halfstep::graph::ops
