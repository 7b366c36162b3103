#pragma once
// The extents and the memory order of FusedAttention and FusedAttentionGrad, shared by the shape
// rules and the kernels, those of devices too.

#include <cstdint>

namespace halfstep {
class Shape;
namespace graph {
class Attrs;
}
}  // namespace halfstep

namespace halfstep::graph::ops {

/// `batch` times `heads` independent attentions ("items") of `queries` rows over `keys` rows.
struct AttentionGeometry {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t depth = 1;        ///< channels of a query and of a key
  std::int64_t value_depth = 1;  ///< channels of a value
  double scale = 1;              ///< factor of the scores
  bool causal = false;           ///< query i sees keys 0 to i alone
  bool steps_first = false;      ///< layout BSHD

  constexpr std::int64_t items() const { return batch * heads; }
  /// Elements from row to row of an item, in a tensor with rows of `width` values.
  constexpr std::int64_t stride(std::int64_t width) const {
    return steps_first ? heads * width : width;
  }
  /// The first element of an item, in a tensor of `steps` rows of `width` values per item.
  constexpr std::int64_t first(std::int64_t item, std::int64_t steps, std::int64_t width) const {
    return steps_first ? (item / heads * steps * heads + item % heads) * width
                       : item * steps * width;
  }
  /// The weight of query `i` and key `j` among those of all items.
  constexpr std::int64_t weight(std::int64_t item, std::int64_t i, std::int64_t j) const {
    return (item * queries + i) * keys + j;
  }
  /// Keys that query `i` sees.
  constexpr std::int64_t seen(std::int64_t i) const { return causal && i < keys ? i + 1 : keys; }
};

/// The geometry of a node with these operands; reads scale, causal and layout. Errors: ShapeError.
AttentionGeometry attention_geometry(const Attrs& attrs,
                                     const Shape& query,
                                     const Shape& key,
                                     const Shape& value);

/// The dropout of a node's weights: weight `w` is kept where number first + w of the draw that
/// RandomUniformFromOrdinal makes with this seed and stream is at least `rate`.
struct AttentionDropout {
  double rate = 0;  ///< 0: none
  std::uint64_t seed = 0, stream = 0;
  std::int64_t first = 0;

  explicit AttentionDropout(const Attrs& attrs);
  /// Factor of the weights that are kept.
  constexpr double scale() const { return 1 / (1 - rate); }
};

}  // namespace halfstep::graph::ops
