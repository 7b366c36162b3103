// The influence of the device, the level and the mode on a rewrite.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ostream>

#include "precision/rewrite.h"
#include "rewritten.h"

namespace halfstep::precision {
namespace {

RewriteOptions on_gpu(std::string_view arch) {
  RewriteOptions options;
  options.device.arch = arch;
  return options;
}

}  // namespace

TEST_CASE("rewrite: suitable GPUs") {
  struct Case {
    std::string_view arch;
    bool suitable;
  };
  static constexpr Case k_cases[] = {
      {"sm_70", true},         {"sm_75", true},   {"sm_90a", true},  {"sm_100", true},
      {"sm_61", false},        {"7.0", true},     {"7", true},       {"7.5", true},
      {"6.9", false},          {"6", false},      {"10.0", true},    {"", false},
      {"amx", false},          {"7.x", false},    {"sm_", false},    {"gfx906", true},
      {"gfx908:xnack-", true}, {"gfx90a", false}, {"gfx900", false},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.arch);
    CHECK(is_suitable_gpu(c.arch) == c.suitable);
  }
}

TEST_CASE(
    "rewrite: the Conv2D of a conv3d layer and the ops around it have the dtypes of a Conv3D") {
  constexpr LibraryVersions k_new{11050, 8302, false};
  for (const Mode mode : {Mode::cuda, Mode::bf16, Mode::cpu, Mode::fp16_cpu}) {
    CAPTURE(name(mode));
    const OpLists lists = make_lists(mode, k_new, Level::standard, {});
    CHECK(lists.of("Conv2D") == lists.of("Conv3D"));
    CHECK(lists.of("Conv2DBackpropInput") == lists.of("Conv3DBackpropInputV2"));
    CHECK(lists.of("Conv2DBackpropFilter") == lists.of("Conv3DBackpropFilterV2"));
    // Ops that move frames follow the convolution and decide nothing.
    for (const std::string_view op : {"Pad", "Slice", "ConcatV2", "Transpose", "Reshape"}) {
      CAPTURE(op);
      CHECK(lists.of(op) == List::clear);
    }
    // The ops before and behind: between two convolutions, and on the way to a loss.
    const auto paints = [&](std::string_view convolution) {
      const Rewritten r(fmt::format("x = Const\nfirst = MatMul(x, x)\nbefore = AddV2(first, x)\n"
                                    "{}behind = Relu(conv)\nlast = Softmax(behind)\n",
                                    convolution),
                        in_mode(mode));
      std::vector<std::string> all;
      for (const char* node : {"first", "before", "conv", "behind", "last"}) {
        all.push_back(r.paint(node));
      }
      return all;
    };
    CHECK(paints("conv = Conv3D(before, x)\n") ==
          paints("pad = Pad(before, x)\nslice = Slice(pad, x, x)\nturned = Transpose(x, x)\n"
                 "conv = Conv2D(slice, turned)\n"));
  }
}

TEST_CASE("rewrite: without a suitable device the graph comes back untouched") {
  constexpr std::string_view k_graph =
      "x = Const\na = MatMul(x, x)\nbn = FusedBatchNorm(a, x, x, x, x)\nb = AddV2(a, x)\n";
  RewriteOptions old = on_gpu("sm_61");
  const Rewritten r(k_graph, old);
  CHECK(r.status() == "ok");
  CHECK(r.result().message == "no suitable GPU: sm_61 is below compute capability 7.0");
  CHECK(r.halves().empty());
  CHECK(r.result().graph.node(2).op == "FusedBatchNorm");
  CHECK(r.paint("a") == "none unprocessed");
  old.ignore_performance = true;
  CHECK(Rewritten(k_graph, old).halves() == "a");
  // The GPU does not matter to the modes for CPUs.
  RewriteOptions bf16 = on_gpu("");
  bf16.mode = Mode::bf16;
  CHECK(Rewritten(k_graph, bf16).halves() == "a bn b");
  RewriteOptions cpu = in_mode(Mode::fp16_cpu);
  CHECK(Rewritten(k_graph, cpu).halves() == "a");
  cpu.device.arch = "sm_70";
  CHECK(Rewritten(k_graph, cpu).halves() == "a");
  cpu.device.arch = "amx";
  CHECK(Rewritten(k_graph, cpu).halves().empty());
  CHECK(Rewritten(k_graph, cpu).status() == "ok");
  // Not even an unknown op or a conflict is looked at.
  RewriteOptions conflict = on_gpu("sm_61");
  conflict.edits = {edit(List::allow, {"AddV2"}, {})};
  CHECK(Rewritten("x = NoSuchOp\n", conflict).status() == "ok");
}

TEST_CASE("rewrite: versions of the device decide about the lists") {
  constexpr std::string_view k_graph = "x = Const\na = BatchMatMulV2(x, x)\nb = Conv3D(x, x)\n";
  RewriteOptions options = on_gpu("sm_70");
  options.device.cuda_version = 9010;
  options.device.cudnn_version = 7601;
  CHECK(Rewritten(k_graph, options).halves() == "a");
  options.device.cuda_version = 0;
  options.device.cudnn_version = 7602;
  CHECK(Rewritten(k_graph, options).halves() == "b");
  options.device = {"gfx908", 0, 0};
  CHECK(Rewritten(k_graph, options).halves() == "a");
}

