// Chains of attention and their gradients: which are fused, and with which attributes.

#include <doctest/doctest.h>

#include <numeric>
#include <ostream>
#include <string>

#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "passes/differentiate.h"
#include "passes/lowering.h"
#include "passes/small_graphs.h"

namespace halfstep::test {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Value;

Graph fuse(const Graph& graph, const passes::KernelSupport& supports = always) {
  Graph fused = passes::fuse_attention(passes::prune(graph), {supports});
  graph::verify(fused, "fuse_attention");
  return fused;
}

struct Options {
  DType dtype = DType::bfloat16;
  bool causal = false;
  bool heads = true;  ///< [batch, steps, heads, depth], transposed; else [batch, steps, depth]
  std::int64_t queries = 28, keys = 40;
  std::int64_t mask_from = 0;  ///< the first number of the mask's positions
  bool masks = false;          ///< the weights are multiplied by a mask
  bool padding = false;        ///< a mask of keys
  double padding_weight = 0;   ///< of the keys that it leaves out
  bool by_query = false;       ///< that mask is one of queries and keys
  double dropout = 0;
  double factor = 0;  ///< of the weights that are kept; 0: that of the dropout
};

/// An attention as the layers build it.
struct Chain {
  Graph graph;
  Builder b{graph, graph::op_table()};
  Value query, key, value, weights, y;

  explicit Chain(const Options& o) {
    const auto shape = [&](std::int64_t steps) {
      return o.heads ? Shape{2, steps, 3, 4} : Shape{2, steps, 4};
    };
    query = b.placeholder("query", o.dtype, shape(o.queries));
    key = b.placeholder("key", o.dtype, shape(o.keys));
    value = b.placeholder("value", o.dtype, shape(o.keys));
    Value q = heads(o, query);
    if (o.heads) q = b.add("Mul", {q, b.scalar(o.dtype, 0.5)});
    Value x = b.add("BatchMatMulV2", {q, heads(o, key)}, {{"adj_y", true}});
    if (is_half(o.dtype)) x = b.cast(x, DType::float32);
    if (o.causal) {
      const Value seen = b.add(
          "GreaterEqual",
          {positions(o.queries, o.mask_from, {o.queries, 1}), positions(o.keys, 0, {1, o.keys})});
      x = b.add("SelectV2", {seen, x, b.scalar(DType::float32, -6e4)});
    }
    const Value taken = o.padding ? taken_keys(o, b.shape(x)) : Value{};
    if (o.padding) x = b.add("SelectV2", {taken, x, b.scalar(DType::float32, -6e4)});
    x = b.add("Softmax", {x});
    if (o.padding) x = b.add("SelectV2", {taken, x, b.scalar(DType::float32, o.padding_weight)});
    weights = b.cast(x, o.dtype);
    Value used = weights;
    if (o.masks) used = b.add("Mul", {used, b.placeholder("mask", o.dtype, b.shape(weights))});
    if (o.dropout > 0) used = dropped(o, used);
    y = heads(o, b.add("BatchMatMulV2", {used, heads(o, value)}));
    graph.fetches() = {{"y", y}};
  }

  void differentiate() {
    const Value loss = graph::ops::reduce(b, "Sum", b.cast(b.add("Mul", {y, y}), DType::float32));
    const Value xs[] = {query, key, value};
    const std::vector<Value> gradients = passes::differentiate(b, loss, xs);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      graph.fetches().push_back({std::to_string(i), gradients[i]});
    }
  }

 private:
  Value taken_keys(const Options& o, const Shape& scores) {
    std::vector<std::int64_t> extents(scores.begin(), scores.end());
    if (o.by_query) return b.placeholder("taken", DType::boolean, Shape(extents));
    std::fill(extents.begin() + 1, extents.end() - 1, 1);
    const Value mask = b.placeholder("taken", DType::boolean, {2, o.keys});
    return graph::ops::reshape(b, mask, Shape(extents));
  }
  Value heads(const Options& o, Value x) {
    return o.heads ? b.add("Transpose", {x, b.ints({0, 2, 1, 3})}) : x;
  }
  Value dropped(const Options& o, Value x) {
    const Value numbers = b.add("RandomUniformFromOrdinal",
                                {b.placeholder("ordinal", DType::int64, {})},
                                {{"shape", b.shape(x)},
                                 {"seed", std::int64_t{3}},
                                 {"stream", std::int64_t{5}},
                                 {"first", std::int64_t{7}}});
    const Value kept = b.add("GreaterEqual", {numbers, b.scalar(DType::float32, o.dropout)});
    const double factor = o.factor > 0 ? o.factor : 1 / (1 - o.dropout);
    const Value scaled = b.add("Mul", {x, b.scalar(o.dtype, factor)});
    return b.add("Mul", {scaled, b.cast(kept, o.dtype)});
  }
  Value positions(std::int64_t count, std::int64_t first, const Shape& as) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), first);
    return graph::ops::reshape(b, b.ints(all), as);
  }
};

/// Whether forward and gradient chain became one op each.
bool is_fused(const Graph& graph, bool trains) {
  return count(graph, "FusedAttention") == 1 &&
         count(graph, "FusedAttentionGrad") == (trains ? 1U : 0U) &&
         count(graph, "BatchMatMulV2") == 0 && count(graph, "Softmax") == 0 &&
         count(graph, "SelectV2") == 0;
}

}  // namespace

