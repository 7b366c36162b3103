#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "graph/op_handles.h"
#include "graph/ops/fused.h"
#include "graph/ops/ops.h"
#include "passes/graph_rewriter.h"
#include "passes/lowering.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

/// A MatMul and the nodes fused into it.
struct LibraryEpilogue {
  int product = -1;
  int last = -1;  ///< the node whose value is the first output of the fused matmul
  int at = -1;    ///< the node at whose position the fused node is inserted
  std::optional<Value> bias;
  bool relu = false;
  int partner = -1;     ///< index of the matmul that shares a mask with this one; -1: none
  bool masked = false;  ///< it reads a mask
  int sums = -1;        ///< the fused BiasAddGrad

  std::string epilogue() const {
    if (masked) return sums >= 0 ? "relu_gradient_bias_gradient" : "relu_gradient";
    if (sums >= 0) return "sums_of_b";
    if (!bias) return "";
    if (!relu) return "bias";
    return partner >= 0 ? "bias_relu_mask" : "bias_relu";
  }
};

bool along_columns(const Graph& graph, const Node& node) {
  return node.attrs.get<std::string>("data_format") == "NHWC" &&
         graph.type(node.inputs[0]).shape.rank() == 2;
}

class LibraryEpilogueFusion {
 public:
  LibraryEpilogueFusion(const Graph& graph,
                        const graph::OpTable& ops,
                        const KernelSupport& supports)
      : graph_(graph), ops_(ops), supports_(supports), users_(graph), rewriter_(graph, ops) {}

  Graph run() {
    find();
    std::map<int, const LibraryEpilogue*> at;
    for (const LibraryEpilogue& fused : fused_) {
      if (!fused.epilogue().empty()) at[fused.at] = &fused;
    }
    for (int id = 0; id < graph_.size(); ++id) {
      const auto it = at.find(id);
      if (it != at.end()) {
        emit(*it->second);
      } else if (!absorbed_.contains(id)) {
        rewriter_.copy(id);
      }
    }
    return prune(rewriter_.finish());
  }

 private:
  bool transposes(int product, bool a, bool b) const {
    const graph::Attrs& attrs = graph_.node(product).attrs;
    return attrs.get<bool>("transpose_a") == a && attrs.get<bool>("transpose_b") == b;
  }
  std::int64_t depth(int product) const {
    const Node& node = graph_.node(product);
    return graph_.type(node.inputs[0]).shape[node.attrs.get<bool>("transpose_a") ? 0 : 1];
  }

  /// Forward chains come first, so that a backward one can use their masks.
  void find() {
    for (int id = 0; id < graph_.size(); ++id) {
      if (graph_.node(id).is(graph::ops::k_matmul)) add_chain(id);
    }
    for (LibraryEpilogue& fused : fused_) add_sums(fused);
    for (const LibraryEpilogue& fused : fused_) {
      if (fused.epilogue().empty()) continue;
      for (int id = fused.product; id >= 0 && id != fused.last; id = next(id)) absorbed_.insert(id);
      absorbed_.insert(fused.last);
      if (fused.sums >= 0) absorbed_.insert(fused.sums);
    }
  }

  /// The node after this one in its chain.
  int next(int id) const { return users_.of({id, 0}).front(); }

  void add_chain(int product) {
    LibraryEpilogue fused;
    fused.product = fused.last = fused.at = product;
    const int bias = users_.single_user({product, 0}, graph::ops::k_bias_add);
    if (bias >= 0 && graph_.node(bias).inputs[0] == Value{product, 0} &&
        along_columns(graph_, graph_.node(bias))) {
      LibraryEpilogue with = fused;
      with.bias = graph_.node(bias).inputs[1];
      with.last = with.at = bias;
      const int relu = users_.single_user({bias, 0}, graph::ops::k_relu);
      if (relu >= 0) {
        with.relu = true;
        with.last = with.at = relu;
      }
      if (supported(with)) {
        fused = with;
        if (relu >= 0) relu_of_[{relu, 0}] = fused_.size();
      }
    } else {
      add_mask(fused);
    }
    fused_.push_back(fused);
  }

  /// Fuses the ReluGrad after dy W^T, and makes the matmul of its Relu write a mask.
  void add_mask(LibraryEpilogue& fused) {
    const int gradient = users_.single_user({fused.product, 0}, graph::ops::k_relu_grad);
    if (gradient < 0 || graph_.node(gradient).inputs[0] != Value{fused.product, 0}) return;
    const auto relu = relu_of_.find(graph_.node(gradient).inputs[1]);
    if (relu == relu_of_.end() || !transposes(fused.product, false, true)) return;
    LibraryEpilogue& forward = fused_[relu->second];
    if (forward.partner >= 0 || !transposes(forward.product, false, false)) return;
    LibraryEpilogue with = fused, writes = forward;
    with.masked = true;
    with.last = with.at = gradient;
    with.partner = static_cast<int>(relu->second);
    writes.partner = static_cast<int>(fused_.size());
    if (!supported(with) || !supported(writes)) return;
    fused = with;
    forward = writes;
  }

