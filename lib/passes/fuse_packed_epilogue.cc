#include <optional>
#include <string>

#include "graph/op_handles.h"
#include "graph/ops/ops.h"
#include "graph/ops/packed.h"
#include "passes/graph_rewriter.h"
#include "passes/lowering.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

/// A PackedMatMul and the nodes fused into it.
struct PackedEpilogue {
  int product = -1;
  int last = -1;                ///< the node at whose position the fused node is inserted
  Value result;                 ///< of `last`; the results in `forms` are formats of this value
  std::optional<Value> bias;    ///< [n]
  std::optional<Value> masked;  ///< features of the ReluGrad
  bool relu = false;
  std::string forms;
};

/// The letter in `forms` for the result of `node` computed from its input, or nothing.
std::optional<char> form_of(const Graph& graph, const Node& node) {
  if (node.is(graph::ops::k_bias_add_grad) && node.attrs.get<std::string>("data_format") == "NHWC")
    return 's';
  if (node.is(graph::ops::k_cast) && node.outputs[0].dtype == DType::float32) return 'f';
  if (!node.is(graph::ops::k_pack_operand)) return std::nullopt;
  if (graph.type(node.inputs[0]).dtype != node.attrs.get<DType>("dtype")) return std::nullopt;
  const bool transpose = node.attrs.get<bool>("transpose");
  if (node.attrs.get<std::string>("side") == "a") return transpose ? 'T' : 'A';
  return transpose ? std::nullopt : std::optional('B');
}

class PackedEpilogueFusion {
 public:
  PackedEpilogueFusion(const Graph& graph, const graph::OpTable& ops)
      : graph_(graph), users_(graph), rewriter_(graph, ops) {}

  Graph run() {
    find();
    for (int id = 0; id < graph_.size(); ++id) {
      const auto it = emitted_at_.find(id);
      if (it != emitted_at_.end()) {
        emit(fused_[it->second]);
      } else if (graph_.node(id).is(graph::ops::k_all_finite)) {
        check(id);
      } else if (!absorbed_.contains(id)) {
        rewriter_.copy(id);
      }
    }
    return prune(rewriter_.finish());
  }

 private:
  /// Chains first, so that a backward matmul can use the mask of a forward one; then `forms`.
  void find() {
    for (int id = 0; id < graph_.size(); ++id) {
      if (graph_.node(id).is(graph::ops::k_packed_matmul) &&
          graph_.node(id).attrs.get<std::string>("forms") == "r") {
        add_chain(id);
      }
    }
    for (PackedEpilogue& fused : fused_) {
      if (fused.masked) want(fused_[relu_of_.at(*fused.masked)], 'M');
    }
    for (int id = 0; id < graph_.size(); ++id) {
      if (!graph_.node(id).is(graph::ops::k_all_finite)) continue;
      for (const Value& input : graph_.node(id).inputs) {
        if (PackedEpilogue* fused = checked(input)) want(*fused, 'n');
      }
    }
    for (PackedEpilogue& fused : fused_) add_forms(fused);
  }

  /// The matmul whose result, possibly cast to float32, is `value`; null if none.
  PackedEpilogue* checked(Value value) {
    const Node& node = graph_.node(value.node);
    const bool widened = node.is(graph::ops::k_cast) && node.outputs[0].dtype == DType::float32;
    const Value result = widened ? node.inputs[0] : value;
    const auto it = emitted_at_.find(result.node);
    return it != emitted_at_.end() && fused_[it->second].result == result ? &fused_[it->second]
                                                                          : nullptr;
  }

  void add_chain(int product) {
    PackedEpilogue fused;
    fused.product = fused.last = product;
    fused.result = {product, 0};
    const auto absorb = [&](int next) {
      absorbed_[fused.last] = true;
      fused.last = next;
      fused.result = {next, 0};
    };
    const int bias = users_.single_user(fused.result, graph::ops::k_bias_add);
    if (bias >= 0 && graph_.node(bias).inputs[0] == fused.result &&
        graph_.node(bias).attrs.get<std::string>("data_format") == "NHWC") {
      fused.bias = graph_.node(bias).inputs[1];
      absorb(bias);
    }
    const int relu = users_.single_user(fused.result, graph::ops::k_relu);
    const int relu_grad = users_.single_user(fused.result, graph::ops::k_relu_grad);
    if (relu >= 0) {
      fused.relu = true;
      absorb(relu);
      relu_of_[fused.result] = fused_.size();
    } else if (relu_grad >= 0 && graph_.node(relu_grad).inputs[0] == fused.result &&
               relu_of_.contains(graph_.node(relu_grad).inputs[1])) {
      fused.masked = graph_.node(relu_grad).inputs[1];
      absorb(relu_grad);
    }
    emitted_at_[fused.last] = fused_.size();
    fused_.push_back(std::move(fused));
  }

