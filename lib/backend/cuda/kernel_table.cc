#include "backend/cuda/kernel_table.h"

#include <algorithm>
#include <limits>

#include "backend/cuda/kernels/attention.h"
#include "backend/cuda/kernels/dataset.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/kernels/few_taps.h"
#include "backend/cuda/kernels/layer_norm.h"
#include "backend/cuda/kernels/recurrent.h"
#include "backend/cuda/kernels/reduce.h"
#include "backend/cuda/kernels/scaling.h"
#include "backend/cuda/kernels/state.h"
#include "backend/functions/body.h"
#include "core/error.h"
#include "graph/elementwise_body.h"
#include "graph/op_handles.h"
#include "graph/ops/fused_update.h"
#include "graph/ops/ops.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cuda {
namespace {

using Test = Accepts (*)(const NodeView&, const Capabilities&);

/// First compute capability with bfloat16 tensor cores.
constexpr int k_bfloat16_capability = 80;

bool executable(DType dtype) {
  using enum DType;
  constexpr DTypeSet k_types{
      float32, float64, float16, bfloat16, int32, int64, uint8, boolean, resource};
  return k_types.contains(dtype);
}

/// Kernels divide indices in 32 bits.
Accepts indexable(const graph::TensorType& type) {
  if (type.shape.elements() <= std::numeric_limits<std::uint32_t>::max()) return Accepts::yes();
  return Accepts::no(fmt::format("{} elements are more than 2^32", type.shape.elements()));
}

Accepts supported_types(const NodeView& node, const Capabilities&) {
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    if (!executable(node.input(i).dtype)) {
      return Accepts::no(fmt::format("no kernel for {}", name(node.input(i).dtype)));
    }
    if (Accepts fits = indexable(node.input(i)); !fits) return fits;
  }
  for (std::size_t i = 0; i < node.outputs(); ++i) {
    if (Accepts fits = indexable(node.output(i)); !fits) return fits;
  }
  return Accepts::yes();
}

Accepts among_ranks(const NodeView& node, const Capabilities& capabilities) {
  if (!capabilities.ranks) return Accepts::no("the run has no other ranks");
  return supported_types(node, capabilities);
}

/// Input `i` must be constant.
template <std::size_t i>
Accepts constant(const NodeView& node, const Capabilities& capabilities) {
  if (!node.constant(i)) return Accepts::no(fmt::format("input {} is not a constant", i));
  return supported_types(node, capabilities);
}

Accepts last_constant(const NodeView& node, const Capabilities& capabilities) {
  if (!node.constant(node.inputs() - 1)) return Accepts::no("the axis is not a constant");
  return supported_types(node, capabilities);
}

/// The dtypes of the libraries' matmuls: one dtype of 32 or 16 bits for all operands.
Accepts library_dtype(const NodeView& node, const Capabilities& capabilities) {
  const DType dtype = node.output().dtype;
  if (dtype != DType::float32 && !is_half(dtype)) {
    return Accepts::no(fmt::format("no matmul of {}", name(dtype)));
  }
  if (dtype == DType::bfloat16 && capabilities.compute_capability < k_bfloat16_capability) {
    return Accepts::no("bfloat16 needs compute capability 8.0");
  }
  return Accepts::yes();
}

/// A matmul with an epilogue.
Accepts fused_matmul(const NodeView& node, const Capabilities& capabilities) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (node.input(i).shape.elements() == 0) return Accepts::no("an operand is empty");
  }
  return library_dtype(node, capabilities);
}

/// A recurrent layer or its gradient: input 4 is the initial carry.
Accepts recurrent(const NodeView& node, const Capabilities& capabilities) {
  if (node.input(4).dtype != DType::float32) return Accepts::no("a carry in float64");
  if (Accepts fits = library_dtype(node, capabilities); !fits) return fits;
  return supported_types(node, capabilities);
}

template <auto geometry>
Accepts recurrent_in_one_launch(const NodeView& node, const Capabilities& capabilities) {
  const graph::ops::RnnGeometry g = geometry(node.attrs(), node.input(0).shape);
  if (!kernels::takes_one_launch(g, node.input(0).dtype)) {
    return Accepts::no(
        "the batch or the kernel is too large, or the units are not a multiple of 8");
  }
  return recurrent(node, capabilities);
}

