#include "graph/ops/packed.h"
#include "passes/rewriter.h"

namespace halfstep::passes {
namespace {

using graph::Node;
using graph::Value;

/// The attribute `forms` of a PackedMatMul: a letter for each of its outputs.
const std::string& outputs_of(const Node& matmul) { return matmul.attrs.get<std::string>("forms"); }

bool has_output(const Node& matmul, char letter) {
  return outputs_of(matmul).find(letter) != std::string::npos;
}

/// The result of PackedMatMul `id` with this letter in `forms`.
Value result(const Node& matmul, int id, char letter) {
  return {id, static_cast<int>(outputs_of(matmul).find(letter))};
}

/// The letter in `forms` for the result of `node` computed from `matmul`; 0 if there is none.
char output_for(const Node& matmul, const Node& node) {
  if (node.is(graph::ops::k_bias_add_grad) && is_nhwc(node)) return 's';
  if (node.is(graph::ops::k_cast) && node.outputs[0].dtype == DType::float32) return 'f';
  if (!node.is(graph::ops::k_pack_operand)) return 0;
  if (graph::ops::packed_format(node.attrs) != graph::ops::operand_format(matmul.attrs)) return 0;
  const bool transpose = node.attrs.get<bool>("transpose");
  if (node.attrs.get<std::string>("side") == "a") return transpose ? 'T' : 'A';
  return transpose ? '\0' : 'B';
}

/// PackedMatMul `id` with other outputs, a letter in `forms` for each. Outputs that it had before
/// replace the old ones.
NewNode with_outputs(const Rewriter& rewriter, int id, const std::string& letters) {
  const Node& matmul = rewriter.graph().node(id);
  NewNode node{.op = "PackedMatMul", .inputs = matmul.inputs, .attrs = matmul.attrs};
  node.attrs.erase("Targs");
  node.attrs.set("forms", letters);
  std::vector<DType> results;
  for (const char letter : letters) {
    results.push_back(graph::ops::packed_result_dtype(letter, matmul.attrs.get<DType>("T")));
  }
  node.attrs.set("Tresults", std::move(results));
  node.at = node.origin = node.named = id;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (has_output(matmul, letters[i])) {
      node.results.push_back({result(matmul, id, letters[i]), static_cast<int>(i)});
    }
  }
  return node;
}

/// The node that replaces PackedMatMul `matmul` and the op after it, `last`, at the position and
/// with the name of `last`.
NewNode with_epilogue(const Rewriter& rewriter, Value matmul, Value last) {
  const Node& old = rewriter.node(matmul);
  NewNode node = with_outputs(rewriter, matmul.node, outputs_of(old));
  node.at = node.named = last.node;
  node.results = {{last}};
  return node;
}

/// Fuses BiasAdd and Relu forward; backward the ReluGrad of a Relu that is fused into a matmul,
/// which then writes a mask.
void fuse_activations(Rewriter& rewriter) {
  Value matmul, bias, last, features;
  const Pattern packed =
      op(graph::ops::k_packed_matmul).as(matmul).used_once().where([](const Node& node) {
        return outputs_of(node) == "r" && node.attrs.get<std::string>("activation").empty() &&
               !node.attrs.get<bool>("mask");
      });
  const Pattern biased = op(graph::ops::k_bias_add, {packed, any(bias)}).where(is_nhwc);
  rewriter.apply(biased.as(last), [&]() -> Replacement {
    if (rewriter.node(matmul).inputs.size() > 2) return {};
    NewNode node = with_epilogue(rewriter, matmul, last);
    node.inputs.push_back(bias);
    node.attrs.set("bias", true);
    return {std::move(node)};
  });
  rewriter.apply(op(graph::ops::k_relu, {packed}).as(last), [&]() -> Replacement {
    NewNode node = with_epilogue(rewriter, matmul, last);
    node.attrs.set("activation", std::string("Relu"));
    return {std::move(node)};
  });
  const Pattern activated =
      op(graph::ops::k_packed_matmul).as(features).where([](const Node& node) {
        return node.attrs.get<std::string>("activation") == "Relu";
      });
  rewriter.apply(op(graph::ops::k_relu_grad, {packed, activated}).as(last), [&]() -> Replacement {
    const Node& forward = rewriter.node(features);
    NewNode reads = with_epilogue(rewriter, matmul, last);
    reads.attrs.set("mask", true);
    if (has_output(forward, 'M')) {
      reads.inputs.push_back(result(forward, features.node, 'M'));
      return {std::move(reads)};
    }
    reads.inputs.push_back(new_value(0, static_cast<int>(outputs_of(forward).size())));
    return {with_outputs(rewriter, features.node, outputs_of(forward) + 'M'), std::move(reads)};
  });
}

/// Lets an AllFinite read the max-norms of its inputs that matmuls compute.
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
      const Node& matmul = rewriter.node(value);
      if (!matmul.is(graph::ops::k_packed_matmul) || value.port != 0) continue;
      const auto [it, first] = max_norms.try_emplace(value, result(matmul, value.node, 'n'));
      if (first && !has_output(matmul, 'n')) {
        it->second =
            new_value(static_cast<int>(nodes.size()), static_cast<int>(outputs_of(matmul).size()));
        nodes.push_back(with_outputs(rewriter, value.node, outputs_of(matmul) + 'n'));
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

/// Makes column sums, casts to float32 and packing outputs of the matmul, which then does not write
/// its row-major result if nothing else reads it.
void fuse_outputs(Rewriter& rewriter) {
  Value matmul;
  rewriter.apply(op(graph::ops::k_packed_matmul).as(matmul), [&]() -> Replacement {
    std::string letters = outputs_of(rewriter.node(matmul));
    std::vector<std::pair<Value, char>> users;
    bool row_major = false;
    for (const int user : rewriter.users(matmul)) {
      const char letter =
          user >= 0 ? output_for(rewriter.node(matmul), rewriter.graph().node(user)) : '\0';
      row_major = row_major || letter == 0;
      if (letter == 0) continue;
      if (letters.find(letter) == std::string::npos) letters.push_back(letter);
      users.push_back({{user, 0}, letter});
    }
    if (!row_major && letters.size() > 1) letters.erase(0, 1);
    if (letters == outputs_of(rewriter.node(matmul))) return {};
    NewNode node = with_outputs(rewriter, matmul.node, letters);
    for (const auto& [value, letter] : users) {
      node.results.push_back({value, static_cast<int>(letters.find(letter))});
    }
    return {std::move(node)};
  });
}

}  // namespace

graph::Graph fuse_packed_epilogue(const graph::Graph& graph, const Target& /*target*/) {
  Rewriter rewriter(graph);
  fuse_activations(rewriter);
  fuse_finite_check(rewriter);
  fuse_outputs(rewriter);
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes
