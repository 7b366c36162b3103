#include "backend/cuda/vendor/real/conv_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace halfstep::backend::cuda::real {
namespace {

constexpr std::int64_t k_tensor_alignment = 16;
constexpr std::int64_t k_sum_id = 5;     // the convolution's result, virtual
constexpr std::int64_t k_biased_id = 6;  // with bias, before ReLU, virtual

std::shared_ptr<Descriptor> make(cudnnBackendDescriptorType_t type) {
  return std::make_shared<Descriptor>(type);
}

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return CUDNN_DATA_HALF;
    case DType::bfloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

DescriptorPtr tensor(std::int64_t id,
                     cudnnDataType_t dtype,
                     const ConvTensor& shape,
                     bool in_memory = true) {
  auto d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d->dtype(CUDNN_ATTR_TENSOR_DATA_TYPE, dtype)
      .integers(CUDNN_ATTR_TENSOR_DIMENSIONS, shape.extents)
      .integers(CUDNN_ATTR_TENSOR_STRIDES, shape.strides)
      .integer(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, k_tensor_alignment)
      .integer(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, !in_memory);
  d->finalize();
  return d;
}

DescriptorPtr convolution(const ConvArguments& c) {
  auto d = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  d->dtype(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .integer(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::ssize(c.stride))
      .integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, c.pre_padding)
      .integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, c.post_padding)
      .integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, c.stride)
      .integers(CUDNN_ATTR_CONVOLUTION_DILATIONS, c.dilation);
  d->finalize();
  return d;
}

/// The names of the three operations' attributes.
struct Names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, filter, y, convolution, alpha, beta;
};
constexpr std::array<Names, 3> k_names{{
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
}};

DescriptorPtr pointwise(cudnnPointwiseMode_t mode,
                        const DescriptorPtr& x,
                        const DescriptorPtr& b,
                        const DescriptorPtr& y) {
  auto how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how->set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
      .dtype(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  how->finalize();
  auto d = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  d->refer(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how)
      .refer(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
      .refer(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  if (b) d->refer(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  d->finalize();
  return d;
}

/// The convolution and its epilogue: y = relu(x * filter + bias), intermediate values in float32.
std::vector<DescriptorPtr> operations(const ConvArguments& c) {
  const cudnnDataType_t dtype = data_type(c.dtype);
  const bool has_bias = c.bias.elements() > 0;
  const DescriptorPtr y = tensor(k_y_id, dtype, c.y);
  const DescriptorPtr sum = has_bias ? tensor(k_sum_id, CUDNN_DATA_FLOAT, c.y, false) : y;
  const Names& names = k_names[static_cast<std::size_t>(c.kind)];
  auto d = make(names.operation);
  d->refer(names.x, tensor(k_x_id, dtype, c.x))
      .refer(names.filter, tensor(k_filter_id, dtype, c.filter))
      .refer(names.y, sum)
      .refer(names.convolution, convolution(c))
      .set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F)
      .set(names.beta, CUDNN_TYPE_FLOAT, 0.0F);
  d->finalize();
  std::vector<DescriptorPtr> all{d};
  if (!has_bias) return all;
  const DescriptorPtr biased = c.relu ? tensor(k_biased_id, CUDNN_DATA_FLOAT, c.y, false) : y;
  all.push_back(pointwise(CUDNN_POINTWISE_ADD, sum, tensor(k_bias_id, dtype, c.bias), biased));
  if (c.relu) all.push_back(pointwise(CUDNN_POINTWISE_RELU_FWD, biased, nullptr, y));
  return all;
}

/// A graph and its operations.
struct Graph {
  std::vector<DescriptorPtr> operations;
  std::shared_ptr<Descriptor> graph;
};

Graph build(const ConvArguments& c, const ConvTarget& target) {
  Graph g{operations(c), make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)};
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const DescriptorPtr& operation : g.operations) raw.push_back(operation->raw());
  g.graph->set(CUDNN_ATTR_OPERATIONGRAPH_OPS,
               CUDNN_TYPE_BACKEND_DESCRIPTOR,
               std::span<const cudnnBackendDescriptor_t>(raw));
  if (target.handle != nullptr) {
    g.graph->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  }
  g.graph->finalize();
  return g;
}

/// The engines that a heuristic mode proposes; may be empty.
std::vector<DescriptorPtr> proposals(const Graph& g,
                                     const ConvTarget& target,
                                     cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.refer(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g.graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (target.properties) heuristic.refer(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target.properties);
  if (cudnnBackendFinalize(heuristic.raw()) != CUDNN_STATUS_SUCCESS) return {};
  const auto get = [&](std::span<cudnnBackendDescriptor_t> raw) {
    return static_cast<std::size_t>(
        heuristic.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw));
  };
  std::vector<DescriptorPtr> configurations(get({}));
  std::vector<cudnnBackendDescriptor_t> raw;
  for (DescriptorPtr& configuration : configurations) {
    configuration = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configuration->raw());
  }
  if (!raw.empty()) configurations.resize(get(raw));
  return configurations;
}

