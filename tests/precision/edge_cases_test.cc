// Unusual graphs: omitted attributes, names used before their lines, control inputs, casts after
// casts.

#include <doctest/doctest.h>

#include <ostream>

#include "rewritten.h"

namespace halfstep::precision {

TEST_CASE("edge cases: control inputs carry no paint, get no cast and are not counted as inputs") {
  const Rewritten r(R"(
    x    = Const
    a    = MatMul(x, x, ^deny)
    deny = Exp(x)
    add  = AddV2(a, a, ^deny, ^x)
    b    = MatMul(add, add)
    out  = Identity(b, ^add)
    preserve out
  )");
  CHECK(r.halves() == "a add b");
  CHECK(r.casts() == "x-0-CastToFp16-0 b-0-CastToFp32-0");
  const graph::Graph& graph = r.result().graph;
  CHECK(graph.node(graph.find("add")).control ==
        std::vector<int>{graph.find("deny"), graph.find("x")});
  CHECK(graph.node(graph.find("out")).control == std::vector<int>{graph.find("add")});
}

TEST_CASE("edge cases: a name may stand before its line, in every mode but with bf16's one sweep") {
  constexpr std::string_view k_graph = R"(
    out  = Identity(last)
    last = Tanh(next)
    next = BiasAdd(b, x)
    b    = MatMul(add, add)
    add  = AddV2(a, a)
    a    = MatMul(x, x)
    x    = Const
    preserve out
  )";
  CHECK(Rewritten(k_graph).halves() == "b add a");
  // `last` is visited before `next` is painted.
  CHECK(Rewritten(k_graph, in_mode(Mode::bf16)).halves() == "next b add a");
}

TEST_CASE("edge cases: types that are not given come from the inputs, else from defaults") {
  const Rewritten r(R"(
    i    = Const {dtype: int32}
    h    = Const {dtype: float16}
    x    = Const
    top  = TopKV2(x, i)
    arg  = ArgMax(x, i)
    half = Relu(h)
    norm = FusedBatchNormV3(x, x, x, x, x)
    list = IdentityN(x, i, h)
    cast = Cast(h) {DstT: float32}
  )");
  CHECK(r.type("x", "dtype") == "float32");
  CHECK(r.type("top") == "float32");
  CHECK(r.type("arg") == "float32");
  CHECK(r.type("arg", "output_type") == "int64");
  CHECK(r.type("half") == "float16");
  CHECK(r.type("norm", "U") == "float32");
  CHECK(r.type("list") == "float32,int32,float16");
  CHECK(r.type("cast", "SrcT") == "float16");
  CHECK(r.type("cast", "DstT") == "float32");
}

TEST_CASE("edge cases: values that are 16-bit already are left alone and stop every walk") {
  const Rewritten r(R"(
    h    = Const {dtype: float16}
    x    = Const
    a    = MatMul(h, h)
    add  = AddV2(a, a)
    up   = Cast(add) {DstT: float32}
    b    = MatMul(up, x)
    down = Cast(b) {DstT: float16}
    c    = Relu(down)
    out  = Identity(c)
    preserve out
  )");
  CHECK(r.type("up", "DstT") == "float16");
  CHECK(r.paint("up", "DstT") == "allow existing_cast");
  CHECK(r.paint("add") == "none none");
  CHECK(r.result().converted_attrs == 2);
  // The matmul is 16-bit now: the old cast receives its float32 input, and does not round any more.
  CHECK(r.inputs("down") == "b-0-CastToFp32-0:0");
}

TEST_CASE("edge cases: in a chain of casts only the one that converted ops read is adopted") {
  const Rewritten r(R"(
    i     = Const {dtype: int32}
    x     = Const
    first = Cast(i) {DstT: float32}
    long  = Cast(first) {DstT: float64}
    last  = Cast(long) {DstT: float32}
    a     = MatMul(last, x)
    same  = Cast(a) {DstT: float32}
    b     = MatMul(same, x)
  )");
  CHECK(r.type("first", "DstT") == "float32");
  CHECK(r.type("last", "DstT") == "float16");
  CHECK(r.type("same", "SrcT") == "float32");
  CHECK(r.type("same", "DstT") == "float16");
  CHECK(r.inputs("same") == "a-0-CastToFp32-0:0");
  CHECK(r.casts() == "x-0-CastToFp16-0 a-0-CastToFp32-0");
}

TEST_CASE("edge cases: equal constants are cast one by one, and one constant once") {
  const Rewritten r(R"(
    one = Const
    two = Const
    a   = MatMul(one, two)
    b   = MatMul(one, a)
  )");
  CHECK(r.casts() == "one-0-CastToFp16-0 two-0-CastToFp16-0");
  CHECK(r.result().casts_counted == 0);
}

TEST_CASE("edge cases: nodes on the CPU of a GPU graph keep float32 and get casts") {
  const Rewritten r(R"(
    x    = Const
    a    = MatMul(x, x)
    host = Relu(a) @CPU
    b    = MatMul(host, x)
    sum  = Sum(b, i) @CPU
    i    = Const {dtype: int32}
    tail = Tanh(sum)
    c    = MatMul(tail, x)
  )");
  CHECK(r.halves() == "a b c");
  CHECK(r.paint("host") == "none unprocessed");
  // Denial propagates through ops that the pass does not retype itself.
  CHECK(r.paint("sum") == "deny deny_spread");
  CHECK(r.paint("tail") == "deny deny_spread");
  CHECK(r.inputs("host") == "a-0-CastToFp32-0:0");
  CHECK(r.inputs("b") == "host-0-CastToFp16-0:0, x-0-CastToFp16-0:0");
}

TEST_CASE("edge cases: an op reads itself through a loop, a graph is empty, a node is alone") {
  CHECK(Rewritten("").status() == "nothing_to_do");
  CHECK(Rewritten("preserve").status() == "nothing_to_do");
  const Rewritten alone("a = MatMul(b, b)\nb = VariableV2");
  CHECK(alone.status() == "ok");
  CHECK(alone.result().converted_attrs == 1);
  CHECK(alone.result().casts_counted == 0);
  const Rewritten loop(R"(
    x = Const
    e = Enter(x) {frame_name: "f"}
    m = Merge(e, n)
    a = MatMul(m, m)
    n = NextIteration(a)
  )");
  CHECK(loop.status() == "ok");
  CHECK(loop.halves() == "e m a n");
}

}  // namespace halfstep::precision