/// `query`: the number of that input. Tiles are multiplied by FMA, and scores stay in shared
/// memory. Estimated for an H100: matmuls of 16 bits, with up to 70 bytes of memory for each score,
/// take less time where many scores have many channels, and those of float32 where they have more.
template <std::size_t query>
Accepts attention(const NodeView& node, const Capabilities& capabilities) {
  constexpr double k_few = 1 << 27;  // multiply-adds, beside which launches count
  const DType dtype = node.input(query).dtype;
  if (dtype != DType::float32 && !is_half(dtype)) {
    return Accepts::no(fmt::format("no attention of {}", name(dtype)));
  }
  if ((query == 0 ? node.output(1) : node.input(5)).dtype != DType::float32) {
    return Accepts::no("a log_sum_exp in float64");
  }
  const graph::ops::AttentionGeometry g =
      graph::ops::attention_geometry(node.attrs(),
                                     node.input(query).shape,
                                     node.input(query + 1).shape,
                                     node.input(query + 2).shape);
  if (std::max(g.depth, g.value_depth) > kernels::AttentionInputs::k_max_channels) {
    return Accepts::no(
        fmt::format("heads of more than {} channels", kernels::AttentionInputs::k_max_channels));
  }
  const std::int64_t channels = g.depth + g.value_depth;
  const double multiply_adds =
      static_cast<double>(g.items() * g.queries) * static_cast<double>(g.keys * channels);
  if (multiply_adds > k_few && channels > (is_half(dtype) ? 32 : 128)) {
    return Accepts::no("matmuls of so many scores and channels take less time");
  }
  return supported_types(node, capabilities);
}

/// Gradients whose scale must be float32: it has the dtype of input 2. Sums without a ReLU, with
/// four inputs, have no scale.
Accepts float32_scale(const NodeView& node, const Capabilities& capabilities) {
  if (node.inputs() > 4 && node.input(2).dtype != DType::float32)
    return Accepts::no("a scale in float64");
  return supported_types(node, capabilities);
}

Accepts channels_last(const NodeView& node, const Capabilities& capabilities) {
  if (node.attrs().get_or<std::string>("data_format", "NHWC") != "NHWC") {
    return Accepts::no("the channels are not last");
  }
  return supported_types(node, capabilities);
}

Accepts layer_norm(const NodeView& node, const Capabilities& capabilities) {
  const DType x = node.output().dtype;
  const DType moments = x == DType::float64 ? x : DType::float32;
  if (node.output(1).dtype != moments) return Accepts::no("moments of another dtype");
  if (node.output().shape.elements() == 0) return Accepts::no("empty");
  using Gradient = kernels::LayerNormGradParams;
  const auto of_x = node.attrs().get_or<std::int64_t>("x_addends", 1);
  const std::int64_t of_y = node.attrs().get<std::int64_t>("num_addends") - of_x;
  const bool narrow = node.output().shape.back() <= Gradient::k_max_narrow;
  const bool fits = of_y <= (narrow ? Gradient::k_max_addends : 0) && of_x <= 1;
  return fits ? supported_types(node, capabilities) : Accepts::no("too many addends");
}

Accepts fused_norm(const NodeView& node, const Capabilities& capabilities) {
  if (node.attrs().get<std::string>("activation_mode") != "Relu") {
    return Accepts::no("the activation is not Relu");
  }
  if (node.inputs() > 6) return Accepts::no("more than one side input");
  return channels_last(node, capabilities);
}

Accepts convolution(const NodeView& node, const Capabilities& capabilities) {
  if (Accepts layout = channels_last(node, capabilities); !layout) return layout;
  return library_dtype(node, capabilities);
}

/// Convolution gradients whose input number `sizes` is a shape.
template <std::size_t sizes>
Accepts convolution_gradient(const NodeView& node, const Capabilities& capabilities) {
  if (!node.constant(sizes)) return Accepts::no("the sizes are not a constant");
  return convolution(node, capabilities);
}

/// A convolution without groups, whose filter has at most `max_taps` taps.
Accepts has_taps_up_to(std::int64_t max_taps, const NodeView& node, const Shape& filter) {
  const bool fits = filter.elements(0, 3) <= max_taps && filter[2] == node.input(0).shape.back();
  return fits ? Accepts::yes() : Accepts::no("too many taps, or groups");
}

/// Convolutions of few taps whose channels do not fill a tensor core's operand. On an H200 cuDNN
/// took 37, 164 and 193 us (float16, bfloat16, float32) for 1,024 images of 28 x 28 and 32 filters
/// of 3 x 3, which store 44 MB in 16 bits.
Accepts few_taps_convolution(const NodeView& node, const Capabilities& capabilities) {
  constexpr std::int64_t k_tensor_core_channels = 8;
  if (node.input(0).shape.back() % k_tensor_core_channels == 0) {
    return Accepts::no("cuDNN uses tensor cores for these channels");
  }
  if (Accepts fits = convolution(node, capabilities); !fits) return fits;
  return has_taps_up_to(kernels::FewTaps::k_max, node, node.input(1).shape);
}

