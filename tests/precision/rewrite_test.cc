#include "precision/rewrite.h"

#include <doctest/doctest.h>

#include <ostream>

#include "graph/text.h"
#include "rewritten.h"

namespace halfstep::precision {
TEST_CASE("rewrite: one cast per output port, shared by everything that differs") {
  const Rewritten r(R"(
    x    = Const
    a    = MatMul(x, x)
    b    = MatMul(a, x)
    keep = Cumsum(x, axis)
    axis = Const {dtype: int32}
    out1 = Identity(b)
    out2 = Cumsum(b, axis)
    two  = Split(axis, x) {num_split: 2}
    c    = MatMul(u:0, u:1)
    u    = Unique(x)
    top  = Unpack(keep) {num: 2}
    d    = MatMul(top:0, top:1)
    preserve out1, top
  )");
  CHECK(r.inputs("a") == "x-0-CastToFp16-0:0, x-0-CastToFp16-0:0");
  CHECK(r.inputs("b") == "a:0, x-0-CastToFp16-0:0");
  CHECK(r.inputs("keep") == "x:0, axis:0");
  CHECK(r.inputs("out1") == "b-0-CastToFp32-0:0");
  CHECK(r.inputs("out2") == "b-0-CastToFp32-0:0, axis:0");
  CHECK(r.inputs("d") == "top-0-CastToFp16-0:0, top-1-CastToFp16-0:0");
}

TEST_CASE("rewrite: casts are listed in the order of insertion, with name, types and readers") {
  const Rewritten r(R"(
    input  = Const
    clr1   = Relu(input)
    allow1 = MatMul(clr1, clr1)
    out    = Identity(allow1)
    also   = Identity(allow1)
    preserve out, also
  )");
  REQUIRE(r.result().casts.size() == 2);
  const InsertedCast& down = r.result().casts[0];
  CHECK(down.name == "input-0-CastToFp16-0-AutoMixedPrecision");
  CHECK(down.from == DType::float32);
  CHECK(down.to == DType::float16);
  CHECK(down.input == "input:0");
  CHECK(down.consumers == std::vector<std::string>{"clr1"});
  const InsertedCast& up = r.result().casts[1];
  CHECK(up.name == "allow1-0-CastToFp32-0-AutoMixedPrecision");
  CHECK(up.consumers == std::vector<std::string>{"out", "also"});
  const graph::Node& node = r.result().graph.node(up.node);
  CHECK(node.op == "Cast");
  CHECK_FALSE(node.attrs.get<bool>("Truncate"));
}

TEST_CASE("rewrite: a name in use gives the next number") {
  const Rewritten r(R"(
    x = Const
    a = MatMul(x, x)
    x-0-CastToFp16-0-AutoMixedPrecision = Const
    x-0-CastToFp16-1-AutoMixedPrecision = Const
  )");
  CHECK(r.result().casts[0].name == "x-0-CastToFp16-2-AutoMixedPrecision");
}

TEST_CASE("rewrite: a cast sits on its producer's device") {
  const Rewritten r(R"(
    x = Const @/job:localhost/replica:0/task:0/device:CPU:0
    a = MatMul(x, x) @/device:GPU:0
    y = Identity(a) @CPU
  )");
  CHECK(r.halves() == "a");
  const RewriteResult& result = r.result();
  REQUIRE(result.casts.size() == 2);
  CHECK(result.graph.node(result.casts[0].node).device ==
        "/job:localhost/replica:0/task:0/device:CPU:0");
  CHECK(result.graph.node(result.casts[1].node).device == "/device:GPU:0");
}

TEST_CASE("rewrite: nodes on the other kind of device stay, in any case of letters") {
  constexpr std::string_view k_graph = R"(
    x = Const
    a = MatMul(x, x) @gpu
    b = MatMul(x, x) @CPU:0
    c = MatMul(x, x)
    d = MatMul(x, x) @/job:gpu/device:cpu:1
  )";
  CHECK(Rewritten(k_graph).halves() == "a c");
  CHECK(Rewritten(k_graph, in_mode(Mode::bf16)).halves() == "b c d");
  CHECK(Rewritten(k_graph, in_mode(Mode::fp16_cpu)).halves() == "b c d");
  RewriteOptions waived;
  waived.waive_device_gates = true;
  CHECK(Rewritten(k_graph, waived).halves() == "a b c d");
}

TEST_CASE("rewrite: preserved nodes and constants keep their dtypes") {
  const Rewritten r(R"(
    x    = Const
    a    = MatMul(x, x)
    kept = MatMul(a, x)
    b    = MatMul(kept, x)
    preserve kept
  )");
  CHECK(r.halves() == "a b");
  CHECK(r.paint("kept") == "none preserved");
  CHECK(r.inputs("kept") == "a-0-CastToFp32-0:0, x:0");
  CHECK(r.inputs("b") == "kept-0-CastToFp16-0:0, x-0-CastToFp16-0:0");
}

