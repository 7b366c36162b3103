#include "graph/text.h"

#include <doctest/doctest.h>

#include <ostream>
#include <random>

#include "graph/graph.h"
#include "graph/ops/ops.h"

namespace halfstep::graph {
namespace {

ParsedGraph parse(std::string_view text) { return parse_graph(text, "g.txt", op_table()); }

/// The problems of a text, one a line: "line:column message (hint)".
std::string problems(std::string_view text) {
  try {
    parse(text);
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::config);
    std::string lines;
    for (const Problem& problem : error.problems()) {
      CHECK(problem.where.file == "g.txt");
      lines += std::to_string(problem.where.line) + ":" + std::to_string(problem.where.column) +
               " " + problem.message + (problem.hint.empty() ? "" : " (" + problem.hint + ")") +
               "\n";
    }
    return lines;
  }
  return "";
}

const Node& node(const ParsedGraph& parsed, std::string_view name) {
  const int id = parsed.graph.find(name);
  REQUIRE(id >= 0);
  return parsed.graph.node(id);
}

std::string type(const ParsedGraph& parsed, std::string_view name, std::string_view attr = "T") {
  const AttrValue* value = node(parsed, name).attrs.find(attr);
  if (value == nullptr) return "absent";
  if (const auto* dtype = std::get_if<DType>(value)) return std::string(halfstep::name(*dtype));
  std::string text;
  for (DType dtype : std::get<std::vector<DType>>(*value)) {
    text += (text.empty() ? "" : ",") + std::string(halfstep::name(dtype));
  }
  return text;
}

}  // namespace

TEST_CASE("text: the documented example") {
  const ParsedGraph g = parse(R"(
input  = Const @CPU                           # name = Op(inputs) {attr: value, ...} @device
w      = VariableV2
clr1   = Relu(input)
allow1 = MatMul(clr1, w)                      # n means n:0
bn     = FusedBatchNormV3(allow1, scale, offset, mean, var) {U: float32}
sum    = AddN(bn:0, clr1, clr1) {N: 3}
cst    = Cast(flags) {SrcT: bool, DstT: float32}
fetch  = Identity(sum, ^cst)                  # ^n: control input
preserve fetch, allow1                        # fetches, feeds, keep-ops
no_kernel Tanh float16
function Func1                                # an op of the graph's own function library
scale = Const
offset = Const
mean = Const
var = Const
flags = Const {dtype: bool}
)");
  CHECK(g.graph.size() == 13);
  CHECK(g.graph.node(0).name == "input");
  CHECK(g.graph.node(0).device == "CPU");
  CHECK(g.graph.node(7).name == "fetch");
  CHECK(node(g, "bn").inputs[1] == Value{g.graph.find("scale"), 0});
  CHECK(node(g, "fetch").control == std::vector<int>{g.graph.find("cst")});
  CHECK(node(g, "fetch").inputs.size() == 1);
  CHECK(node(g, "fetch").preserve);
  CHECK(node(g, "allow1").preserve);
  CHECK_FALSE(node(g, "sum").preserve);
  CHECK(g.no_kernel == std::set<std::pair<std::string, DType>>{{"Tanh", DType::float16}});
  CHECK(g.functions == std::set<std::string>{"Func1"});
  CHECK(node(g, "allow1").origin.where.line == 5);
}

TEST_CASE("text: a type attribute comes from the input it types, else the default, else float32") {
  const ParsedGraph g = parse(R"(
    late  = Relu(half)
    half  = Const {dtype: float16}
    big   = Greater(half, half)
    pick  = SelectV2(big, half, half)
    plain = Const
    shape = Const {dtype: int64}
    r     = Reshape(half, shape)
    am    = ArgMax(half, shape)
    idn   = IdentityN(big, half, shape)
    many  = ConcatV2(half, half, shape)
    given = Cast(half) {DstT: bfloat16}
    tl    = EmptyTensorList(shape, shape) {element_dtype: float32}
    pop   = TensorListPopBack(tl, shape)
  )");
  CHECK(type(g, "late") == "float16");
  CHECK(type(g, "pick") == "float16");
  CHECK(type(g, "plain", "dtype") == "float32");
  CHECK(type(g, "r", "Tshape") == "int64");
  CHECK(type(g, "am", "Tidx") == "int64");
  CHECK(type(g, "am", "output_type") == "int64");
  CHECK(type(g, "idn") == "bool,float16,int64");
  CHECK(node(g, "many").attrs.get<std::int64_t>("N") == 2);
  CHECK(type(g, "given", "SrcT") == "float16");
  CHECK(type(g, "given", "DstT") == "bfloat16");
  CHECK(type(g, "pop", "element_dtype") == "float32");
  CHECK(node(g, "pop").outputs[0].dtype == DType::variant);
}