/// Gradients of filters of few taps, for which cuDNN took 257 us in float16 for the convolution
/// above. Also those of any filter in float32 with strides or uneven padding: on an H200 a float32
/// run of `residual` by cuDNN 9.19 had the losses of a run whose convolution of 3 x 3 and strides
/// 2, padded by one cell at the end, does not learn; in 16 bits it had those of the CPU.
Accepts filter_gradient(const NodeView& node, const Capabilities& capabilities) {
  if (Accepts fits = convolution_gradient<1>(node, capabilities); !fits) return fits;
  const Shape& filter = node.output().shape;
  const auto [height, width] =
      graph::ops::conv_geometry(node.attrs(), node.input(0).shape, filter).window;
  const bool plain = height.stride == 1 && width.stride == 1 &&
                     height.pad_before == height.pad_after && width.pad_before == width.pad_after;
  const bool any_taps = node.output().dtype == DType::float32 && !plain;
  return has_taps_up_to(any_taps ? filter.elements(0, 3) : kernels::FewTaps::k_max, node, filter);
}

Accepts one_dtype_of_values(const NodeView& node, const Capabilities& capabilities) {
  if (node.inputs() > kernels::AddNParams::k_max_inputs) {
    return Accepts::no("more inputs than fit one launch");
  }
  return supported_types(node, capabilities);
}

/// `first`: the input with the log.
template <std::size_t first>
Accepts few_values(const NodeView& node, const Capabilities& capabilities) {
  if (node.inputs() - first - 2 > kernels::LogScalarsParams::k_max_values) {
    return Accepts::no("more values than fit one launch");
  }
  return supported_types(node, capabilities);
}

Accepts few_averages(const NodeView& node, const Capabilities& capabilities) {
  if (node.attrs().get<std::vector<double>>("momentum").size() > graph::ops::k_max_averages) {
    return Accepts::no("more averages than fit one launch");
  }
  return supported_types(node, capabilities);
}

Accepts few_tensors(const NodeView& node, const Capabilities& capabilities) {
  if (node.outputs() > kernels::NextBatchParams::k_max_tensors) {
    return Accepts::no("more tensors than fit one launch");
  }
  for (std::size_t i = 0; i < node.outputs(); ++i) {
    const DType from = node.input(i + 2).dtype, to = node.output(i).dtype;
    const bool scales = from == DType::uint8 && (to == DType::float32 || is_half(to));
    if (from != to && !scales) {
      return Accepts::no(fmt::format("no {} from {}", name(to), name(from)));
    }
  }
  return supported_types(node, capabilities);
}

Accepts pieces(const NodeView& node, const Capabilities& capabilities) {
  const std::size_t values = node.attrs().get<std::vector<double>>("values").size();
  if (values > kernels::LearningRateParams::k_max_pieces) {
    return Accepts::no("more values than fit one launch");
  }
  return supported_types(node, capabilities);
}

Accepts squared_norms(const NodeView& node, const Capabilities& capabilities) {
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    const DType dtype = node.input(i).dtype;
    if (dtype != DType::float32 && !is_half(dtype)) {
      return Accepts::no(fmt::format("no squares of {}", name(dtype)));
    }
  }
  return supported_types(node, capabilities);
}

Accepts fused_update(const NodeView& node, const Capabilities& capabilities) {
  if (node.attrs().get<std::int64_t>("packed") > 0) return Accepts::no("packed variables");
  return supported_types(node, capabilities);
}

template <class... F>
bool has_formula(std::string_view op, functions::List<F...>) {
  return ((op == F::op) || ...);
}

