// Properties of every graph, tried on random ones.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <ostream>

#include "graph/ops/ops.h"
#include "graph/ports.h"
#include "random_graph.h"
#include "rewritten.h"

namespace halfstep::precision {
namespace {

using graph::Graph;
using graph::Node;
using graph::ParsedGraph;

constexpr std::uint32_t k_graphs = 150;
constexpr std::array k_modes{Mode::cuda, Mode::bf16, Mode::cpu, Mode::fp16_cpu};

RewriteResult run(const ParsedGraph& parsed, const RewriteOptions& given) {
  RewriteOptions options = given;
  options.supports = [&](std::string_view op, DType dtype) {
    return !parsed.no_kernel.contains({std::string(op), dtype});
  };
  return rewrite(parsed.graph, graph::op_table(), options);
}

/// The first edge or output whose dtypes disagree, or "".
std::string disagreement(const Graph& graph) {
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const auto in = graph::input_port_types(*node.def, node.attrs);
    const auto out = graph::output_port_types(*node.def, node.attrs);
    if (in.size() != node.inputs.size() || out.size() != node.outputs.size()) return node.name;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (graph.type(node.inputs[i]).dtype != graph::dtype_of(in[i], node.attrs)) return node.name;
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (node.outputs[i].dtype != graph::dtype_of(out[i], node.attrs)) return node.name;
    }
  }
  return "";
}

template <class Check>
void for_each_run(Check check) {
  for (std::uint32_t seed = 0; seed < k_graphs; ++seed) {
    const ParsedGraph given = random_graph(seed);
    for (Mode mode : k_modes) {
      CAPTURE(seed);
      CAPTURE(name(mode));
      RewriteOptions options = in_mode(mode);
      if (seed % 5 == 0) options.rules = config::RewriteRules::tensorflow_2_20;
      const RewriteResult result = run(given, options);
      REQUIRE(result.status != RewriteStatus::failed);
      check(given, options, result);
    }
  }
}

}  // namespace

TEST_CASE("property: random graphs agree before, and are worth rewriting") {
  int converted = 0;
  int loops = 0;
  int clusters = 0;
  for_each_run([&](const ParsedGraph& given, const RewriteOptions&, const RewriteResult& result) {
    CHECK(disagreement(given.graph) == "");
    for (const PaintedVertex& vertex : result.paint) {
      loops += vertex.rule == Rule::loop ? 1 : 0;
      clusters += vertex.rule == Rule::list_cluster ? 1 : 0;
    }
    converted += result.casts.empty() ? 0 : 1;
  });
  CHECK(converted > static_cast<int>(k_graphs) * 3);
  CHECK(loops > 10);
  CHECK(clusters > 40);
}

TEST_CASE("property: dtypes agree on every edge after the pass") {
  for_each_run([](const ParsedGraph&, const RewriteOptions&, const RewriteResult& result) {
    CHECK(disagreement(result.graph) == "");
  });
}

TEST_CASE("property: no inserted cast is between equal types, none is without readers") {
  for_each_run([](const ParsedGraph&, const RewriteOptions& options, const RewriteResult& result) {
    std::map<std::pair<std::string, DType>, int> per_port;
    for (const InsertedCast& cast : result.casts) {
      CHECK(cast.from != cast.to);
      CHECK_FALSE(cast.consumers.empty());
      CHECK(result.graph.node(cast.node).name == cast.name);
      ++per_port[{cast.input, cast.to}];
    }
    if (options.mode == Mode::cpu) return;
    for (const auto& [port, count] : per_port) CHECK(count == 1);
  });
}

