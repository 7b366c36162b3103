#include "precision/paint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/ranges.h"
#include "graph/op_handles.h"
#include "precision/list_clusters.h"
#include "precision/reasons.h"

namespace halfstep::precision {
namespace {

using graph::Graph;
using graph::Node;

enum class Direction { upstream, downstream, both };

class Painter {
 public:
  explicit Painter(const PaintInputs& job)
      : job_(job),
        graph_(job.graph),
        types_(job.types),
        lists_(job.lists),
        allow_(size()),
        deny_(size()),
        after_allow_(size()),
        visited_(size(), -1) {
    for (const Vertex& vertex : types_.vertices) {
      PaintedVertex painted;
      painted.node = vertex.node;
      painted.attr = vertex.label();
      report_.push_back(std::move(painted));
    }
  }

  PaintResult run() {
    clusters_ = join_list_clusters(graph_, job_.processed, job_.functions, job_.types);
    for (const ListCluster& cluster : clusters_) {
      for (int v : cluster.denied) {
        deny(v, Rule::list_cluster, types_.first[static_cast<std::size_t>(cluster.culprit)]);
      }
    }
    seed_allow();
    const bool found = contains(allow_, true);
    if (found) {
      spread_deny();
      match_clusters();
      allow_between_allows();
      allow_infer_after_allow();
      spread_clear();
      unpaint();
      match_clusters();
      match_loops();
      adopt_casts();
    }
    return finish(!found);
  }

 private:
  std::size_t size() const { return types_.vertices.size(); }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const Node& node_of(int v) const { return graph_.node(types_.vertex(v).node); }
  bool processed(int v) const { return job_.processed[at(types_.vertex(v).node)]; }
  bool on(List list, int v) const { return lists_.on(list, node_of(v).listed_op()); }
  bool is_float32(int v) const { return types_.vertex(v).dtype == DType::float32; }
  bool admits_target(int v) const { return admits(node_of(v), types_.vertex(v), job_.target); }
  bool supports_target(int v) const {
    return admits_target(v) && (!job_.supports || job_.supports(node_of(v).op, job_.target));
  }

  void record(int v, Paint paint, Rule rule, int cause) {
    PaintedVertex& painted = report_[at(v)];
    painted.paint = paint;
    painted.rule = rule;
    painted.cause = cause;
  }
  void allow(int v, Rule rule, int cause) {
    if (allow_[at(v)]) return;
    allow_[at(v)] = true;
    record(v, Paint::allow, rule, cause);
  }
  void deny(int v, Rule rule, int cause) {
    if (deny_[at(v)]) return;
    deny_[at(v)] = true;
    record(v, Paint::deny, rule, cause);
  }
  void revoke_allow(int v, Rule rule, int cause) {
    if (!allow_[at(v)]) return;
    allow_[at(v)] = false;
    record(v, deny_[at(v)] ? Paint::deny : Paint::none, rule, cause);
  }

  /// Visits `root` and then, depth first, the vertices that `enter` accepts. A vertex rejected once
  /// is rejected for the whole walk.
  template <class Enter, class Visit>
  void walk(int root, Direction direction, Enter enter, Visit visit) {
    ++walk_;
    visited_[at(root)] = walk_;
    visit(root);
    std::vector<int> stack{root};
    const auto follow = [&](const std::vector<int>& next) {
      for (int v : next) {
        if (visited_[at(v)] == walk_) continue;
        visited_[at(v)] = walk_;
        if (!enter(v)) continue;
        visit(v);
        stack.push_back(v);
      }
    };
    while (!stack.empty()) {
      const int v = stack.back();
      stack.pop_back();
      if (direction != Direction::downstream) follow(types_.fanin[at(v)]);
      if (direction != Direction::upstream) follow(types_.fanout[at(v)]);
    }
  }

  /// TensorFlow never forces constants, dense cross-entropy, stateful ops, ops with ref arguments
  /// and ops of the graph's function library.
  static bool can_force(const Node& node) {
    if (node.def == nullptr || node.def->stateful ||
        node.is(graph::ops::k_const, graph::ops::k_softmax_cross_entropy_with_logits)) {
      return false;
    }
    const auto is_ref = [](const graph::Port& port) { return port.ref; };
    return std::ranges::none_of(node.def->inputs, is_ref) &&
           std::ranges::none_of(node.def->outputs, is_ref);
  }

  void seed_allow() {
    for (int v = 0; v < types_.size(); ++v) {
      if (!processed(v)) continue;
      if (on(List::allow, v)) {
        allow(v, Rule::allow_seed, -1);
      } else if (job_.force_all && can_force(node_of(v))) {
        allow(v, Rule::forced, -1);
      }
    }
  }

