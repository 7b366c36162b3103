#include "precision/list_clusters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/ranges.h"

namespace halfstep::precision {
namespace {

using graph::Graph;
using graph::Node;

constexpr std::array<std::string_view, 6> k_readers{"TensorListConcat",
                                                    "TensorListConcatV2",
                                                    "TensorListGather",
                                                    "TensorListGetItem",
                                                    "TensorListPopBack",
                                                    "TensorListStack"};
constexpr std::array<std::string_view, 8> k_writers{"TensorListFromTensor",
                                                    "TensorListPushBack",
                                                    "TensorListPushBackBatch",
                                                    "TensorListScatter",
                                                    "TensorListScatterV2",
                                                    "TensorListScatterIntoExistingList",
                                                    "TensorListSetItem",
                                                    "TensorListSplit"};
constexpr std::array<std::string_view, 7> k_boundaries{"_Arg",
                                                       "_Retval",
                                                       "OptionalFromValue",
                                                       "OptionalGetValue",
                                                       "PartitionedCall",
                                                       "Placeholder",
                                                       "StatefulPartitionedCall"};

class Finder {
 public:
  Finder(const Graph& graph,
         const std::vector<bool>& processed,
         const std::set<std::string>& functions,
         TypeGraph& types)
      : graph_(graph), processed_(processed), functions_(functions), types_(types) {}

  std::vector<ListCluster> run() {
    std::vector<ListCluster> clusters;
    std::vector<bool> seen(types_.vertices.size());
    for (int root = 0; root < types_.size(); ++root) {
      const int node = types_.vertex(root).node;
      if (seen[static_cast<std::size_t>(root)] || !is_handle(root) || !processed(node) ||
          element(node) < 0) {
        continue;
      }
      clusters.push_back(collect(root, seen));
    }
    std::vector<std::pair<int, int>> edges;
    for (const ListCluster& cluster : clusters) {
      for (int reader : cluster.elements) join_writers(reader, edges);
    }
    for (const auto& [from, to] : edges) types_.connect(from, to);
    return clusters;
  }

 private:
  bool processed(int node) const { return processed_[static_cast<std::size_t>(node)]; }
  const Node& node_of(int vertex) const { return graph_.node(types_.vertex(vertex).node); }
  bool is_handle(int vertex) const { return types_.vertex(vertex).fixed == DType::variant; }

  /// The float32 element vertex of a list op, or -1.
  int element(int node) const {
    if (graph_.node(node).op.find("TensorList") == std::string::npos) return -1;
    const auto n = static_cast<std::size_t>(node);
    for (int v = types_.first[n]; v < types_.first[n + 1]; ++v) {
      const Vertex& vertex = types_.vertex(v);
      if (!vertex.fixed && vertex.index < 0 && vertex.dtype == DType::float32) return v;
    }
    return -1;
  }

  /// All vertices connected to `root` by handles, in either direction.
  ListCluster collect(int root, std::vector<bool>& seen) {
    ListCluster cluster;
    std::vector<int> stack{root};
    seen[static_cast<std::size_t>(root)] = true;
    while (!stack.empty()) {
      const int at = stack.back();
      stack.pop_back();
      visit(at, cluster);
      for (const auto* next : {&types_.fanin, &types_.fanout}) {
        for (int v : (*next)[static_cast<std::size_t>(at)]) {
          if (seen[static_cast<std::size_t>(v)]) continue;
          seen[static_cast<std::size_t>(v)] = true;
          stack.push_back(v);
        }
      }
    }
    std::ranges::sort(cluster.elements);
    cluster.elements.erase(std::unique(cluster.elements.begin(), cluster.elements.end()),
                           cluster.elements.end());
    if (!cluster.reason.empty()) {
      for (int element : cluster.elements) {
        if (processed(types_.vertex(element).node)) cluster.denied.push_back(element);
      }
    }
    return cluster;
  }

  void visit(int vertex, ListCluster& cluster) const {
    const int id = types_.vertex(vertex).node;
    const Node& node = graph_.node(id);
    const int own = element(id);
    if (own >= 0) {
      cluster.elements.push_back(own);
      if (!processed(id)) {
        cluster.reason =
            fmt::format("its tensor list is shared with {}, which keeps its dtypes", node.name);
        cluster.culprit = id;
      }
    } else if (contains(k_boundaries, node.op) || functions_.contains(node.op)) {
      cluster.reason = fmt::format("its tensor list passes through {} ({})", node.name, node.op);
      cluster.culprit = id;
    }
  }

  /// Follows a reader's handle upstream to all writers that precede it.
  void join_writers(int reader, std::vector<std::pair<int, int>>& edges) const {
    if (!contains(k_readers, node_of(reader).op)) return;
    const int handle = types_.find(types_.vertex(reader).node, DType::variant);
    if (handle < 0) return;
    std::vector<int> stack{handle};
    std::set<int> seen{handle};
    while (!stack.empty()) {
      const int at = stack.back();
      stack.pop_back();
      const int node = types_.vertex(at).node;
      if (!processed(node)) continue;
      if (contains(k_writers, graph_.node(node).op)) {
        const int writer = element(node);
        if (writer >= 0) edges.emplace_back(writer, reader);
      }
      for (int v : types_.fanin[static_cast<std::size_t>(at)]) {
        if (seen.insert(v).second) stack.push_back(v);
      }
    }
  }

  const Graph& graph_;
  const std::vector<bool>& processed_;
  const std::set<std::string>& functions_;
  TypeGraph& types_;
};

}  // namespace

std::vector<ListCluster> join_list_clusters(const Graph& graph,
                                            const std::vector<bool>& processed,
                                            const std::set<std::string>& functions,
                                            TypeGraph& types) {
  return Finder(graph, processed, functions, types).run();
}

}  // namespace halfstep::precision