  static void want(PackedEpilogue& fused, char form) {
    if (fused.forms.find(form) == std::string::npos) fused.forms.push_back(form);
  }

  /// Whether `user` reads the features of `value` only for a mask.
  bool is_masked_user(int user, Value value) const {
    for (const PackedEpilogue& fused : fused_) {
      if (fused.last == user && fused.masked == value) {
        return graph_.node(user).inputs[0] != value;
      }
    }
    return false;
  }

  void add_forms(PackedEpilogue& fused) {
    bool row_major = false;
    for (const int user : users_.of(fused.result)) {
      if (user >= 0 && is_masked_user(user, fused.result)) continue;
      if (user >= 0 && graph_.node(user).is(graph::ops::k_all_finite)) continue;
      const std::optional<char> form =
          user >= 0 ? form_of(graph_, graph_.node(user)) : std::nullopt;
      if (form) {
        want(fused, *form);
        absorbed_[user] = true;
      } else {
        row_major = true;
      }
    }
    if (row_major || fused.forms.empty()) fused.forms.insert(0, 1, 'r');
  }

  void emit(const PackedEpilogue& fused) {
    const Node& product = graph_.node(fused.product);
    graph::Builder& b = rewriter_.builder();
    const graph::ScopeGuard scope(b, product.origin, "");
    std::vector<Value> inputs{rewriter_.mapped(product.inputs[0]),
                              rewriter_.mapped(product.inputs[1])};
    graph::Attrs attrs = product.attrs;
    attrs.erase("Targs");
    const DType dtype = attrs.get<DType>("T");
    if (fused.bias) {
      attrs.set("bias", true);
      inputs.push_back(rewriter_.mapped(*fused.bias));
    }
    if (fused.relu) attrs.set("activation", std::string("Relu"));
    if (fused.masked) {
      attrs.set("mask", true);
      inputs.push_back(signs_.at(*fused.masked));
    }
    attrs.set("forms", fused.forms);
    std::vector<DType> results;
    for (const char form : fused.forms) {
      results.push_back(graph::ops::packed_result_dtype(form, dtype));
    }
    attrs.set("Tresults", std::move(results));
    // The node takes the name of the activation, not of the matmul.
    const int id =
        b.add_node("PackedMatMul", std::move(inputs), attrs, graph_.node(fused.last).name);
    rewriter_.keep_control(fused.product, id);

    for (const int user : users_.of(fused.result)) {
      const std::optional<char> form =
          user >= 0 ? form_of(graph_, graph_.node(user)) : std::nullopt;
      if (form) rewriter_.replace({user, 0}, result(fused, id, *form));
    }
    if (fused.forms.find('M') != std::string::npos) {
      signs_[fused.result] = result(fused, id, 'M');
    }
    if (fused.forms.find('n') != std::string::npos) {
      max_norms_[fused.result] = result(fused, id, 'n');
    }
    if (fused.forms.front() == 'r') rewriter_.replace(fused.result, result(fused, id, 'r'));
  }

  /// An AllFinite over the max-norms of those of its inputs that matmuls compute.
  void check(int id) {
    const Node& node = graph_.node(id);
    std::vector<Value> inputs;
    for (const Value& input : node.inputs) {
      const PackedEpilogue* fused = checked(input);
      inputs.push_back(fused != nullptr ? max_norms_.at(fused->result) : rewriter_.mapped(input));
    }
    const graph::ScopeGuard scope(rewriter_.builder(), node.origin, "");
    graph::Attrs attrs = node.attrs;
    attrs.erase("Tin");
    const int now = rewriter_.builder().add_node("AllFinite", std::move(inputs), attrs, node.name);
    rewriter_.keep_control(id, now);
    rewriter_.replace({id, 0}, {now, 0});
  }

  static Value result(const PackedEpilogue& fused, int id, char form) {
    return {id, static_cast<int>(fused.forms.find(form))};
  }

  const Graph& graph_;
  Users users_;
  GraphRewriter rewriter_;
  std::vector<PackedEpilogue> fused_;
  std::map<int, std::size_t> emitted_at_;
  std::map<int, bool> absorbed_;
  std::map<Value, std::size_t> relu_of_;  ///< the result of a fused Relu -> its chain
  std::map<Value, Value> signs_;          ///< the same -> result M in the new graph
  std::map<Value, Value> max_norms_;      ///< a result -> its max-norms in the new graph
};

}  // namespace

Graph fuse_packed_epilogue(const Graph& graph, const Target& /*target*/) {
  const graph::OpTable& ops = graph::op_table();
  return PackedEpilogueFusion(graph, ops).run();
}

}  // namespace halfstep::passes
