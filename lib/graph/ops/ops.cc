#include "graph/ops/ops.h"

#include "core/error.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {

Value reduce(Builder& b,
             std::string_view op,
             Value x,
             std::optional<std::vector<std::int64_t>> axes,
             bool keep_dims) {
  if (!axes) {
    axes.emplace();
    const auto rank = static_cast<std::int64_t>(b.shape(x).rank());
    for (std::int64_t i = 0; i < rank; ++i) axes->push_back(i);
  }
  return b.add(op, {x, b.ints(std::move(*axes))}, {{"keep_dims", keep_dims}});
}

Value reshape(Builder& b, Value x, const Shape& shape) {
  if (b.shape(x) == shape) return x;
  return b.add("Reshape", {x, b.ints(extents(shape))});
}

Value unbroadcast(Builder& b, Value dy, const Shape& shape) {
  const Shape from = b.shape(dy);
  if (from == shape) return dy;
  require(shape.rank() <= from.rank(),
          "{} does not broadcast to {}",
          to_string(shape),
          to_string(from));
  const std::size_t lead = from.rank() - shape.rank();
  std::vector<std::int64_t> stretched;
  for (std::size_t i = 0; i < from.rank(); ++i) {
    if (i < lead || (shape[i - lead] == 1 && from[i] != 1)) {
      stretched.push_back(static_cast<std::int64_t>(i));
    }
  }
  if (!stretched.empty()) dy = reduce(b, "Sum", dy, std::move(stretched));
  return reshape(b, dy, shape);
}

Value accumulate(Builder& b, const std::vector<Value>& parts) {
  require(!parts.empty(), "nothing to accumulate");
  if (parts.size() == 1) return parts[0];
  return b.add(parts.size() == 2 ? "AddV2" : "AddN", parts);
}

}  // namespace halfstep::graph::ops
