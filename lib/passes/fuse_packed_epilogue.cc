#include "graph/ops/packed.h"
#include "passes/rewriter.h"

namespace halfstep::passes {
namespace {

using graph::Node;
using graph::Value;

const std::string& forms_of(const Node& product) { return product.attrs.get<std::string>("forms"); }

bool has_form(const Node& product, char form) {
  return forms_of(product).find(form) != std::string::npos;
}

/// Result `form` of PackedMatMul `id`.
Value result(const Node& product, int id, char form) {
  return {id, static_cast<int>(forms_of(product).find(form))};
}

/// The letter in `forms` for the result of `node` computed from `product`; 0 if there is none.
char form_of(const Node& product, const Node& node) {
  if (node.is(graph::ops::k_bias_add_grad) && is_nhwc(node)) return 's';
  if (node.is(graph::ops::k_cast) && node.outputs[0].dtype == DType::float32) return 'f';
  if (!node.is(graph::ops::k_pack_operand)) return 0;
  if (graph::ops::packed_format(node.attrs) != graph::ops::operand_format(product.attrs)) return 0;
  const bool transpose = node.attrs.get<bool>("transpose");
  if (node.attrs.get<std::string>("side") == "a") return transpose ? 'T' : 'A';
  return transpose ? '\0' : 'B';
}

/// PackedMatMul `id` with other results, a letter in `forms` for each. Those that it had before
/// replace the old ones.
NewNode with_forms(const Rewriter& rewriter, int id, const std::string& forms) {
  const Node& product = rewriter.graph().node(id);
  NewNode node{.op = "PackedMatMul", .inputs = product.inputs, .attrs = product.attrs};
  node.attrs.erase("Targs");
  node.attrs.set("forms", forms);
  std::vector<DType> results;
  for (const char form : forms) {
    results.push_back(graph::ops::packed_result_dtype(form, product.attrs.get<DType>("T")));
  }
  node.attrs.set("Tresults", std::move(results));
  node.at = node.origin = node.named = id;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    if (has_form(product, forms[i])) {
      node.results.push_back({result(product, id, forms[i]), static_cast<int>(i)});
    }
  }
  return node;
}

/// PackedMatMul `product` and the op after it, `last`: at the position of `last`, with its name.
NewNode with_epilogue(const Rewriter& rewriter, Value product, Value last) {
  const Node& old = rewriter.node(product);
  NewNode node = with_forms(rewriter, product.node, forms_of(old));
  node.at = node.named = last.node;
  node.results = {{last}};
  return node;
}

/// BiasAdd and Relu forward; backward the ReluGrad of a Relu that is fused into a matmul, which
/// then writes a mask.
void fuse_activations(Rewriter& rewriter) {
  Value product, bias, last, features;
  const Pattern packed =
      op(graph::ops::k_packed_matmul).as(product).used_once().where([](const Node& node) {
        return forms_of(node) == "r" && node.attrs.get<std::string>("activation").empty() &&
               !node.attrs.get<bool>("mask");
      });
  const Pattern biased = op(graph::ops::k_bias_add, {packed, any(bias)}).where(is_nhwc);
  rewriter.apply(biased.as(last), [&]() -> Replacement {
    if (rewriter.node(product).inputs.size() > 2) return {};
    NewNode node = with_epilogue(rewriter, product, last);
    node.inputs.push_back(bias);
    node.attrs.set("bias", true);
    return {std::move(node)};
  });
  rewriter.apply(op(graph::ops::k_relu, {packed}).as(last), [&]() -> Replacement {
    NewNode node = with_epilogue(rewriter, product, last);
    node.attrs.set("activation", std::string("Relu"));
    return {std::move(node)};
  });
  const Pattern activated =
      op(graph::ops::k_packed_matmul).as(features).where([](const Node& node) {
        return node.attrs.get<std::string>("activation") == "Relu";
      });
  rewriter.apply(op(graph::ops::k_relu_grad, {packed, activated}).as(last), [&]() -> Replacement {
    const Node& forward = rewriter.node(features);
    NewNode reads = with_epilogue(rewriter, product, last);
    reads.attrs.set("mask", true);
    if (has_form(forward, 'M')) {
      reads.inputs.push_back(result(forward, features.node, 'M'));
      return {std::move(reads)};
    }
    reads.inputs.push_back(made(0, static_cast<int>(forms_of(forward).size())));
    return {with_forms(rewriter, features.node, forms_of(forward) + 'M'), std::move(reads)};
  });
}

/// An AllFinite reads the max-norms of those of its inputs that matmuls compute.
void fuse_finite_check(Rewriter& rewriter) {
  Value check;
  rewriter.apply(op(graph::ops::k_all_finite).as(check), [&]() -> Replacement {
    Replacement nodes;
    std::map<Value, Value> max_norms;  // by the result of the matmul
    NewNode fused{.op = "AllFinite", .inputs = rewriter.node(check).inputs};
    for (Value& input : fused.inputs) {
      const Node& node = rewriter.node(input);
      const bool widened = node.is(graph::ops::k_cast) && node.outputs[0].dtype == DType::float32;
      const Value value = widened ? node.inputs[0] : input;
      const Node& product = rewriter.node(value);
      if (!product.is(graph::ops::k_packed_matmul) || value.port != 0) continue;
      const auto [it, first] = max_norms.try_emplace(value, result(product, value.node, 'n'));
      if (first && !has_form(product, 'n')) {
        it->second =
            made(static_cast<int>(nodes.size()), static_cast<int>(forms_of(product).size()));
        nodes.push_back(with_forms(rewriter, value.node, forms_of(product) + 'n'));
      }
      input = it->second;
    }
    if (max_norms.empty()) return {};
    fused.attrs = rewriter.node(check).attrs;
    fused.attrs.erase("Tin");
    fused.results = {{check}};
    nodes.push_back(std::move(fused));
    return nodes;
  });
}

/// Column sums, casts to float32 and packing become further results, which take the place of the
/// row-major one where nothing else reads it.
void fuse_forms(Rewriter& rewriter) {
  Value product;
  rewriter.apply(op(graph::ops::k_packed_matmul).as(product), [&]() -> Replacement {
    std::string forms = forms_of(rewriter.node(product));
    std::vector<std::pair<Value, char>> users;
    bool row_major = false;
    for (const int user : rewriter.users(product)) {
      const char form =
          user >= 0 ? form_of(rewriter.node(product), rewriter.graph().node(user)) : '\0';
      row_major = row_major || form == 0;
      if (form == 0) continue;
      if (forms.find(form) == std::string::npos) forms.push_back(form);
      users.push_back({{user, 0}, form});
    }
    if (!row_major && forms.size() > 1) forms.erase(0, 1);
    if (forms == forms_of(rewriter.node(product))) return {};
    NewNode node = with_forms(rewriter, product.node, forms);
    for (const auto& [value, form] : users) {
      node.results.push_back({value, static_cast<int>(forms.find(form))});
    }
    return {std::move(node)};
  });
}

}  // namespace

graph::Graph fuse_packed_epilogue(const graph::Graph& graph, const Target& /*target*/) {
  Rewriter rewriter(graph);
  fuse_activations(rewriter);
  fuse_finite_check(rewriter);
  fuse_forms(rewriter);
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