/// Each op computes with float32, 16 bits or bool; a Cast may read integers.
Accepts fused_elementwise(const NodeView& node, const Capabilities&) {
  const auto& body = node.attrs().get<graph::ElementwiseBody>("body");
  if (node.inputs() > graph::k_max_elementwise_inputs ||
      body.steps.size() > graph::k_max_elementwise_steps) {
    return Accepts::no("too many inputs or steps");
  }
  const auto dtype_of = [&](int operand) {
    const auto at = static_cast<std::size_t>(operand);
    return at < node.inputs() ? node.input(at).dtype : body.steps[at - node.inputs()].dtype;
  };
  constexpr DTypeSet k_computed{DType::float32, DType::float16, DType::bfloat16};
  constexpr DTypeSet k_integers{DType::uint8, DType::int32, DType::int64};
  for (const graph::ElementwiseStep& step : body.steps) {
    if (step.op == graph::ops::k_random_uniform_from_ordinal) {
      if (step.first != 0) return Accepts::no("no draws of higher ranks");
      continue;
    }
    const bool cast = step.op == graph::ops::k_cast;
    if (!cast && !has_formula(step.op, functions::BodyFunctions{})) {
      return Accepts::no("no formula of " + step.op);
    }
    bool computes = cast && k_computed.contains(step.dtype);
    for (const int operand : step.operands) {
      const DType dtype = dtype_of(operand);
      const bool fits = k_computed.contains(dtype) || dtype == DType::boolean ||
                        (cast && k_integers.contains(dtype));
      if (!fits) return Accepts::no(fmt::format("no {} in a body", name(dtype)));
      computes = computes || (!cast && k_computed.contains(dtype));
    }
    if (!computes) return Accepts::no(fmt::format("no {} to {}", step.op, name(step.dtype)));
  }
  return Accepts::yes();
}

/// Scalar functions; the result may have the memory of each operand.
template <class... F>
void add_functions(std::vector<Kernel>& entries, std::string_view name, functions::List<F...>) {
  (entries.push_back({F::op, name, supported_types, nullptr, (1U << F::arity) - 1}), ...);
}