TEST_CASE("property: preserved nodes, names and order stay") {
  for_each_run([](const ParsedGraph& given, const RewriteOptions& options, const RewriteResult& r) {
    REQUIRE(r.nodes.size() == static_cast<std::size_t>(given.graph.size()));
    CHECK(std::is_sorted(r.nodes.begin(), r.nodes.end()));
    for (int id = 0; id < given.graph.size(); ++id) {
      const Node& was = given.graph.node(id);
      const Node& is = r.graph.node(r.nodes[static_cast<std::size_t>(id)]);
      CHECK(is.name == was.name);
      // TensorFlow adopts casts and turns NextIteration without asking.
      const bool exempt = was.op == "Cast" || was.op == "NextIteration";
      if (was.preserve && !exempt) CHECK(is.attrs == was.attrs);
      if (options.mode == Mode::cpu && is.op == was.op) CHECK(is.attrs == was.attrs);
    }
  });
}

TEST_CASE("property: only float32 changes, and only to the target") {
  for_each_run([](const ParsedGraph& given, const RewriteOptions& options, const RewriteResult& r) {
    int changed = 0;
    for (int id = 0; id < given.graph.size(); ++id) {
      const Node& was = given.graph.node(id);
      const Node& is = r.graph.node(r.nodes[static_cast<std::size_t>(id)]);
      const auto check = [&](DType before, DType after) {
        if (before == after) return;
        ++changed;
        CHECK(before == DType::float32);
        CHECK(after == options.target());
      };
      for (const auto& [key, value] : was.attrs) {
        if (const auto* dtype = std::get_if<DType>(&value)) {
          check(*dtype, is.attrs.get<DType>(key));
        } else if (const auto* list = std::get_if<std::vector<DType>>(&value)) {
          const auto& after = is.attrs.get<std::vector<DType>>(key);
          for (std::size_t i = 0; i < list->size(); ++i) check((*list)[i], after[i]);
        }
      }
    }
    CHECK(changed == r.converted_attrs);
  });
}

TEST_CASE("property: rewriting twice changes nothing, emulation apart") {
  for_each_run([](const ParsedGraph& given, const RewriteOptions& options, const RewriteResult& r) {
    if (options.mode == Mode::cpu) return;
    ParsedGraph again;
    again.graph = r.graph;
    again.no_kernel = given.no_kernel;
    const RewriteResult second = run(again, options);
    CHECK(print_graph(second.graph) == print_graph(r.graph));
    CHECK(second.casts.empty());
  });
}

TEST_CASE("property: names of nodes do not matter") {
  for (std::uint32_t seed = 0; seed < k_graphs; ++seed) {
    const ParsedGraph one = random_graph(seed, "n");
    const ParsedGraph other = random_graph(seed, "z/9-");
    for (Mode mode : k_modes) {
      CAPTURE(seed);
      const RewriteResult a = run(one, in_mode(mode));
      const RewriteResult b = run(other, in_mode(mode));
      REQUIRE(a.graph.size() == b.graph.size());
      for (int id = 0; id < a.graph.size(); ++id) {
        CHECK(a.graph.node(id).op == b.graph.node(id).op);
        CHECK(a.graph.node(id).attrs == b.graph.node(id).attrs);
        CHECK(a.graph.node(id).inputs == b.graph.node(id).inputs);
      }
      CHECK(a.converted_attrs == b.converted_attrs);
      CHECK(a.casts_counted == b.casts_counted);
    }
  }
}

TEST_CASE("property: the paint of every vertex agrees with its dtype") {
  for_each_run([](const ParsedGraph&, const RewriteOptions& options, const RewriteResult& r) {
    if (options.mode == Mode::cpu) return;
    int allowed = 0;
    for (const PaintedVertex& vertex : r.paint) {
      CHECK_FALSE(vertex.reason.empty());
      const Node& node = r.graph.node(r.nodes[static_cast<std::size_t>(vertex.node)]);
      const graph::AttrValue* value = node.attrs.find(vertex.attr);
      if (vertex.paint != Paint::allow || value == nullptr) continue;
      if (const auto* dtype = std::get_if<DType>(value)) {
        CHECK(*dtype != DType::float32);
        ++allowed;
      }
    }
    CHECK(allowed <= static_cast<int>(r.paint.size()));
  });
}

}  // namespace halfstep::precision