  /// Fuses the bias gradient that sums the result of a masked matmul, or the dy of x^T dy.
  void add_sums(LibraryEpilogue& fused) {
    const bool weights = fused.last == fused.product && transposes(fused.product, true, false);
    if (!fused.masked && !weights) return;
    const Node& product = graph_.node(fused.product);
    const Value summed = fused.masked ? Value{fused.last, 0} : product.inputs[1];
    for (const int user : users_.of(summed)) {
      if (user < 0 || !graph_.node(user).is(graph::ops::k_bias_add_grad) || taken_.contains(user) ||
          !along_columns(graph_, graph_.node(user))) {
        continue;
      }
      LibraryEpilogue with = fused;
      with.sums = user;
      // The position of the first user of either; the operands must be computed before it.
      with.at = std::min(fused.at, user);
      if (std::max(product.inputs[0].node, product.inputs[1].node) >= with.at || !supported(with)) {
        continue;
      }
      taken_.insert(user);
      fused = with;
      return;
    }
  }

  graph::Attrs attributes(const LibraryEpilogue& fused) const {
    const Node& product = graph_.node(fused.product);
    const DType dtype = product.outputs[0].dtype;
    const std::string epilogue = fused.epilogue();
    std::vector<DType> results{dtype};
    if (epilogue == "bias_relu_mask") results.push_back(DType::uint8);
    if (fused.sums >= 0) results.push_back(dtype);
    graph::Attrs attrs{{"T", dtype},
                       {"Tresults", std::move(results)},
                       {"transpose_a", product.attrs.get<bool>("transpose_a")},
                       {"transpose_b", product.attrs.get<bool>("transpose_b")},
                       {"epilogue", epilogue}};
    // During the search for the backward matmul it is not yet in the list.
    if (fused.partner >= 0 && fused.partner < static_cast<int>(fused_.size())) {
      const int partner = fused_[static_cast<std::size_t>(fused.partner)].product;
      attrs.set("partner_k", depth(partner));
    }
    return attrs;
  }

  /// Whether a kernel accepts it.
  bool supported(const LibraryEpilogue& fused) const {
    const Node& product = graph_.node(fused.product);
    const graph::TensorType& y = product.outputs[0];
    if (y.dtype != DType::float32 && !is_half(y.dtype)) return false;
    std::vector<graph::OpInput> inputs = graph::inputs_of(graph_, product);
    if (fused.bias) inputs.push_back(graph_.input(*fused.bias));
    if (fused.masked) {
      const Shape mask{graph::ops::fused_mask_bytes(y.shape[0], y.shape[1])};
      inputs.push_back({{DType::uint8, mask}});
      inputs.push_back({y});
    }
    return supports_(graph::describe(ops_, "FusedMatMul", std::move(inputs), attributes(fused)));
  }

  void emit(const LibraryEpilogue& fused) {
    const Node& product = graph_.node(fused.product);
    graph::Builder& b = rewriter_.builder();
    const graph::ScopeGuard scope(b, product.origin, "");
    std::vector<Value> inputs{rewriter_.mapped(product.inputs[0]),
                              rewriter_.mapped(product.inputs[1])};
    if (fused.bias) inputs.push_back(rewriter_.mapped(*fused.bias));
    if (fused.masked) {
      const Value features = graph_.node(fused.last).inputs[1];
      inputs.push_back(masks_.at(features));
      inputs.push_back(rewriter_.mapped(features));
    }
    // The node takes the name of the activation, not of the matmul.
    const int id = b.add_node(
        "FusedMatMul", std::move(inputs), attributes(fused), graph_.node(fused.last).name);
    rewriter_.keep_control(fused.product, id);
    rewriter_.replace({fused.last, 0}, {id, 0});
    if (fused.sums >= 0) rewriter_.replace({fused.sums, 0}, {id, 1});
    if (fused.relu && fused.partner >= 0) masks_[{fused.last, 0}] = {id, 1};
  }

  const Graph& graph_;
  const graph::OpTable& ops_;
  const KernelSupport& supports_;
  Users users_;
  GraphRewriter rewriter_;
  std::vector<LibraryEpilogue> fused_;
  std::set<int> absorbed_;
  std::set<int> taken_;                   ///< bias gradients that were fused
  std::map<Value, std::size_t> relu_of_;  ///< the result of a fused Relu -> the index of its matmul
  std::map<Value, Value> masks_;          ///< the same -> its mask in the new graph
};

}  // namespace

Graph fuse_library_epilogue(const Graph& graph, const Target& target) {
  const graph::OpTable& ops = graph::op_table();
  return LibraryEpilogueFusion(graph, ops, target.supports).run();
}

}  // namespace halfstep::passes