TEST_CASE("rewrite: levels") {
  constexpr std::string_view k_graph = R"(
    x = Const
    a = MatMul(x, x)
    i = Tanh(a)
    c = Relu(i)
    b = MatMul(c, x)
  )";
  RewriteOptions options;
  CHECK(Rewritten(k_graph, options).halves() == "a i c b");
  options.level = Level::treat_infer_as_deny;
  const Rewritten harsh(k_graph, options);
  CHECK(harsh.halves() == "a c b");
  CHECK(harsh.reason("i") == "`Tanh` is on the deny list");
  options.level = Level::tensor_cores_only;
  CHECK(Rewritten(k_graph, options).halves() == "a b");
  for (Mode mode : {Mode::bf16, Mode::fp16_cpu}) {
    options.mode = mode;
    options.level = Level::tensor_cores_only;
    CHECK(Rewritten(k_graph, options).halves() == "a i c b");
    options.level = Level::unsafe_force_all;
    CHECK(Rewritten(k_graph, options).status() == "failed");
  }
}

TEST_CASE("rewrite: emulation rounds values between float32 ops") {
  RewriteOptions options = in_mode(Mode::cpu);
  constexpr std::string_view k_graph = R"(
    x   = Const
    a   = MatMul(x, x)
    r   = Relu(a)
    out = Identity(r)
    oth = Cumsum(r, axis)
    axis = Const {dtype: int32}
    preserve out
  )";
  const Rewritten r(k_graph, options);
  CHECK(r.halves().empty());
  CHECK(r.result().converted_attrs == 0);
  CHECK(r.paint("a") == "allow allow_seed");
  // Casts up are never shared, casts down always.
  CHECK(r.inputs("a") == "x-0-CastToFp16-0-0-CastToFp32-0:0, x-0-CastToFp16-0-0-CastToFp32-1:0");
  CHECK(r.inputs("r") == "a-0-CastToFp16-0-0-CastToFp32-0:0");
  CHECK(r.inputs("out") == "r-0-CastToFp16-0-0-CastToFp32-0:0");
  CHECK(r.inputs("oth") == "r-0-CastToFp16-0-0-CastToFp32-0:0, axis:0");
  CHECK(r.casts() ==
        "x-0-CastToFp16-0 x-0-CastToFp16-0-0-CastToFp32-0 x-0-CastToFp16-0-0-CastToFp32-1 "
        "a-0-CastToFp16-0 a-0-CastToFp16-0-0-CastToFp32-0 r-0-CastToFp16-0 "
        "r-0-CastToFp16-0-0-CastToFp32-0");
  CHECK(r.result().casts[1].input == "x-0-CastToFp16-0-AutoMixedPrecision:0");
  CHECK(r.result().casts[0].consumers ==
        std::vector<std::string>{
            "x-0-CastToFp16-0-AutoMixedPrecision-0-CastToFp32-0-AutoMixedPrecision",
            "x-0-CastToFp16-0-AutoMixedPrecision-0-CastToFp32-1-AutoMixedPrecision"});
  CHECK(r.result().casts_counted == 2);

  options.emulate = false;
  CHECK(Rewritten(k_graph, options).halves() == "a r");
}

TEST_CASE("rewrite: emulation takes ops in any order of lines, loops too") {
  const Rewritten r(R"(
    a     = MatMul(merge, x)
    next  = NextIteration(a)
    merge = Merge(enter, next)
    enter = Enter(x) {frame_name: f}
    x     = Const
  )",
                    in_mode(Mode::cpu));
  CHECK(r.status() == "ok");
  const graph::Graph& graph = r.result().graph;
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    if (node.op != "Cast") continue;
    CAPTURE(node.name);
    CHECK(graph.type(node.inputs[0]).dtype == node.attrs.get<DType>("SrcT"));
  }
}

TEST_CASE("rewrite: fp16_cpu uses oneDNN's lists") {
  const Rewritten r(R"(
    x = Const
    a = MatMul(x, x)
    s = Rsqrt(a)
    l = BlockLSTM(i, x, x, x, x, x, x, x, x)
    i = Const {dtype: int64}
    b = MatMul(s, x)
  )",
                    in_mode(Mode::fp16_cpu));
  CHECK(r.halves() == "a s b");
}

TEST_CASE(
    "rewrite: infer ops follow converted ones by the rules of TensorFlow 2.20+ in every mode") {
  constexpr std::string_view k_graph = "x = Const\na = MatMul(x, x)\nb = BiasAdd(a, x)\n";
  for (const Mode mode : {Mode::cuda, Mode::bf16, Mode::fp16_cpu}) {
    CAPTURE(name(mode));
    RewriteOptions options = in_mode(mode);
    CHECK(Rewritten(k_graph, options).halves() == (mode == Mode::bf16 ? "a b" : "a"));
    options.rules = config::RewriteRules::tensorflow_2_20;
    const Rewritten newer(k_graph, options);
    CHECK(newer.halves() == "a b");
    CHECK(newer.paint("b") == "allow infer_after_allow");
  }
}

}  // namespace halfstep::precision
