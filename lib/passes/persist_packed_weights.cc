#include <algorithm>
#include <tuple>

#include "graph/ops/fused_update.h"
#include "passes/rewriter.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

/// The attributes that distinguish two packings of a variable.
auto layout(const graph::Attrs& attrs) {
  return std::tuple(attrs.get<std::string>("side"),
                    attrs.get<bool>("transpose"),
                    attrs.get<std::int64_t>("parts"));
}

/// The PackedVariables of a handle, in the order in which an update writes them.
std::vector<Value> packed_copies(const Rewriter& rewriter, Value handle) {
  std::vector<Value> copies;
  for (const int user : rewriter.users(handle)) {
    const Value copy{user, 0};
    if (user >= 0 && rewriter.node(copy).is(graph::ops::k_packed_variable)) copies.push_back(copy);
  }
  std::sort(copies.begin(), copies.end(), [&](Value a, Value b) {
    return layout(rewriter.node(a).attrs) < layout(rewriter.node(b).attrs);
  });
  return copies;
}

}  // namespace

Graph persist_packed_weights(const Graph& graph, const Target& target) {
  const Writers writers(graph,
                        [&](int id) { return graph.node(id).is(graph::ops::k_fused_update); });
  Rewriter keep(graph, target.supports);
  Value handle, read, pack;
  const Pattern packed =
      op(graph::ops::k_pack_operand, {op(graph::ops::k_read_variable_op, {any(handle)}).as(read)});
  keep.apply(packed.as(pack), [&]() -> Replacement {
    const auto comes_later = [&](int update) { return pack.node < update; };
    if (keep.type(read).dtype != DType::float32 || !writers.allow_copy(handle, comes_later))
      return {};
    graph::Attrs attrs = keep.node(pack).attrs;
    attrs.erase("T");
    for (const Value& copy : packed_copies(keep, handle)) {
      const graph::Attrs& other = keep.node(copy).attrs;
      // An update rounds a variable to one dtype only.
      if (other.get<DType>("dtype") != attrs.get<DType>("dtype")) return {};
      if (layout(other) != layout(attrs)) continue;
      keep.replace(pack, copy);
      return {};
    }
    return {{.op = "PackedVariable", .inputs = {handle}, .attrs = attrs, .results = {{pack}}}};
  });

  Rewriter write(keep.finish());
  Value update;
  write.apply(op(graph::ops::k_fused_update, {any(handle)}).as(update), [&]() -> Replacement {
    const std::vector<Value> copies = packed_copies(write, handle);
    if (copies.empty()) return {};
    const Node& node = write.node(update);
    NewNode fused{.op = "FusedUpdate", .inputs = node.inputs, .attrs = node.attrs};
    fused.inputs.insert(
        fused.inputs.begin() +
            static_cast<std::ptrdiff_t>(graph::ops::fused_update_ports(node).packed_begin),
        copies.begin(),
        copies.end());
    fused.attrs.erase("Targs");
    fused.attrs.set("packed", static_cast<std::int64_t>(copies.size()));
    return {std::move(fused)};
  });
  return prune(write.finish());
}

}  // namespace halfstep::passes