TEST_CASE("fuse_attention: chain and gradient become an op each, in all their variants") {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const bool causal : {false, true}) {
      for (const bool heads : {false, true}) {
        for (const bool trains : {false, true}) {
          CAPTURE(name(dtype));
          CAPTURE(causal);
          CAPTURE(heads);
          CAPTURE(trains);
          Chain chain({.dtype = dtype, .causal = causal, .heads = heads});
          if (trains) chain.differentiate();
          const Graph fused = fuse(chain.graph);
          REQUIRE(is_fused(fused, trains));
          // Factor and transpositions are attributes of both.
          CHECK(count(fused, "Transpose") == 0);
          CHECK(count(fused, "Mul") == (trains ? 2U : 0U));  // of the gradient of the loss
          for (const char* op : {"FusedAttention", "FusedAttentionGrad"}) {
            for (const graph::Node* node : nodes(fused, op)) {
              CHECK(node->attrs.get<bool>("causal") == causal);
              CHECK(node->attrs.get<double>("scale") == (heads ? 0.5 : 1));
              CHECK(node->attrs.get<std::string>("layout") == (heads ? "BSHD" : "BHSD"));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("fuse_attention: dropout of the weights becomes attributes of both ops") {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const bool causal : {false, true}) {
      CAPTURE(name(dtype));
      CAPTURE(causal);
      Chain chain({.dtype = dtype, .causal = causal, .dropout = 0.3});
      chain.differentiate();
      const Graph fused = fuse(chain.graph);
      REQUIRE(is_fused(fused, true));
      CHECK(count(fused, "RandomUniformFromOrdinal") == 0);
      for (const char* op : {"FusedAttention", "FusedAttentionGrad"}) {
        const graph::Node& node = *nodes(fused, op)[0];
        CHECK(fused.node(node.inputs.back().node).name == "ordinal");
        CHECK(node.attrs.get<double>("rate") == 0.3);
        CHECK(node.attrs.get<std::int64_t>("seed") == 3);
        CHECK(node.attrs.get<std::int64_t>("stream") == 5);
        CHECK(node.attrs.get<std::int64_t>("first") == 7);
      }
    }
  }
}

TEST_CASE("fuse_attention: a mask of keys becomes an input of both ops") {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const bool causal : {false, true}) {
      for (const bool heads : {false, true}) {
        for (const double dropout : {0.0, 0.3}) {
          for (const bool trains : {false, true}) {
            if (dropout > 0 && !trains) continue;
            CAPTURE(name(dtype));
            CAPTURE(causal);
            CAPTURE(heads);
            CAPTURE(dropout);
            CAPTURE(trains);
            Chain chain({.dtype = dtype,
                         .causal = causal,
                         .heads = heads,
                         .padding = true,
                         .dropout = dropout});
            if (trains) chain.differentiate();
            const Graph fused = fuse(chain.graph);
            REQUIRE(is_fused(fused, trains));
            CHECK(count(fused, "Reshape") == (trains ? 1U : 0U));  // of the gradient of the loss
            CHECK(count(fused, "ZerosLike") == 0);
            for (const char* op : {"FusedAttention", "FusedAttentionGrad"}) {
              for (const graph::Node* node : nodes(fused, op)) {
                CHECK(fused.node(node->inputs.back().node).name == "taken");
                const graph::Node& ordinal = fused.node((node->inputs.end() - 2)->node);
                CHECK(ordinal.op == (dropout > 0 ? "Placeholder" : "Const"));
                CHECK(node->attrs.get<bool>("causal") == causal);
                CHECK(node->attrs.get<double>("rate") == dropout);
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("fuse_attention: a transposition with another reader stays, and so do the others") {
  Chain chain({});
  const Value inner = chain.graph.node(chain.y.node).inputs[0];
  chain.graph.fetches().push_back({"inner", inner});
  const Graph fused = fuse(chain.graph);
  REQUIRE(is_fused(fused, false));
  CHECK(count(fused, "Transpose") == 4);
  CHECK(nodes(fused, "FusedAttention")[0]->attrs.get<std::string>("layout") == "BHSD");
}

TEST_CASE(
    "fuse_attention: nothing changes where the weights are read, dropped or masked by others") {
  const auto stays = [](const Chain& chain, const passes::KernelSupport& supports = always) {
    const Graph pruned = passes::prune(chain.graph);
    return outline(fuse(chain.graph, supports)) == outline(pruned);
  };
  for (const bool trains : {false, true}) {
    CAPTURE(trains);
    const auto made = [&](const Options& options) {
      Chain chain(options);
      if (trains) chain.differentiate();
      return chain;
    };
    Chain read = made({});
    read.graph.fetches().push_back({"weights", read.weights});
    CHECK(stays(read));
    CHECK(stays(made({.masks = true})));
    CHECK(stays(made({.dropout = 0.3, .factor = 2})));
    CHECK(stays(made({.padding = true, .by_query = true})));
    CHECK(stays(made({.padding = true, .padding_weight = 0.5})));
    // A key is seen one step early.
    CHECK(stays(made({.causal = true, .mask_from = 1})));
    CHECK(stays(made({}), never));
    // Blocks of 32 x 32 would be padded to three times the scores.
    CHECK(stays(made({.queries = 32, .keys = 10})));
  }
  const Chain small({.queries = 32, .keys = 10});
  const passes::Target no_blocks{.supports = always, .attention_block = 1};
  CHECK(is_fused(passes::fuse_attention(passes::prune(small.graph), no_blocks), false));
  // The weights are needed where one gradient alone is fetched.
  Chain one({});
  one.differentiate();
  one.graph.fetches().resize(2);
  CHECK(stays(one));
  // No kernel for the gradient.
  Chain forward({});
  forward.differentiate();
  CHECK(stays(forward, [](const graph::OpInstance& op) { return op.node.op == "FusedAttention"; }));
}

}  // namespace halfstep::test