TEST_CASE("text: types are found around loops") {
  const ParsedGraph g = parse(R"(
    merge = Merge(next, enter)
    next  = NextIteration(add)
    add   = AddV2(merge, merge)
    enter = Enter(i) {frame_name: "loop"}
    i     = Const {dtype: int32}
    lone1 = Merge(lone2, lone2)
    lone2 = NextIteration(lone1)
  )");
  CHECK(type(g, "merge") == "int32");
  CHECK(type(g, "add") == "int32");
  CHECK(type(g, "lone1") == "float32");
}

TEST_CASE("text: outputs that a count attribute sizes are as many as are used") {
  const ParsedGraph g = parse(R"(
    x     = Const
    axis  = Const {dtype: int32}
    some  = Split(axis, x)
    use   = Relu(some:2)
    none  = Unpack(x)
    given = Split(axis, x) {num_split: 7}
    it    = IteratorGetNext(handle)
    handle = IteratorV2
    y     = Relu(it:1)
  )");
  CHECK(node(g, "some").outputs.size() == 3);
  CHECK(node(g, "none").outputs.size() == 1);
  CHECK(node(g, "given").outputs.size() == 7);
  CHECK(node(g, "it").outputs.size() == 2);
}

TEST_CASE("text: functions and unknown ops give what their consumers ask for") {
  const ParsedGraph g = parse(R"(
    function Func1, Relu
    x   = Const
    f   = Func1(x)
    pop = TensorListPopBack(f, s) {element_dtype: float32}
    s   = Const {dtype: int32}
    id  = Identity(f:1) {T: float64}
    two = Func1(x) {Tout: [int8, bool]}
    no  = Unknown(x:0) {anything: [1.5, 2], T: float16}
    own = Relu(x, x, x)
  )");
  CHECK(node(g, "f").def == nullptr);
  CHECK(node(g, "f").outputs[0].dtype == DType::variant);
  CHECK(node(g, "f").outputs[1].dtype == DType::float64);
  CHECK(node(g, "two").outputs[1].dtype == DType::boolean);
  CHECK(node(g, "no").def == nullptr);
  CHECK(type(g, "no") == "float16");
  CHECK(node(g, "own").def == nullptr);
}

TEST_CASE("text: attributes of every kind") {
  const ParsedGraph g = parse(
      "x = Const {dtype: float32, value: [[1, 2], [-3e2, inf]], shape: [2, 2]}\n"
      "i = Const {dtype: int32, value: 7}\n"
      "m = MatMul(x, x) {transpose_a: true, transpose_b: false}\n"
      "l = LeakyRelu(x) {alpha: 1}\n"
      "p = MaxPool(x) {ksize: [1, 2, 2, 1], strides: [1, 2, 2, 1], padding: SAME, _note: \"a # "
      "\\\"b\\\"\"}\n"
      "q = Placeholder {shape: [-1, ?], dtype: half}\n"
      "f = FusedElementwise(x, i) {body: \"Cast x1 : float32 ; Mul x0 t0 : float32 -> t1\"}\n"
      "v = VarHandleOp {shared_name: \"w/0\"}\n");
  CHECK(node(g, "x").attrs.get<std::vector<double>>("value")[2] == -300);
  CHECK(node(g, "i").attrs.get<std::vector<std::int64_t>>("value")[0] == 7);
  CHECK(node(g, "m").attrs.get<bool>("transpose_a"));
  CHECK(node(g, "l").attrs.get<double>("alpha") == 1.0);
  CHECK(node(g, "p").attrs.get<std::vector<std::int64_t>>("ksize").size() == 4);
  CHECK(node(g, "p").attrs.get<std::string>("padding") == "SAME");
  CHECK(node(g, "p").attrs.get<std::string>("_note") == "a # \"b\"");
  const auto& body = node(g, "f").attrs.get<ElementwiseBody>("body");
  CHECK(body.inputs == 2);
  CHECK(body.steps.at(1).operands == std::vector<int>{0, 2});
  CHECK(type(g, "q", "dtype") == "float16");
  CHECK(node(g, "q").attrs.get<std::string>("shape") == "[-1, ?]");
  const std::string once = print_graph(g);
  CHECK(print_graph(parse(once)) == once);
}