TEST_CASE("rewrite: counts") {
  const Rewritten r(R"(
    const = Const
    ref   = VariableV2
    read  = Identity(ref)
    h     = VarHandleOp
    var   = ReadVariableOp(h)
    feed  = Placeholder
    a     = MatMul(const, ref)
    b     = MatMul(read, var)
    c     = MatMul(feed, feed)
    d     = AddN(a, b, c) {N: 3}
    e     = MatMul(d, const)
    out   = Identity(e)
    preserve out
  )");
  CHECK(r.result().converted_attrs == 5);
  CHECK(r.result().nodes_converted == 5);
  CHECK(r.result().casts.size() == 6);
  // Only the placeholder's: constants, variables and their reads are left out, and so are casts up.
  CHECK(r.result().casts_counted == 1);
  CHECK(r.status() == "ok");
}

TEST_CASE("rewrite: an element of a list attribute counts by itself") {
  const Rewritten r(R"(
    x   = Const
    i   = Const {dtype: int32}
    a   = MatMul(x, x)
    idn = IdentityN(a, i, x)
    b   = MatMul(idn:0, x)
    u   = Cumsum(idn:2, i)
  )");
  CHECK(r.type("idn") == "float16,int32,float32");
  CHECK(r.paint("idn", "T[0]") == "allow between_allows");
  CHECK(r.paint("idn", "T[1]") == "none none");
  CHECK(r.paint("idn", "T[2]") == "none none");
  CHECK(r.result().converted_attrs == 3);
  CHECK(r.result().nodes_converted == 3);
}

TEST_CASE("rewrite: a hard-wired float32 output is cast for converted readers") {
  const Rewritten r(R"(
    x = Const
    s = SparseMatMul(x, x)
    a = MatMul(s, x)
  )");
  CHECK(r.inputs("a") == "s-0-CastToFp16-0:0, x-0-CastToFp16-0:0");
  CHECK(r.result().casts_counted == 1);
}

TEST_CASE("rewrite: FusedBatchNorm becomes V2 with statistics in float32") {
  const Rewritten r(R"(
    x    = Const
    a    = MatMul(x, x)
    bn   = FusedBatchNorm(a, x, x, x, x)
    b    = MatMul(bn, x)
    grad = FusedBatchNormGrad(b, bn, x, bn:1, bn:2)
    c    = MatMul(grad, x)
    kept = FusedBatchNorm(a, x, x, x, x)
    far  = FusedBatchNorm(a, x, x, x, x) @CPU
    preserve kept
  )");
  const graph::Graph& graph = r.result().graph;
  CHECK(graph.node(graph.find("bn")).op == "FusedBatchNormV2");
  CHECK(r.type("bn") == "float16");
  CHECK(r.type("bn", "U") == "float32");
  CHECK(graph.node(graph.find("grad")).op == "FusedBatchNormGradV2");
  CHECK(r.type("grad") == "float16");
  CHECK(graph.node(graph.find("kept")).op == "FusedBatchNorm");
  CHECK(graph.node(graph.find("far")).op == "FusedBatchNorm");

  const Rewritten idle("x = Const\nbn = FusedBatchNorm(x, x, x, x, x)\n");
  CHECK(idle.status() == "nothing_to_do");
  CHECK(idle.result().graph.node(1).op == "FusedBatchNormV2");
  CHECK(idle.type("bn", "U") == "float32");
}

TEST_CASE("rewrite: statistics stay in float32 even where an op declares otherwise") {
  RewriteOptions options = in_mode(Mode::bf16);
  options.edits = {edit(List::allow, {"FusedBatchNormV3"}, {}),
                   edit(List::infer, {}, {"FusedBatchNormV3"})};
  const Rewritten r(R"(
    x  = Const
    bn = FusedBatchNormV3(x, s, s, s, s)
    s  = Const
    a  = MatMul(bn, bn:1)
  )",
                    options);
  CHECK(r.type("bn") == "bfloat16");
  CHECK(r.type("bn", "U") == "float32");
  CHECK(r.paint("bn", "U") == "none unpainted");
}

TEST_CASE("rewrite: a graph without allow ops has nothing to do") {
  const Rewritten r("x = Const\ny = Exp(x)\nz = AddV2(y, x)\n");
  CHECK(r.status() == "nothing_to_do");
  CHECK(r.result().casts.empty());
  CHECK(r.result().converted_attrs == 0);
  const Rewritten empty("# nothing\n");
  CHECK(empty.status() == "nothing_to_do");
}

TEST_CASE("rewrite: unknown ops, wrong numbers of inputs and conflicts fail as a whole") {
  struct Case {
    std::string_view name, text, message;
  };
  static constexpr Case k_cases[] = {
      {"unknown op",
       "x = Const\na = MatMul(x, x)\nf = NoSuchOp(a)\n",
       "Op type not registered 'NoSuchOp' in node f"},
      {"too few inputs",
       "x = Const\na = MatMul(x)\n",
       "Expected MatMul node a to have 2 non-control input(s), but got 1"},
      {"too many inputs",
       "x = Const\na = Relu(x, x, ^x)\nb = MatMul(x, x)\n",
       "Expected Relu node a to have 1 non-control input(s), but got 2"},
      {"wrong N",
       "x = Const\na = AddN(x, x) {N: 3}\nbn = FusedBatchNorm(x, x, x, x, x)\n",
       "Expected AddN node a to have 3 non-control input(s), but got 2"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.name);
    const Rewritten r(c.text);
    CHECK(r.status() == "failed");
    CHECK(r.result().message == c.message);
    CHECK(r.result().casts.empty());
    CHECK(r.result().paint.empty());
    CHECK(print_graph(r.result().graph) == print_graph(r.report.original));
  }
  RewriteOptions conflict;
  conflict.edits = {edit(List::allow, {"AddV2"}, {})};
  const Rewritten r("x = Const\na = AddV2(x, x)\n", conflict);
  CHECK(r.status() == "failed");
  CHECK(r.result().message ==
        "Op lists have conflicting entries\nAddV2 is on the lists allow and infer");
}

