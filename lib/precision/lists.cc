#include "precision/lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/printable.h"
#include "core/ranges.h"

namespace halfstep::precision {
namespace {

enum class Gate { none, cuda_9010, cudnn_7602, cudnn_8000 };

/// Ops on the same lists: A allow, I infer, D deny, C clear, - none.
struct Row {
  char fp16;    ///< modes cuda and cpu
  char bf16;    ///< mode bf16
  char onednn;  ///< mode fp16_cpu
  std::string_view ops;
  Gate gate = Gate::none;  ///< of the fp16 lists alone
};

/// Source: TensorFlow's auto_mixed_precision_lists.h, the release with Fp16 and Mkl lists.
constexpr std::array k_rows{
    Row{'A', 'A', 'A', "MatMul Einsum Conv2D Conv2DBackpropInput Conv2DBackpropFilter"},
    Row{'A', 'A', 'A', "BatchMatMul BatchMatMulV2", Gate::cuda_9010},
    Row{'A', 'A', 'A', "Conv3D Conv3DBackpropInputV2 Conv3DBackpropFilterV2", Gate::cudnn_7602},
    Row{'A', '-', 'A', "Conv3DBackpropInput Conv3DBackpropFilter", Gate::cudnn_7602},
    Row{'A',
        'A',
        'A',
        "DepthwiseConv2dNative DepthwiseConv2dNativeBackpropInput "
        "DepthwiseConv2dNativeBackpropFilter",
        Gate::cudnn_8000},
    Row{'A', '-', '-', "FusedConv2DBiasActivation"},
    Row{'-', 'A', '-', "FusedPadConv2D"},
    Row{'A',
        '-',
        '-',
        "BlockLSTM BlockLSTMV2 BlockLSTMGrad BlockLSTMGradV2 LSTMBlockCell LSTMBlockCellGrad "
        "GRUBlockCell GRUBlockCellGrad CudnnRNN CudnnRNNV2 CudnnRNNV3 CudnnRNNBackprop "
        "CudnnRNNBackpropV2 CudnnRNNBackpropV3 Mha MhaV2 Tmlp TmlpV2 TmlpV3 Pmlp "
        "FusedSparseConvGpuV2 FastUnsortedSegmentMax"},
    // halfstep's own: recurrent layers whose matmuls TensorFlow would allow one by one.
    Row{'A', 'A', 'A', "RNN RNNGrad"},

    Row{'I', 'I', 'I', "BiasAdd BiasAddV1 BiasAddGrad"},
    Row{'I', 'I', 'I', "Add AddV2 AddN Sub Mul RealDiv FloorDiv Reciprocal Inv"},
    Row{'I',
        'I',
        'I',
        "FusedBatchNormV2 FusedBatchNormV3 FusedBatchNormGradV2 FusedBatchNormGradV3 "
        "_FusedBatchNormEx"},
    // halfstep's own, like the FusedBatchNormV3 by which Keras 2 computes them.
    Row{'I',
        'I',
        'I',
        "BatchMoments NormalizeByMoments BatchNormGradSums NormalizeByMomentsGrad LayerNorm "
        "LayerNormGrad"},
    Row{'I', 'I', 'I', "AvgPool AvgPoolGrad AvgPool3D AvgPool3DGrad"},
    Row{'I',
        'I',
        'I',
        "LeakyRelu LeakyReluGrad Elu EluGrad Selu SeluGrad Softplus SoftplusGrad Softsign "
        "SoftsignGrad Sigmoid SigmoidGrad Tanh TanhGrad Erf Erfc Softmax LogSoftmax"},
    // halfstep's own. TensorFlow composes GELU: by Erf of ops that are all on the infer list; by
    // tanh with Pow, which is denied for the range of its result and which this op computes in
    // float32.
    Row{'I', 'I', 'I', "Gelu GeluGrad GeluApproximate GeluApproximateGrad"},
    Row{'I', 'I', 'I', "Prod Log Log1p Sqrt"},
    Row{'-', 'I', 'I', "Rsqrt Square SquaredDifference"},

    Row{'D', 'D', 'D', "SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits"},
    Row{'D', 'D', 'D', "Exp Expm1 Pow L2Loss SaveV2"},
    Row{'D', 'I', 'D', "Sum Mean"},

    Row{'C',
        'C',
        'C',
        "MaxPool MaxPoolV2 MaxPoolGrad MaxPoolGradV2 MaxPoolGradGrad MaxPoolGradGradV2 MaxPool3D "
        "MaxPool3DGrad"},
    Row{'C', '-', 'C', "MaxPool3DGradGrad"},
    Row{'C', 'C', 'C', "Relu ReluGrad Relu6 Relu6Grad"},
    Row{'C',
        'C',
        'C',
        "Max Min Maximum Minimum ArgMax ArgMin Abs Neg Sign Floor Ceil Round ClipByValue"},
    Row{'C',
        'C',
        'C',
        "Equal NotEqual Less LessEqual Greater GreaterEqual IsFinite IsInf IsNan CheckNumerics"},
    Row{'C',
        'C',
        'C',
        "Reshape Transpose Squeeze ExpandDims Concat ConcatV2 Split SplitV Pack Unpack Tile "
        "BroadcastTo Fill"},
    Row{'C',
        'C',
        'C',
        "Pad PadV2 MirrorPad MirrorPadGrad Slice StridedSlice StridedSliceGrad Reverse ReverseV2 "
        "ReverseSequence"},
    Row{'C',
        'C',
        'C',
        "Gather GatherV2 GatherNd DynamicPartition DynamicStitch Select SelectV2 Where TopK "
        "TopKV2"},
    Row{'C',
        'C',
        'C',
        "Identity IdentityN StopGradient PreventGradient Snapshot EnsureShape Shape ShapeN Rank "
        "OnesLike ZerosLike"},
    Row{'C', '-', 'C', "OneHot Size"},
    Row{'-', 'C', '-', "ScatterNd ResizeBilinear While StatelessWhile"},
    Row{'C',
        'C',
        'C',
        "ResizeNearestNeighbor ResizeNearestNeighborGrad SpaceToBatch SpaceToBatchND BatchToSpace "
        "BatchToSpaceND SpaceToDepth DepthToSpace"},
    Row{'C', 'C', 'C', "Enter Exit Merge Switch NextIteration"},
    Row{'C',
        'C',
        'C',
        "TensorListConcat TensorListConcatLists TensorListConcatV2 TensorListGather "
        "TensorListGetItem TensorListPopBack TensorListPushBack TensorListPushBackBatch "
        "TensorListFromTensor TensorListScatter TensorListScatterV2 "
        "TensorListScatterIntoExistingList TensorListSetItem TensorListSplit TensorListStack"},

    // On no list; named so that every executable op has an entry.
    Row{'-', '-', '-', "Cast Const Placeholder Range"},
    Row{'-', '-', '-', "VarHandleOp ReadVariableOp AssignVariableOp AssignAddVariableOp"},
    Row{'-', '-', '-', "BatchMatMulV3 SparseMatMul FusedBatchNorm FusedBatchNormGrad"},
    Row{'-',
        '-',
        '-',
        "SqrtGrad RsqrtGrad ReciprocalGrad Cumsum LRN LRNGrad Div DivNoNan Xdivy Sin Cos Erfinv "
        "LogicalAnd LogicalOr LogicalNot All Any ResourceGather UnsortedSegmentSum InTopKV2"},
    Row{'-',
        '-',
        '-',
        "ResourceApplyGradientDescent ResourceApplyKerasMomentum ResourceApplyKerasRMSProp "
        "ResourceApplyRMSProp ResourceApplyCenteredRMSProp ResourceApplyAdam ResourceApplyAdamW "
        "ResourceApplyAdagradV2"},
    Row{'-',
        '-',
        '-',
        "AllFinite SquaredNorms AllReduceStart AllReduceWait ReduceScatterStart ReduceScatterWait "
        "AllGatherStart AllGatherWait FusedUpdate GroupedUpdate MovingAverages "
        "CastVariable CastBiasAddGrad "
        "UpdateLossScale LearningRate PackOperand PackedVariable PackedMatMul PackedMatMulUpdate "
        "FusedMatMul FusedElementwise Conv2DBias Conv2DBiasRelu BatchNormReluGrad FusedAttention "
        "FusedAttentionGrad SoftmaxLoss GatherBatch NextBatch LogScalars KeepState"},
    Row{'-', '-', '-', "RandomUniformFromOrdinal RandomFlip RandomTranslation"},
};

constexpr std::array<std::string_view, 4> k_modes{"cuda", "bf16", "cpu", "fp16_cpu"};
constexpr std::array<std::string_view, 4> k_levels{
    "standard", "treat_infer_as_deny", "tensor_cores_only", "unsafe_force_all"};
constexpr std::array<std::string_view, 4> k_lists{"allow", "infer", "deny", "clear"};
constexpr std::array k_all_lists{List::allow, List::infer, List::deny, List::clear};

template <class E>
std::optional<E> named(std::string_view text, const std::array<std::string_view, 4>& names) {
  const auto it = std::ranges::find(names, text);
  if (it == names.end()) return std::nullopt;
  return static_cast<E>(it - names.begin());
}

template <class Visit>
void each_op(std::string_view ops, Visit visit) {
  while (!ops.empty()) {
    const std::size_t end = ops.find(' ');
    visit(ops.substr(0, end));
    ops.remove_prefix(end == std::string_view::npos ? ops.size() : end + 1);
  }
}

std::optional<List> list_lettered(char letter) {
  switch (letter) {
    case 'A':
      return List::allow;
    case 'I':
      return List::infer;
    case 'D':
      return List::deny;
    case 'C':
      return List::clear;
    default:
      return std::nullopt;
  }
}

bool passes(Gate gate, const LibraryVersions& libraries) {
  switch (gate) {
    case Gate::none:
      return true;
    case Gate::cuda_9010:
      return libraries.rocm || libraries.cuda >= 9010;
    case Gate::cudnn_7602:
      return libraries.cudnn >= 7602;
    case Gate::cudnn_8000:
      return libraries.cudnn >= 8000;
  }
  return true;
}

char letter(const Row& row, Mode mode, const LibraryVersions& libraries) {
  if (mode == Mode::bf16) return row.bf16;
  if (mode == Mode::fp16_cpu) return row.onednn;
  return passes(row.gate, libraries) ? row.fp16 : '-';
}

}  // namespace

std::span<const std::string_view> names_of(Mode) { return k_modes; }
std::string_view name(Mode mode) { return k_modes[static_cast<std::size_t>(mode)]; }
std::string_view name(Level level) { return k_levels[static_cast<std::size_t>(level)]; }
std::string_view name(List list) { return k_lists[static_cast<std::size_t>(list)]; }

std::optional<Mode> mode_named(std::string_view text) { return named<Mode>(text, k_modes); }

std::optional<Level> level_named(std::string_view text) {
  return text.empty() ? Level::standard : named<Level>(lower_case(text), k_levels);
}

std::vector<std::string> level_names() { return {k_levels.begin(), k_levels.end()}; }

bool ListEdits::empty() const {
  const auto none = [](const std::vector<Item>& items) { return items.empty(); };
  return std::ranges::all_of(add, none) && std::ranges::all_of(remove, none);
}

std::optional<List> OpLists::of(std::string_view op) const {
  for (List list : k_all_lists) {
    if (on(list, op)) return list;
  }
  return std::nullopt;
}

std::vector<std::string> OpLists::conflicts() const {
  Ops all;
  for (List list : k_all_lists) all.insert(ops(list).begin(), ops(list).end());
  std::vector<std::string> lines;
  for (const std::string& op : all) {
    std::vector<std::string_view> lists;
    for (List list : k_all_lists) {
      if (on(list, op)) lists.push_back(name(list));
    }
    if (lists.size() > 1) {
      lines.push_back(fmt::format("{} is on the lists {}", op, fmt::join(lists, " and ")));
    }
  }
  return lines;
}

OpLists make_lists(Mode mode,
                   const LibraryVersions& libraries,
                   Level level,
                   std::span<const ListEdits> edits) {
  // The emulation is defined for one particular GPU.
  const LibraryVersions used = mode == Mode::cpu ? LibraryVersions{10000, 8000, false} : libraries;
  OpLists lists;
  for (const Row& row : k_rows) {
    const std::optional<List> list = list_lettered(letter(row, mode, used));
    if (list) each_op(row.ops, [&](std::string_view op) { lists.ops(*list).emplace(op); });
  }
  const bool tensor_cores_only =
      level == Level::tensor_cores_only && (mode == Mode::cuda || mode == Mode::cpu);
  for (List list : k_all_lists) {
    OpLists::Ops& ops = lists.ops(list);
    if (tensor_cores_only && list != List::allow) {
      ops.clear();
      continue;
    }
    for (const ListEdits& round : edits) {
      for (const ListEdits::Item& item : round.add[static_cast<std::size_t>(list)]) {
        ops.insert(item.op);
      }
      for (const ListEdits::Item& item : round.remove[static_cast<std::size_t>(list)]) {
        ops.erase(item.op);
      }
    }
  }
  if (level == Level::treat_infer_as_deny) lists.ops(List::deny).merge(lists.ops(List::infer));
  if (level == Level::treat_infer_as_deny) lists.ops(List::infer).clear();
  return lists;
}

UnknownEdits unknown_ops(std::span<const ListEdits> edits,
                         const graph::OpTable& ops,
                         const std::set<std::string>& others) {
  auto known = mapped<std::string>(ops.all(), &graph::OpDef::name);
  for (const Row& row : k_rows) {
    each_op(row.ops, [&](std::string_view op) {
      if (ops.find(op) == nullptr) known.emplace_back(op);
    });
  }
  known.insert(known.end(), others.begin(), others.end());
  UnknownEdits unknown;
  const auto check = [&](const ListEdits& round, const std::vector<ListEdits::Item>& items) {
    for (const ListEdits::Item& item : items) {
      if (contains(known, item.op)) continue;
      (round.lenient ? unknown.warnings : unknown.errors)
          .push_back({item.where,
                      fmt::format("no table knows the op '{}'", item.op),
                      did_you_mean(item.op, known)});
    }
  };
  for (const ListEdits& round : edits) {
    for (const auto& items : round.add) check(round, items);
    for (const auto& items : round.remove) check(round, items);
  }
  return unknown;
}

}  // namespace halfstep::precision