/// The properties of an engine.
struct Engine {
  std::int64_t index = -1;
  std::vector<cudnnBackendNumericalNote_t> numerics{};
  std::vector<cudnnBackendBehaviorNote_t> behavior{};

  bool has(cudnnBackendNumericalNote_t note) const {
    return std::find(numerics.begin(), numerics.end(), note) != numerics.end();
  }
  bool has(cudnnBackendBehaviorNote_t note) const {
    return std::find(behavior.begin(), behavior.end(), note) != behavior.end();
  }
};

Engine engine_of(const Descriptor& configuration) {
  const Descriptor raw(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t descriptor = raw.raw();
  configuration.get(
      CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::span(&descriptor, 1));
  Engine engine{.index = raw.integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)};
  engine.numerics.assign(CUDNN_NUMERICAL_NOTE_TYPE_COUNT, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  engine.behavior.assign(CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
  engine.numerics.resize(static_cast<std::size_t>(raw.get(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, std::span(engine.numerics))));
  engine.behavior.resize(static_cast<std::size_t>(raw.get(
      CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, std::span(engine.behavior))));
  return engine;
}

bool keeps_promises(const Engine& engine, const ConvArguments& c) {
  if (engine.has(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION)) return false;
  if (engine.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  if (c.deterministic && engine.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  return !c.strict_float32 || (!engine.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) &&
                               !engine.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
}

std::string describe(const Engine& engine) {
  std::string text = fmt::format("engine {}", engine.index);
  constexpr std::array<std::pair<cudnnBackendNumericalNote_t, std::string_view>, 3> k_words{{
      {CUDNN_NUMERICAL_NOTE_WINOGRAD, "Winograd"},
      {CUDNN_NUMERICAL_NOTE_FFT, "FFT"},
      {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, "any order"},
  }};
  for (const auto& [note, word] : k_words) {
    if (engine.has(note)) text += fmt::format(", {}", word);
  }
  return text;
}

/// The values of a configuration's knobs by number, of which an engine has several combinations:
/// "2=24 12=1".
std::string knobs_of(const Descriptor& configuration) {
  // Their number cannot be queried alone.
  std::vector<DescriptorPtr> choices(CUDNN_KNOB_TYPE_COUNTS);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (DescriptorPtr& choice : choices) {
    choice = make(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    raw.push_back(choice->raw());
  }
  choices.resize(static_cast<std::size_t>(configuration.get(
      CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::span(raw))));
  std::string text;
  for (const DescriptorPtr& choice : choices) {
    cudnnBackendKnobType_t knob{};
    choice->get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, std::span(&knob, 1));
    text += fmt::format("{}{}={}",
                        text.empty() ? "" : " ",
                        static_cast<int>(knob),
                        choice->integer(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  return text;
}

/// The plan of an engine configuration, or nothing when this GPU cannot run it.
DescriptorPtr plan_of(const DescriptorPtr& configuration, const ConvTarget& target) {
  auto plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan->refer(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (target.handle != nullptr) {
    plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  } else {
    plan->refer(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target.properties);
  }
  if (cudnnBackendFinalize(plan->raw()) != CUDNN_STATUS_SUCCESS) return nullptr;
  return plan;
}

}  // namespace

std::size_t conv_workspace_limit(const ConvArguments& arguments) {
  constexpr std::size_t k_min = std::size_t{64} << 20;
  const std::int64_t elements =
      arguments.x.elements() + arguments.filter.elements() + arguments.y.elements();
  return std::max(k_min, 2 * static_cast<std::size_t>(elements) * size_bytes(arguments.dtype));
}

std::vector<ConvPlan> conv_plans(const ConvArguments& arguments,
                                 const ConvTarget& target,
                                 std::size_t wanted) {
  const std::size_t workspace_limit = conv_workspace_limit(arguments);
  const Graph graph = build(arguments, target);
  std::vector<ConvPlan> plans;
  // On an H200 the choices of mode B are 1 to 6 % faster over the steps of the shipped CNNs than
  // those of mode A, which takes engine 10 for filter gradients.
  for (const auto mode : {CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const DescriptorPtr& configuration : proposals(graph, target, mode)) {
      if (plans.size() == wanted) return plans;
      const Engine engine = engine_of(*configuration);
      if (!keeps_promises(engine, arguments)) continue;
      const DescriptorPtr plan = plan_of(configuration, target);
      if (!plan) continue;
      const auto workspace =
          static_cast<std::size_t>(plan->integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
      if (workspace > workspace_limit) continue;
      plans.push_back({plan,
                       workspace,
                       describe(engine),
                       knobs_of(*configuration),
                       engine.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)});
    }
  }
  return plans;
}

DescriptorPtr device_properties(const std::string& json) {
  auto properties = std::make_shared<Descriptor>(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties->set(
      CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, std::span<const char>(json));
  properties->finalize();
  return properties;
}

std::string device_properties_json(int device) {
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, std::int32_t{device});
  properties.finalize();
  const auto get = [&](std::span<char> text) {
    return properties.get(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, text);
  };
  std::string text(static_cast<std::size_t>(get({})), '\0');
  get(text);
  return text;
}

}  // namespace halfstep::backend::cuda::real