TEST_CASE("rewrite: moving an op takes a removal and an addition") {
  RewriteOptions options;
  options.edits = {edit(List::allow, {"AddV2"}, {}), edit(List::infer, {}, {"AddV2"})};
  const Rewritten r("x = Const\na = AddV2(x, x)\nb = Tanh(a)\nc = AddV2(b, x)\n", options);
  CHECK(r.halves() == "a b c");
}

TEST_CASE("rewrite: tensor lists are converted as one") {
  constexpr std::string_view k_lists = R"(
    shape  = Const {dtype: int32}
    n      = Const {dtype: int32}
    x      = Const
    a      = MatMul(x, x)
    t1     = Tanh(a)
    tl     = EmptyTensorList(shape, n) {element_dtype: float32}
    w      = TensorListPushBack(tl, t1)
    resize = TensorListResize(w, n)
    r      = TensorListPopBack(resize, shape)
    t2     = Tanh(r:1)
    b      = MatMul(t2, x)
  )";
  const std::string text(k_lists);
  const Rewritten r(text);
  CHECK(r.halves() == "a t1 tl w r t2 b");
  CHECK(r.paint("t1") == "allow between_allows");
  CHECK(r.paint("tl", "element_dtype") == "allow list_cluster");

  SUBCASE("a preserved member denies all") {
    const Rewritten kept(text + "preserve w\n");
    CHECK(kept.halves() == "a b");
    CHECK(kept.paint("tl", "element_dtype") == "deny list_cluster");
    CHECK(kept.reason("r", "element_dtype") ==
          "its tensor list is shared with w, which keeps its dtypes");
  }
  SUBCASE("a denied member denies all") {
    const Rewritten denied(text +
                           "e = Exp(a)\nw2 = TensorListPushBack(w, e)\n"
                           "r2 = TensorListPopBack(w2, shape)\nt3 = Tanh(r2:1)\n");
    CHECK(denied.paint("w", "element_dtype") == "deny list_cluster");
    CHECK(denied.halves() == "a b");
  }
  SUBCASE("a handle that goes through a function denies all") {
    const Rewritten called(R"(
      function Func1
      shape = Const {dtype: int32}
      n     = Const {dtype: int32}
      x     = Const
      a     = MatMul(x, x)
      t1    = Tanh(a)
      tl    = EmptyTensorList(shape, n) {element_dtype: float32}
      w     = TensorListPushBack(tl, t1)
      f     = Func1(w, t1)
      r     = TensorListPopBack(f, shape)
      t2    = Tanh(r:1)
      b     = MatMul(t2, x)
      out   = Identity(f:1)
    )");
    CHECK(called.halves() == "a b");
    CHECK(called.status() == "ok");
    CHECK(called.reason("tl", "element_dtype") == "its tensor list passes through f (Func1)");
  }
  SUBCASE("lists of other dtypes do not matter") {
    const Rewritten ints(R"(
      shape = Const {dtype: int32}
      n     = Const {dtype: int32}
      x     = Const
      a     = MatMul(x, x)
      tl    = EmptyTensorList(shape, n) {element_dtype: int32}
      w     = TensorListPushBack(tl, n)
    )");
    CHECK(ints.type("tl", "element_dtype") == "int32");
    CHECK(ints.halves() == "a");
  }
}

TEST_CASE("rewrite: functions keep their dtypes and get casts at their border") {
  const Rewritten r(R"(
    function Func1
    x = Const
    a = MatMul(x, x)
    f = Func1(a)
    b = MatMul(f, x)
  )");
  CHECK(r.status() == "ok");
  CHECK(r.inputs("f") == "a-0-CastToFp32-0:0");
  CHECK(r.inputs("b") == "f-0-CastToFp16-0:0, x-0-CastToFp16-0:0");
  CHECK(r.paint("f", "float32") == "none none");
}

TEST_CASE("rewrite: nodes keep their order and casts stand before their first reader") {
  const Rewritten r(R"(
    x = Const
    u = Cumsum(x, i)
    i = Const {dtype: int32}
    a = MatMul(x, x)
  )");
  std::string order;
  for (int id = 0; id < r.result().graph.size(); ++id) {
    order += r.result().graph.node(id).name.substr(0, 1) + " ";
  }
  CHECK(order == "x u i x a ");
  CHECK(r.result().nodes == std::vector<int>{0, 1, 2, 4});
}

}  // namespace halfstep::precision