TEST_CASE("text: what is wrong is said with its place, all at once") {
  struct Case {
    std::string_view text, problems;
  };
  static constexpr Case k_cases[] = {
      {"input = Const\ny = Relu(inptu)\nz = Relu(w)\nyy = Relu(y:1)",
       "2:10 there is no node 'inptu' (did you mean 'input'?)\n3:10 there is no node 'w'\n4:11 "
       "there is no 'y:1': Relu has 1 output\n"},
      {"x = Const\n\nx = Const", "3:1 a second node 'x' (the first is on line 1)\n"},
      {"u = NoOp\ny = Relu(u)", "2:10 there is no 'u:0': NoOp has 0 outputs\n"},
      {"a = Relu(b)\nb = Relu(c)\nc = Relu(a)",
       "1:1 a cycle that passes no loop op: a -> c -> b -> a\n"},
      {"a = Relu(a)", "1:1 a cycle that passes no loop op: a -> a\n"},
      {"a = Const(^b)\nb = Identity(a)", "1:1 a cycle that passes no loop op: a -> b -> a\n"},
      {"x = Const {dtype: float23}",
       "1:19 'dtype' of Const must be a dtype, got float23 (did you mean 'float32'?)\n"},
      {"x = MatMul(x) {transpoze_a: true}\n",
       "1:1 a cycle that passes no loop op: x -> x\n1:16 MatMul has no attribute 'transpoze_a' "
       "(did you mean 'transpose_a'?)\n"},
      {"x = MatMul {transpose_a: 3}\n",
       "1:26 'transpose_a' of MatMul must be true or false, got 3\n"},
      {"x = AddN {N: -1}\n", "1:14 'N' must be from 0 to 65536, got -1\n"},
      {"x = AddN {N: 99999999999999999999}\n",
       "1:14 'N' of AddN must be an integer, got 99999999999999999999\n"},
      {"x = FusedElementwise {body: \"Relu x0 : flot -> t0\"}\n",
       "1:29 'body' of FusedElementwise: 'Relu x0 : flot -> t0' is wrong at 'flot'\n"},
      {"x = FusedElementwise {body: \"Relu x0\"}\n",
       "1:29 'body' of FusedElementwise: 'Relu x0' is incomplete\n"},
      {"x = Const {dtype: int8, dtype: int8}", "1:25 attribute 'dtype' is given twice\n"},
      {"x = Relu(", "1:10 expected the name of a node, got the end of the line\n"},
      {"x = Relu(y", "1:11 expected ')' after the inputs, got the end of the line\n"},
      {"x = ", "1:5 expected the name of an op, got the end of the line\n"},
      {"x Relu(y)",
       "1:1 expected '= Op(...)' after 'x', or one of preserve, no_kernel, function, variable, "
       "result\n"},
      {"x = Const {dtype float32}", "1:18 expected ':' after 'dtype', got 'float32'\n"},
      {"x = Const {dtype: [1, 2}", "1:24 expected ',' or ']' in a list, got '}'\n"},
      {"x = Const {s: \"open}", "1:21 the string does not end\n"},
      {"x = Const {s: [[[[[1]]]]]}", "1:20 lists are nested too deeply\n"},
      {"x = Const @CPU @GPU", "1:17 two devices\n"},
      {"x = Const junk", "1:11 expected '{' before attributes, got 'junk'\n"},
      {"x = Const\ny = Relu(x:99999999999)", "2:12 expected a port number after ':'\n"},
      {"x = Const\ny = Relu(^x:1)", "2:13 a control input has no port\n"},
      {"preserve nowhere", "1:10 there is no node 'nowhere'\n"},
      {"no_kernel Tanhh float16", "1:11 there is no op 'Tanhh' (did you mean 'Tanh'?)\n"},
      {"no_kernel Tanh float61", "1:16 'float61' is not a dtype\n"},
      {"result loss mean", "1:13 there is no node 'mean'\n"},
      {"x = Const\nresult loss x:1", "2:13 there is no 'x:1': Const has 1 output\n"},
      {"= Const", "1:1 expected the name of a node, got '='\n"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.text);
    CHECK(problems(c.text) == c.problems);
  }
}

TEST_CASE("text: loops may go round, and control edges into loops too") {
  CHECK(problems("e = Enter(x) {frame_name: f}\nx = Const\nm = Merge(e, n)\ns = Switch(m, p)\np = "
                 "LoopCond(b)\nb = Less(m, x)\nn = NextIteration(s:1)\nq = Exit(s)\n")
            .empty());
}

TEST_CASE("text: odd but legal") {
  CHECK(problems("").empty());
  CHECK(problems("\n\r\n   # only a comment\n\t\n").empty());
  CHECK(problems("preserve\n").empty());
  CHECK(problems("preserve = Const\nfetch = Relu(preserve)\npreserve preserve,fetch").empty());
  CHECK(problems("a/b-c.d_1>2 = Const()\r\nx = Relu( a/b-c.d_1>2:0 )@GPU{T:float32}").empty());
  CHECK(problems("\"a name\" = Const\ny = Relu(\"a name\":0, ^\"a name\")").empty());
}