std::vector<Kernel> all() {
  std::vector<Kernel> entries{
      {"MatMul", "cublaslt/matmul", library_dtype},
      {"FusedMatMul", "cublaslt/fused_matmul", fused_matmul},
      {"BatchMatMulV2", "cublaslt/batch_matmul", library_dtype},
      {"RNN", "cuda/rnn", recurrent_in_one_launch<graph::ops::rnn_geometry>},
      {"RNN", "cublaslt/rnn", recurrent},
      {"RNNGrad", "cuda/rnn_grad", recurrent_in_one_launch<graph::ops::rnn_grad_geometry>},
      {"RNNGrad", "cublaslt/rnn_grad", recurrent},
      {"Conv2D", "cuda/convolution", few_taps_convolution},
      {"Conv2D", "cudnn/convolution", convolution},
      {"Conv2DBias", "cuda/convolution", few_taps_convolution},
      {"Conv2DBias", "cudnn/convolution", convolution},
      {"Conv2DBiasRelu", "cuda/convolution", few_taps_convolution},
      {"Conv2DBiasRelu", "cudnn/convolution", convolution},
      {"Conv2DBackpropInput", "cudnn/convolution", convolution_gradient<0>},
      {"Conv2DBackpropFilter", "cuda/filter_gradient", filter_gradient},
      {"Conv2DBackpropFilter", "cudnn/convolution", convolution_gradient<1>},
      {"DepthwiseConv2dNative", "cudnn/convolution", convolution},
      {"DepthwiseConv2dNativeBackpropInput", "cudnn/convolution", convolution_gradient<0>},
      {"DepthwiseConv2dNativeBackpropFilter", "cudnn/convolution", convolution_gradient<1>},

      {"BiasAdd", "cuda/bias_add", supported_types, nullptr, 0b1},
      {"BiasAddGrad", "cuda/bias_grad", supported_types},
      {"Softmax", "cuda/softmax", supported_types, nullptr, 0b1},
      {"LogSoftmax", "cuda/softmax", supported_types, nullptr, 0b1},
      {"SoftmaxCrossEntropyWithLogits", "cuda/cross_entropy", supported_types},
      {"SoftmaxLoss", "cuda/softmax_loss", supported_types},
      {"SparseSoftmaxCrossEntropyWithLogits", "cuda/sparse_cross_entropy", supported_types},
      {"BatchMoments", "cuda/batch_moments", supported_types},
      {"NormalizeByMoments", "cuda/batch_norm", supported_types, nullptr, 0b100001},
      {"BatchNormGradSums", "cuda/batch_norm_grad_sums", float32_scale},
      {"NormalizeByMomentsGrad", "cuda/normalize_by_moments_grad", float32_scale, nullptr, 0b11},
      {"FusedBatchNormV3", "cuda/batch_norm", channels_last, nullptr, 0b1},
      {"FusedBatchNormGradV3", "cuda/batch_norm_grad", channels_last, nullptr, 0b11},
      {"_FusedBatchNormEx", "cuda/batch_norm", fused_norm, nullptr, 0b100001},
      {"BatchNormReluGrad", "cuda/batch_norm_grad", supported_types, nullptr, 0b11},
      {"LayerNorm", "cuda/layer_norm", layer_norm, nullptr, 0b1001},
      {"LayerNormGrad", "cuda/layer_norm_grad", layer_norm, nullptr, 0b11100011},
      {"FusedAttention", "cuda/attention", attention<0>},
      {"FusedAttentionGrad", "cuda/attention_grad", attention<1>},
      {"MaxPool", "cuda/max_pool", channels_last},
      {"MaxPoolGrad", "cuda/max_pool_grad", channels_last},
      {"AvgPool", "cuda/avg_pool", channels_last},
      {"AvgPoolGrad", "cuda/avg_pool_grad", channels_last},

      {"FusedElementwise",
       "cuda/fused_elementwise",
       fused_elementwise,
       nullptr,
       (1U << graph::k_max_elementwise_inputs) - 1},
      {"AllReduceStart", "cuda/all_reduce_start", among_ranks},
      {"AllReduceWait", "cuda/all_reduce_wait", among_ranks},
      {"ReduceScatterStart", "cuda/reduce_scatter_start", among_ranks},
      {"ReduceScatterWait", "cuda/reduce_scatter_wait", among_ranks},
      {"AllGatherStart", "cuda/all_gather_start", among_ranks},
      {"AllGatherWait", "cuda/all_gather_wait", among_ranks},
      {"AddN", "cuda/add_n", one_dtype_of_values, nullptr, ~0U},
      {"Cast", "cuda/cast", supported_types},
      {"ClipByValue", "cuda/clip", supported_types, nullptr, 0b1},
      {"Select", "cuda/select", supported_types, nullptr, 0b110},
      {"SelectV2", "cuda/select", supported_types, nullptr, 0b110},

      {"BroadcastTo", "cuda/broadcast", supported_types},
      {"ConcatV2", "cuda/concat", last_constant},
      {"Fill", "cuda/fill", supported_types},
      {"GatherV2", "cuda/gather", constant<2>},
      {"OneHot", "cuda/one_hot", supported_types},
      {"Pad", "cuda/pad", constant<1>},
      {"PadV2", "cuda/pad", constant<1>},
      {"ReverseV2", "cuda/reverse", constant<1>},
      {"Shape", "cuda/shape", supported_types},
      {"Slice", "cuda/slice", constant<1>},
      {"Split", "cuda/split", constant<0>},
      {"Tile", "cuda/tile", constant<1>},
      {"Transpose", "cuda/transpose", constant<1>},
      {"UnsortedSegmentSum", "cuda/segment_sum", supported_types},

      {"GatherBatch", "cuda/gather_batch", supported_types},
      {"LogScalars", "cuda/log_scalars", few_values<0>},
      {"KeepState", "cuda/keep_state", few_values<4>},
      {"NextBatch", "cuda/next_batch", few_tensors},

      {"InTopKV2", "cuda/in_top_k", supported_types},
      {"L2Loss", "cuda/l2_loss", supported_types},
      {"RandomUniformFromOrdinal", "cuda/uniform", supported_types},
      {"RandomFlip", "cuda/random_flip", supported_types},
      {"RandomTranslation", "cuda/random_translation", supported_types},

      {"AllFinite", "cuda/all_finite", supported_types},
      {"SquaredNorms", "cuda/squared_norms", squared_norms},
      {"CastVariable", "cuda/cast_variable", supported_types},
      {"FusedUpdate", "cuda/update", fused_update},
      {"GroupedUpdate", "cuda/update", supported_types},
      {"MovingAverages", "cuda/moving_averages", few_averages},
      {"UpdateLossScale", "cuda/loss_scale", supported_types},
      {"LearningRate", "cuda/learning_rate", pieces},
      {"AssignVariableOp", "cuda/assign", supported_types},
      {"AssignAddVariableOp", "cuda/assign_add", supported_types},
  };
  add_functions(entries, "cuda/unary", functions::UnaryFunctions{});
  add_functions(entries, "cuda/binary", functions::BinaryFunctions{});
  for (const auto& [op, reduction] : kernels::k_reductions) {
    entries.push_back({op, "cuda/reduce", constant<1>});
  }
  for (const graph::OpDef& op : graph::op_table().all()) {
    if (op.update) entries.push_back({op.name, "cuda/update", supported_types});
    if (op.aliases) entries.push_back({op.name, "cuda/alias", supported_types});
  }
  return entries;
}

}  // namespace

std::span<const Kernel> kernel_table() {
  static const std::vector<Kernel> k_table = all();
  return k_table;
}

}  // namespace halfstep::backend::cuda