  /// Denial propagates forward from deny ops through infer ops, and through clear ops that lead to
  /// one.
  void spread_deny() {
    if (job_.force_all) return;
    std::vector<bool> passable(size());
    for (int root = 0; root < types_.size(); ++root) {
      if (!on(List::deny, root) && !on(List::infer, root)) continue;
      walk(
          root,
          Direction::upstream,
          [&](int v) { return !passable[at(v)] && on(List::clear, v); },
          [&](int v) { passable[at(v)] = true; });
    }
    for (int root = 0; root < types_.size(); ++root) {
      if (deny_[at(root)] || !on(List::deny, root)) continue;
      walk(
          root,
          Direction::downstream,
          [&](int v) { return !deny_[at(v)] && passable[at(v)]; },
          [&](int v) { deny(v, Rule::deny_spread, v == root ? -1 : root); });
    }
  }

  /// Members of a list agree: one denied vertex denies all, else one allowed vertex allows all.
  void match_clusters() {
    for (const ListCluster& cluster : clusters_) {
      int denied = -1;
      int allowed = -1;
      for (int v : cluster.elements) {
        if (denied < 0 && deny_[at(v)]) denied = v;
        if (allowed < 0 && allow_[at(v)]) allowed = v;
      }
      for (int v : cluster.elements) {
        if (denied >= 0) {
          if (allow_[at(v)] || !deny_[at(v)]) record(v, Paint::deny, Rule::list_cluster, denied);
          allow_[at(v)] = false;
          deny_[at(v)] = true;
        } else if (allowed >= 0) {
          allow(v, Rule::list_cluster, allowed);
        }
      }
    }
  }

  /// Infer and clear ops on a path from one allow op to another.
  void allow_between_allows() {
    std::vector<bool> before_allow(size());
    for (int root = 0; root < types_.size(); ++root) {
      if (!processed(root) || !on(List::allow, root)) continue;
      walk(
          root,
          Direction::downstream,
          [&](int v) {
            return !after_allow_[at(v)] && !on(List::allow, v) && !deny_[at(v)] && processed(v) &&
                   is_float32(v) && (on(List::clear, v) || on(List::infer, v)) &&
                   supports_target(v);
          },
          [&](int v) { after_allow_[at(v)] = true; });
    }
    for (int root = 0; root < types_.size(); ++root) {
      if (!processed(root) || before_allow[at(root)] || !on(List::allow, root)) continue;
      walk(
          root,
          Direction::upstream,
          [&](int v) { return !before_allow[at(v)] && after_allow_[at(v)]; },
          [&](int v) {
            before_allow[at(v)] = true;
            allow(v, Rule::between_allows, root);
          });
    }
  }

  /// One pass in vertex order: a chain of infer ops is followed as far as its nodes are in order.
  void allow_infer_after_allow() {
    if (!job_.infer_follows) return;
    for (int v = 0; v < types_.size(); ++v) {
      if (!processed(v) || deny_[at(v)] || allow_[at(v)] || !on(List::infer, v) || !is_float32(v) ||
          !admits_target(v)) {
        continue;
      }
      int allowed = -1;
      bool harmed = false;
      for (int from : types_.fanin[at(v)]) {
        if (deny_[at(from)]) harmed = true;
        if (allow_[at(from)] && allowed < 0) allowed = from;
      }
      if (allowed >= 0 && !harmed) allow(v, Rule::infer_after_allow, allowed);
    }
  }

  void spread_clear() {
    std::vector<bool> reached(size());
    for (int root = 0; root < types_.size(); ++root) {
      if (!processed(root) || reached[at(root)] || !allow_[at(root)]) continue;
      walk(
          root,
          Direction::both,
          [&](int v) {
            return !allow_[at(v)] && !deny_[at(v)] && processed(v) && is_float32(v) &&
                   on(List::clear, v) && supports_target(v) &&
                   !reads_ref_variable(graph_, node_of(v));
          },
          [&](int v) {
            reached[at(v)] = true;
            allow(v, Rule::clear_spread, root);
          });
    }
  }

  bool is_quantized_node(int node) const {
    for (int v = types_.first[at(node)]; v < types_.first[at(node) + 1]; ++v) {
      if (is_quantized(types_.vertex(v).dtype)) return true;
    }
    return false;
  }

  void unpaint() {
    for (int v = 0; v < types_.size(); ++v) {
      if (!allow_[at(v)] || !on(List::allow, v)) continue;
      if (!admits_target(v) || is_quantized_node(types_.vertex(v).node)) {
        revoke_allow(v, Rule::unpainted, -1);
      }
    }
  }

  /// Calls visit(consumer node, input) for every data input that reads output 0 of `node`.
  template <class Visit>
  void each_consumer(int node, Visit visit) const {
    for (const auto& [consumer, input] : consumers_[at(node)]) visit(consumer, input);
  }