TEST_CASE("text: what is printed parses back to the same") {
  constexpr std::string_view k_text = R"(
    function Func1
    no_kernel Tanh float16
    x   = Const {dtype: float32, value: [1.0, 2.5, -inf], shape: [3]} @/job:w/device:GPU:0
    "y z" = Relu(x, ^n)
    n   = NoOp
    idn = IdentityN("y z", x)
    f   = Func1(idn:1) {mode: "a\nb\\", list: [1, 2], real: 0.1}
    preserve f
  )";
  const std::string once = print_graph(parse(k_text));
  CHECK(once ==
        "function Func1\n"
        "no_kernel Tanh float16\n"
        "x = Const {dtype: float32, shape: [3], value: [1.0, 2.5, -inf]} @/job:w/device:GPU:0\n"
        "\"y z\" = Relu(x, ^n) {T: float32}\n"
        "n = NoOp\n"
        "idn = IdentityN(\"y z\", x) {T: [float32, float32]}\n"
        "f = Func1(idn:1) {list: [1, 2], mode: \"a\\nb\\\\\", real: 0.1}\n"
        "preserve f\n");
  CHECK(print_graph(parse(once)) == once);
}

TEST_CASE("text: an executable graph parses back with shapes, origins, variables and results") {
  Graph graph;
  Builder b(graph, op_table());
  b.origin() = {"dense_1", Phase::forward, "", {}};
  const Value x = b.placeholder("x", DType::float32, {8, 4});
  Variable kernel;
  kernel.name = "dense_1/kernel";
  kernel.type = {DType::float32, {4, 2}};
  kernel.initializer = {Initializer::Kind::uniform, -0.25, 0.25, 7, 2, 4};
  kernel.layer = "dense_1";
  const Value handle = b.variable(kernel);
  const Value y = b.add("MatMul", {x, b.read(handle)});
  b.origin() = {"", Phase::loss, "", {}};
  const Value loss = ops::reduce(b, "Mean", y);
  graph.fetches().emplace_back("loss", loss);
  graph.node(loss.node).preserve = true;

  const std::string text = print_graph(graph);
  const ParsedGraph back = parse(text);
  CHECK(print_graph(back) == text);
  verify(back.graph, "parsing");
  REQUIRE(back.graph.size() == graph.size());
  for (int id = 0; id < graph.size(); ++id) {
    const Node& was = graph.node(id);
    const Node& is = back.graph.node(id);
    CAPTURE(was.name);
    CHECK(is.name == was.name);
    CHECK(is.op == was.op);
    CHECK(is.def == was.def);
    CHECK(is.inputs == was.inputs);
    CHECK(is.attrs == was.attrs);
    CHECK(is.outputs == was.outputs);
    CHECK(is.preserve == was.preserve);
    CHECK(is.origin.layer == was.origin.layer);
    CHECK(is.origin.phase == was.origin.phase);
  }
  REQUIRE(back.graph.variables().size() == 1);
  const Variable& v = back.graph.variables()[0];
  CHECK(v.name == kernel.name);
  CHECK(v.type == kernel.type);
  CHECK(v.role == kernel.role);
  CHECK(v.initializer == kernel.initializer);
  CHECK(v.layer == kernel.layer);
  CHECK(back.graph.fetch("loss") == loss);
}

TEST_CASE("text: garbage is refused or read, never worse") {
  constexpr std::string_view k_seed = R"(function Func1
no_kernel Tanh float16
x = Const {dtype: float32, value: [1.0, 2.5], shape: [3]} @/device:GPU:0
r = Relu(x, ^n)
n = NoOp
m = Merge(e, i) {T: float32, N: 2}
e = Enter(x) {frame_name: "f"}
i = NextIteration(m)
s = Split(a, x) {num_split: 3}
a = Const {dtype: int32}
idn = IdentityN(r, s:2)
f = Func1(idn:1) {mode: "a\nb", list: [1, 2]}
variable w {dtype: float32, shape: [2], init: uniform}
result loss f:0
preserve f, m
)";
  std::mt19937 random(7);
  const std::string alphabet = "abxrms019:{}[](),=@#^\"\\-. \n\xff";
  for (int round = 0; round < 3000; ++round) {
    std::string text(k_seed);
    const int changes = 1 + static_cast<int>(random() % 6);
    for (int c = 0; c < changes; ++c) {
      const std::size_t at = random() % text.size();
      const std::size_t length = random() % 12;
      switch (random() % 4) {
        case 0:
          text[at] = alphabet[random() % alphabet.size()];
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), length));
      }
      if (text.empty()) text = "\n";
    }
    CAPTURE(text);
    try {
      const ParsedGraph parsed = parse(text);
      const std::string once = print_graph(parsed);
      CHECK(print_graph(parse(once)) == once);
    } catch (const UserError&) {
    }
  }
}

TEST_CASE("text: every op of the table round-trips") {
  for (const OpDef& op : op_table().all()) {
    CAPTURE(op.name);
    const std::string once = print_graph(parse("node = " + op.name + "\n"));
    CHECK(print_graph(parse(once)) == once);
  }
}

}  // namespace halfstep::graph
