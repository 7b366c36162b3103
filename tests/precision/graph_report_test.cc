#include "precision/graph_report.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <ostream>

namespace halfstep::precision {
namespace {

constexpr std::string_view k_graph = R"(input  = Const
clr1   = Relu(input)
allow1 = MatMul(clr1, clr1)
both   = IdentityN(allow1, input)
fetch  = Identity(both:1)
preserve fetch
)";

}  // namespace

TEST_CASE("graph report: the JSON has exactly the documented fields") {
  const std::string json = to_json(explain_graph(k_graph, "g.txt", {}));
  CHECK(json == R"json({
  "schema_version": 1,
  "kind": "graph_rewrite",
  "mode": "cuda",
  "status": "ok",
  "message": null,
  "nodes": [
    {
      "name": "input",
      "op": "Const",
      "attrs": {
        "dtype": "float32"
      }
    },
    {
      "name": "clr1",
      "op": "Relu",
      "attrs": {
        "T": "float16"
      }
    },
    {
      "name": "allow1",
      "op": "MatMul",
      "attrs": {
        "T": "float16"
      }
    },
    {
      "name": "both",
      "op": "IdentityN",
      "attrs": {
        "T": [
          "float16",
          "float32"
        ]
      }
    },
    {
      "name": "fetch",
      "op": "Identity",
      "attrs": {
        "T": "float32"
      }
    }
  ],
  "casts": [
    {
      "name": "input-0-CastToFp16-0-AutoMixedPrecision",
      "from": "float32",
      "to": "float16",
      "input": "input:0",
      "consumers": [
        "clr1"
      ]
    }
  ],
  "converted_attrs": 3,
  "casts_counted": 0,
  "paint": [
    {
      "node": "input",
      "attr": "dtype",
      "paint": "none",
      "step": "none",
      "reason": "`Const` is on no list, so it keeps its dtype"
    },
    {
      "node": "clr1",
      "attr": "T",
      "paint": "allow",
      "step": "clear_spread",
      "reason": "`Relu` is on the clear list and adjacent to `MatMul` (allow1)"
    },
    {
      "node": "allow1",
      "attr": "T",
      "paint": "allow",
      "step": "allow_seed",
      "reason": "`MatMul` is on the allow list"
    },
    {
      "node": "both",
      "attr": "T[0]",
      "paint": "allow",
      "step": "clear_spread",
      "reason": "`IdentityN` is on the clear list and adjacent to `MatMul` (allow1)"
    },
    {
      "node": "both",
      "attr": "T[1]",
      "paint": "none",
      "step": "none",
      "reason": "no converted op reaches it through clear ops"
    },
    {
      "node": "fetch",
      "attr": "T",
      "paint": "none",
      "step": "preserved",
      "reason": "its node is to be preserved"
    }
  ]
}
)json");
}

TEST_CASE("graph report: a failure has its message and the graph as given") {
  const auto json = nlohmann::json::parse(
      to_json(explain_graph("x = Const\na = MatMul(x, x)\nb = Nope(a) {T: int8}\n", "g", {})));
  CHECK(json["status"] == "failed");
  CHECK(json["message"] == "Op type not registered 'Nope' in node b");
  CHECK(json["nodes"][1]["attrs"]["T"] == "float32");
  CHECK(json["nodes"][2]["attrs"]["T"] == "int8");
  CHECK(json["casts"].empty());
  CHECK(json["paint"].empty());
}

TEST_CASE(
    "graph report: edits that name no known op are errors, of TensorFlow's variables warnings") {
  RewriteOptions options;
  ListEdits edits;
  edits.add[0].push_back({"MatMull", {"conf.yaml", 3, 5, "precision.lists.allow.add"}});
  options.edits = {edits};
  try {
    explain_graph(k_graph, "g.txt", options);
    FAIL("no error");
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::config);
    REQUIRE(error.problems().size() == 1);
    CHECK(error.problems()[0].where.line == 3);
    CHECK(error.problems()[0].hint == "did you mean 'MatMul'?");
  }
  options.edits[0].lenient = true;
  CHECK(explain_graph(k_graph, "g.txt", options).warnings.size() == 1);
}

TEST_CASE("graph report: a malformed text is an error at its line") {
  CHECK_THROWS_WITH_AS(explain_graph("x = Const\ny = Relu(z)\n", "g.txt", {}),
                       "g.txt:2:10: error: there is no node 'z'",
                       UserError);
}

TEST_CASE("graph report: the table has a line per node, the casts and a summary") {
  const std::string table = to_table(explain_graph(k_graph, "g.txt", {}));
  CHECK(table.find("allow1  MatMul     T=float16") != std::string::npos);
  CHECK(
      table.find("input-0-CastToFp16-0-AutoMixedPrecision: float32 -> float16, input:0 for clr1") !=
      std::string::npos);
  CHECK(table.find("cuda: ok; 3 of 5 nodes converted") != std::string::npos);
}

TEST_CASE("graph report: Graphviz draws nodes, casts and edges") {
  const std::string dot =
      to_dot(explain_graph("x\\y = Const\na = MatMul(x\\y, x\\y)\ne = Exp(a, ^a)\n", "g", {}));
  CHECK(dot.starts_with("digraph rewrite {"));
  CHECK(dot.find("label=\"x\\\\y (Const)\"") != std::string::npos);
  CHECK(dot.find("fillcolor=palegreen") != std::string::npos);
  CHECK(dot.find("fillcolor=lightcoral") != std::string::npos);
  CHECK(dot.find("shape=ellipse") != std::string::npos);
  CHECK(dot.find("style=dashed") != std::string::npos);
}

TEST_CASE("graph report: bytes that are no UTF-8 do not stop the JSON") {
  const std::string json = to_json(explain_graph("\"x\xff\" = Const\n", "g", {}));
  CHECK(nlohmann::json::parse(json)["nodes"].size() == 1);
}

}  // namespace halfstep::precision
