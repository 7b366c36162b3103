#include "precision/lists.h"

#include <doctest/doctest.h>

#include <ostream>

#include "graph/ops/ops.h"

namespace halfstep::precision {
namespace {

constexpr LibraryVersions k_new{11050, 8302, false};

ListEdits list_edit(List list, std::vector<std::string> add, std::vector<std::string> remove) {
  ListEdits edits;
  for (const std::string& op : add) {
    edits.add[static_cast<std::size_t>(list)].push_back({op, {}});
  }
  for (const std::string& op : remove) {
    edits.remove[static_cast<std::size_t>(list)].push_back({op, {}});
  }
  return edits;
}

std::string on(const OpLists& lists, std::string_view op) {
  const std::optional<List> list = lists.of(op);
  return list ? std::string(name(*list)) : "-";
}

}  // namespace

TEST_CASE("lists: ops stand where TensorFlow's newest lists have them") {
  struct Case {
    std::string_view op, fp16, bf16, onednn;
  };
  static constexpr Case k_cases[] = {
      {"MatMul", "allow", "allow", "allow"},
      {"Einsum", "allow", "allow", "allow"},
      {"BatchMatMulV2", "allow", "allow", "allow"},
      {"BatchMatMulV3", "-", "-", "-"},
      {"SparseMatMul", "-", "-", "-"},
      {"Conv2DBackpropFilter", "allow", "allow", "allow"},
      {"Conv3DBackpropInput", "allow", "-", "allow"},
      {"Conv3DBackpropInputV2", "allow", "allow", "allow"},
      {"DepthwiseConv2dNativeBackpropFilter", "allow", "allow", "allow"},
      {"FusedConv2DBiasActivation", "allow", "-", "-"},
      {"FusedPadConv2D", "-", "allow", "-"},
      {"CudnnRNNV3", "allow", "-", "-"},
      {"TmlpV3", "allow", "-", "-"},
      {"BiasAddGrad", "infer", "infer", "infer"},
      {"AddV2", "infer", "infer", "infer"},
      {"FusedBatchNormV3", "infer", "infer", "infer"},
      {"FusedBatchNorm", "-", "-", "-"},
      {"Softmax", "infer", "infer", "infer"},
      {"Erfc", "infer", "infer", "infer"},
      {"Rsqrt", "-", "infer", "infer"},
      {"Square", "-", "infer", "infer"},
      {"SquaredDifference", "-", "infer", "infer"},
      {"Sum", "deny", "infer", "deny"},
      {"Mean", "deny", "infer", "deny"},
      {"Exp", "deny", "deny", "deny"},
      {"SparseSoftmaxCrossEntropyWithLogits", "deny", "deny", "deny"},
      {"Relu", "clear", "clear", "clear"},
      {"MaxPool3DGradGrad", "clear", "-", "clear"},
      {"OneHot", "clear", "-", "clear"},
      {"Size", "clear", "-", "clear"},
      {"ScatterNd", "-", "clear", "-"},
      {"ResizeBilinear", "-", "clear", "-"},
      {"While", "-", "clear", "-"},
      {"IdentityN", "clear", "clear", "clear"},
      {"NextIteration", "clear", "clear", "clear"},
      {"TensorListPushBackBatch", "clear", "clear", "clear"},
      {"TensorListReserve", "-", "-", "-"},
      {"Cast", "-", "-", "-"},
      {"Cumsum", "-", "-", "-"},
      {"DivNoNan", "-", "-", "-"},
      {"ResourceGather", "-", "-", "-"},
      {"UnsortedSegmentSum", "-", "-", "-"},
      {"TensorArrayV3", "-", "-", "-"},
  };
  const OpLists cuda = make_lists(Mode::cuda, k_new, Level::standard, {});
  const OpLists bf16 = make_lists(Mode::bf16, k_new, Level::standard, {});
  const OpLists onednn = make_lists(Mode::fp16_cpu, k_new, Level::standard, {});
  for (const Case& c : k_cases) {
    CAPTURE(c.op);
    CHECK(on(cuda, c.op) == c.fp16);
    CHECK(on(bf16, c.op) == c.bf16);
    CHECK(on(onednn, c.op) == c.onednn);
  }
}

TEST_CASE("lists: every list has as many ops as TensorFlow's") {
  // Counted in auto_mixed_precision_lists.h, less VoxelMax, which is not among the listed traits.
  const OpLists cuda = make_lists(Mode::cuda, k_new, Level::standard, {});
  CHECK(cuda.ops(List::deny).size() == 9);
  constexpr std::size_t k_own = 2;  // RNN and RNNGrad
  // GELU in both forms, LayerNorm, their gradients, and four of batch normalization over ranks.
  constexpr std::size_t k_own_infer = 10;
  CHECK(cuda.ops(List::infer).size() == 43 + k_own_infer);
  CHECK(cuda.ops(List::allow).size() == 38 + k_own);
  const OpLists bf16 = make_lists(Mode::bf16, k_new, Level::standard, {});
  CHECK(bf16.ops(List::deny).size() == 7);
  CHECK(bf16.ops(List::infer).size() == 48 + k_own_infer);
  CHECK(bf16.ops(List::allow).size() == 14 + k_own);
  CHECK(cuda.conflicts().empty());
  CHECK(bf16.conflicts().empty());
}

TEST_CASE("lists: some ops are allowed from a version of CUDA or cuDNN on") {
  struct Case {
    std::string_view op;
    LibraryVersions libraries;
    std::string_view list;
  };
  static constexpr Case k_cases[] = {
      {"BatchMatMul", {9009, 9999, false}, "-"},
      {"BatchMatMul", {9010, 0, false}, "allow"},
      {"BatchMatMulV2", {0, 9999, false}, "-"},
      {"BatchMatMulV2", {0, 0, true}, "allow"},
      {"Conv3D", {99999, 7601, false}, "-"},
      {"Conv3D", {0, 7602, false}, "allow"},
      {"Conv3DBackpropFilter", {0, 7602, false}, "allow"},
      {"DepthwiseConv2dNative", {0, 7999, false}, "-"},
      {"DepthwiseConv2dNative", {0, 8000, false}, "allow"},
      {"MatMul", {0, 0, false}, "allow"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.op);
    CAPTURE(c.libraries.cuda);
    CAPTURE(c.libraries.cudnn);
    CHECK(on(make_lists(Mode::cuda, c.libraries, Level::standard, {}), c.op) == c.list);
  }
  // The emulation stands for CUDA 10.0 and cuDNN 8.0, the CPU lists know no versions.
  CHECK(on(make_lists(Mode::cpu, {}, Level::standard, {}), "DepthwiseConv2dNative") == "allow");
  CHECK(on(make_lists(Mode::bf16, {}, Level::standard, {}), "Conv3D") == "allow");
  CHECK(on(make_lists(Mode::fp16_cpu, {}, Level::standard, {}), "BatchMatMul") == "allow");
}

TEST_CASE("lists: an edit adds first, then removes, round by round") {
  const auto lists = [](std::vector<ListEdits> edits) {
    return make_lists(Mode::cuda, k_new, Level::standard, edits);
  };
  CHECK(on(lists({list_edit(List::allow, {"Cumsum"}, {})}), "Cumsum") == "allow");
  CHECK(on(lists({list_edit(List::allow, {"Cumsum"}, {"Cumsum"})}), "Cumsum") == "-");
  CHECK(on(lists({list_edit(List::allow, {}, {"Cumsum"}), list_edit(List::allow, {"Cumsum"}, {})}),
           "Cumsum") == "allow");
  CHECK(on(lists({list_edit(List::infer, {}, {"AddV2"})}), "AddV2") == "-");
  CHECK(on(lists({list_edit(List::infer, {}, {"AddV2"}), list_edit(List::allow, {"AddV2"}, {})}),
           "AddV2") == "allow");
}

TEST_CASE("lists: an op on two lists is a conflict, one line for each op") {
  const std::vector<ListEdits> edits{list_edit(List::allow, {"AddV2", "Exp"}, {})};
  const OpLists lists = make_lists(Mode::cuda, k_new, Level::standard, edits);
  CHECK(lists.conflicts() == std::vector<std::string>{"AddV2 is on the lists allow and infer",
                                                      "Exp is on the lists allow and deny"});
}

TEST_CASE("lists: levels") {
  const OpLists harsh = make_lists(Mode::bf16, k_new, Level::treat_infer_as_deny, {});
  CHECK(on(harsh, "AddV2") == "deny");
  CHECK(on(harsh, "Exp") == "deny");
  CHECK(harsh.ops(List::infer).empty());

  const std::vector<ListEdits> edits{list_edit(List::clear, {"Cumsum"}, {}),
                                     list_edit(List::allow, {"Cumprod"}, {})};
  for (Mode mode : {Mode::cuda, Mode::cpu}) {
    const OpLists cores = make_lists(mode, k_new, Level::tensor_cores_only, edits);
    CHECK(cores.ops(List::infer).empty());
    CHECK(cores.ops(List::deny).empty());
    CHECK(cores.ops(List::clear).empty());
    CHECK(on(cores, "Cumprod") == "allow");
  }
  for (Mode mode : {Mode::bf16, Mode::fp16_cpu}) {
    const OpLists ignored = make_lists(mode, k_new, Level::tensor_cores_only, edits);
    CHECK(on(ignored, "AddV2") == "infer");
    CHECK(on(ignored, "Cumsum") == "clear");
  }
}

TEST_CASE("lists: infer merged into deny is no conflict with deny") {
  const std::vector<ListEdits> edits{list_edit(List::deny, {"AddV2"}, {})};
  CHECK(make_lists(Mode::cuda, k_new, Level::standard, edits).conflicts().size() == 1);
  CHECK(make_lists(Mode::cuda, k_new, Level::treat_infer_as_deny, edits).conflicts().empty());
}

TEST_CASE("lists: names of levels and modes") {
  CHECK(level_named("UNSAFE_FORCE_ALL") == Level::unsafe_force_all);
  CHECK(level_named("treat_infer_as_deny") == Level::treat_infer_as_deny);
  CHECK(level_named("") == Level::standard);
  CHECK_FALSE(level_named("bold").has_value());
  CHECK(mode_named("fp16_cpu") == Mode::fp16_cpu);
  CHECK_FALSE(mode_named("gpu").has_value());
}

TEST_CASE("lists: an edit of an op that no table knows is reported with the nearest") {
  std::vector<ListEdits> edits{list_edit(List::allow, {"SoftMax", "Mha", "MyOp"}, {"Relux"}),
                               list_edit(List::deny, {"Nonsense"}, {})};
  edits[0].add[0][0].where.line = 7;
  edits[1].lenient = true;
  const UnknownEdits unknown = unknown_ops(edits, graph::op_table(), {"MyOp"});
  REQUIRE(unknown.errors.size() == 2);
  CHECK(unknown.errors[0].message == "no table knows the op 'SoftMax'");
  CHECK(unknown.errors[0].hint == "did you mean 'Softmax'?");
  CHECK(unknown.errors[0].where.line == 7);
  CHECK(unknown.errors[1].message == "no table knows the op 'Relux'");
  REQUIRE(unknown.warnings.size() == 1);
  CHECK(unknown.warnings[0].message == "no table knows the op 'Nonsense'");
}

TEST_CASE("lists: every executable op has a row") {
  // Without the op table, an edit is of an unknown op unless a row of the lists has it.
  std::vector<ListEdits> edits(1);
  for (const graph::OpDef& op : graph::op_table().all()) {
    if (op.infer != nullptr && op.stage == graph::Stage::tf)
      edits[0].add[0].push_back({op.name, {}});
  }
  for (const Problem& error : unknown_ops(edits, graph::OpTable({})).errors)
    FAIL_CHECK(error.message);
}

TEST_CASE("lists: the op table has every listed op that TensorFlow's registry has") {
  // Ops of TensorFlow's lists that its public registry lacks.
  const std::set<std::string, std::less<>> private_ops{"Mha",
                                                       "MhaV2",
                                                       "Tmlp",
                                                       "TmlpV2",
                                                       "TmlpV3",
                                                       "Pmlp",
                                                       "FusedSparseConvGpuV2",
                                                       "FastUnsortedSegmentMax"};
  for (Mode mode : {Mode::cuda, Mode::bf16, Mode::fp16_cpu}) {
    const OpLists lists = make_lists(mode, k_new, Level::standard, {});
    for (List list : {List::allow, List::infer, List::deny, List::clear}) {
      for (const std::string& op : lists.ops(list)) {
        if (private_ops.contains(op)) continue;
        CAPTURE(op);
        CHECK(graph::op_table().find(op) != nullptr);
      }
    }
  }
}

}  // namespace halfstep::precision