  void index_consumers() {
    consumers_.resize(at(graph_.size()));
    for (int id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i].port == 0) consumers_[at(node.inputs[i].node)].emplace_back(id, i);
      }
    }
  }

  void match_loops() {
    index_consumers();
    for (int id = 0; id < graph_.size(); ++id) {
      if (!graph_.node(id).is(graph::ops::k_next_iteration)) continue;
      const int own = types_.find(id, "T");
      std::vector<int> merges;
      int unconverted = -1;
      each_consumer(id, [&](int consumer, std::size_t) {
        const Node& merge = graph_.node(consumer);
        if (!merge.is(graph::ops::k_merge)) {
          throw RewriteFailure(
              fmt::format("Expected Merge node after NextIteration, got {}", merge.op));
        }
        merges.push_back(types_.find(consumer, "T"));
        if (!allow_[at(merges.back())] && unconverted < 0) unconverted = merges.back();
      });
      if (unconverted >= 0) {
        for (int merge : merges) revoke_allow(merge, Rule::loop, unconverted);
        revoke_allow(own, Rule::loop, unconverted);
      } else {
        allow(own, Rule::loop, merges.empty() ? -1 : merges.front());
      }
    }
  }

  /// A cast to float32 whose readers are all converted may cast to 16 bits instead.
  void adopt_casts() {
    for (int id = 0; id < graph_.size(); ++id) {
      if (!graph_.node(id).is(graph::ops::k_cast)) continue;
      const int own = types_.find(id, "DstT");
      if (own < 0 || !is_float32(own)) continue;
      int reader = -1;
      bool all = true;
      each_consumer(id, [&](int consumer, std::size_t input) {
        reader = types_.inputs[at(consumer)][input];
        all = all && allow_[at(reader)];
      });
      if (reader >= 0 && all) allow(own, Rule::existing_cast, reader);
    }
  }

  PaintResult finish(bool nothing_to_do) {
    for (int v = 0; v < types_.size(); ++v) {
      PaintedVertex& painted = report_[at(v)];
      if (painted.rule == Rule::none && !processed(v)) {
        painted.rule = node_of(v).preserve ? Rule::preserved : Rule::unprocessed;
      }
    }
    for (int v = 0; v < types_.size(); ++v) explain(v);
    return {std::move(allow_), std::move(report_), nothing_to_do};
  }

  void explain(int v) {
    PaintedVertex& painted = report_[at(v)];
    VertexTraits traits;
    traits.list = lists_.of(node_of(v).listed_op());
    traits.float32 = is_float32(v);
    traits.supported = supports_target(v);
    traits.admitted = admits_target(v);
    traits.after_allow = after_allow_[at(v)];
    traits.ref_read = reads_ref_variable(graph_, node_of(v));
    if (painted.rule == Rule::none && traits.list == List::infer) {
      for (int from : types_.fanin[at(v)]) {
        if (deny_[at(from)] && painted.cause < 0) painted.cause = from;
      }
    }
    for (const ListCluster& cluster : clusters_) {
      if (painted.rule != Rule::list_cluster || cluster.reason.empty()) continue;
      const auto& members = cluster.elements;
      if (std::ranges::binary_search(members, v)) traits.cluster = cluster.reason;
    }
    const int cause = painted.cause;
    painted.reason = reason(graph_,
                            painted,
                            cause < 0 ? nullptr : &report_[at(cause)],
                            traits,
                            job_.infer_follows,
                            job_.target);
  }

  const PaintInputs& job_;
  const Graph& graph_;
  const TypeGraph& types_;
  const OpLists& lists_;
  std::vector<ListCluster> clusters_;
  std::vector<bool> allow_;
  std::vector<bool> deny_;
  std::vector<bool> after_allow_;  ///< reached by the downstream half of between_allows
  std::vector<int> visited_;       ///< number of the last walk that saw a vertex
  int walk_ = 0;
  std::vector<PaintedVertex> report_;
  std::vector<std::vector<std::pair<int, std::size_t>>> consumers_;
};

constexpr std::array<std::string_view, 3> k_paints{"none", "allow", "deny"};
constexpr std::array<std::string_view, 13> k_rules{"none",
                                                   "preserved",
                                                   "unprocessed",
                                                   "allow_seed",
                                                   "forced",
                                                   "deny_spread",
                                                   "list_cluster",
                                                   "between_allows",
                                                   "infer_after_allow",
                                                   "clear_spread",
                                                   "unpainted",
                                                   "loop",
                                                   "existing_cast"};

}  // namespace

std::span<const std::string_view> names_of(Paint) { return k_paints; }
std::span<const std::string_view> names_of(Rule) { return k_rules; }
std::string_view name(Paint paint) { return k_paints[static_cast<std::size_t>(paint)]; }
std::string_view name(Rule rule) { return k_rules[static_cast<std::size_t>(rule)]; }

PaintResult paint(const PaintInputs& job) { return Painter(job).run(); }

bool reads_ref_variable(const Graph& graph, const Node& node) {
  const Node* at = &node;
  // An Enter counts as the Identity that it passes into a loop.
  for (int depth = 0; at->is(graph::ops::k_enter) && depth < graph.size(); ++depth) {
    if (at->inputs.empty()) return false;
    at = &graph.node(at->inputs[0].node);
  }
  if (!at->is(graph::ops::k_identity) || at->inputs.empty()) return false;
  const std::string& from = graph.node(at->inputs[0].node).op;
  return from == "Variable" || from == "VariableV2";
}

}  // namespace halfstep::precision
