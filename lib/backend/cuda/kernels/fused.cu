#include "backend/cuda/kernels/fused.h"

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"
#include "backend/functions/body.h"
#include "core/philox.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cuda::kernels {
namespace {

constexpr int k_inputs = static_cast<int>(FusedParams::k_max_inputs);
constexpr int k_steps = static_cast<int>(FusedParams::k_max_steps);
/// Elements of a thread: those of one counter of random numbers.
constexpr int k_width = 4;

/// The operand is converted when it is loaded, and rounded when it is stored.
struct Cast : functions::BroadcastTo {
  static constexpr const char* op = "Cast";
};
using Functions = functions::Join<functions::List<Cast>, functions::BodyFunctions>;

template <class... F>
constexpr int count_of(functions::List<F...>) {
  return static_cast<int>(sizeof...(F));
}
/// The number of the op that is no function of elements.
constexpr int k_random = count_of(Functions{});
static_assert(k_random < 255);

template <int n, class L>
struct Nth;
template <int n, class First, class... F>
struct Nth<n, functions::List<First, F...>> : Nth<n - 1, functions::List<F...>> {};
template <class First, class... F>
struct Nth<0, functions::List<First, F...>> {
  using type = First;
};

struct Values {
  float of[k_inputs + k_steps][k_width];
};

/// y = the function `chosen`, in [low, high), of the operands. A chain of comparisons would be ten
/// times as long as this search, which takes the same branches in all threads.
template <int low, int high>
__device__ inline void apply_function(
    int chosen, float alpha, const float* x0, const float* x1, const float* x2, float* y) {
  if constexpr (high - low == 1) {
    using F = typename Nth<low, Functions>::type;
    for (int i = 0; i < k_width; ++i) {
      const Apply<F, float> f{alpha};
      if constexpr (F::arity == 1) {
        y[i] = static_cast<float>(f(x0[i]));
      } else if constexpr (F::arity == 2) {
        y[i] = static_cast<float>(f(x0[i], x1[i]));
      } else {
        y[i] = static_cast<float>(f(x0[i], x1[i], x2[i]));
      }
    }
  } else {
    constexpr int k_middle = (low + high) / 2;
    if (chosen < k_middle) {
      apply_function<low, k_middle>(chosen, alpha, x0, x1, x2, y);
    } else {
      apply_function<k_middle, high>(chosen, alpha, x0, x1, x2, y);
    }
  }
}

/// Calls f with the storage type of a tensor of a body.
template <class F>
__device__ inline void with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float16:
      return f(Type<float16>{});
    case DType::bfloat16:
      return f(Type<bfloat16>{});
    case DType::boolean:
      return f(Type<bool>{});
    case DType::uint8:
      return f(Type<std::uint8_t>{});
    case DType::int32:
      return f(Type<std::int32_t>{});
    case DType::int64:
      return f(Type<std::int64_t>{});
    default:
      return f(Type<float>{});
  }
}

enum class Reading : std::uint8_t {
  elements,  ///< an element for each of the result
  scalar,
  strided,  ///< broadcast by Program::walk
  ordinal,  ///< the counter of random numbers
};

struct Source {
  const void* data;
  DType dtype;
  Reading reading;
};

struct Operation {
  std::uint8_t function;
  std::uint8_t operands[3];
  DType dtype;
  float alpha;
  std::uint64_t seed, stream;
};

struct Sink {
  void* data;
  int value;
  DType dtype;
};

/// The arguments of a launch.
struct Program {
  std::int64_t elements;
  bool packed;  ///< dense tensors are aligned to k_width of their elements
  int inputs, steps, outputs;
  Source source[k_inputs];
  Operation operation[k_steps];
  Sink sink[k_steps];
  Walk<k_inputs> walk;
};
static_assert(sizeof(Program) <= 4096);

/// Elements [first, first + count) of the result, for count <= k_width.
__device__ inline void load_input(
    const Program& p, int n, std::int64_t first, int count, float* value) {
  const Source& source = p.source[n];
  with_type(source.dtype, [&]<class T>(Type<T>) {
    const T* data = static_cast<const T*>(source.data);
    if (source.reading == Reading::strided) {
      for (int i = 0; i < count; ++i) {
        value[i] = static_cast<float>(load(data[p.walk.at(first + i).of[n]]));
      }
    } else if (p.packed && count == k_width) {
      const auto pack = load_pack<T, k_width>(data + first);
      for (int i = 0; i < k_width; ++i) value[i] = static_cast<float>(load(pack.element[i]));
    } else {
      for (int i = 0; i < count; ++i) value[i] = static_cast<float>(load(data[first + i]));
    }
  });
}

__device__ inline void store_output(
    const Program& p, const Sink& sink, std::int64_t first, int count, const float* value) {
  with_type(sink.dtype, [&]<class T>(Type<T>) {
    T* data = static_cast<T*>(sink.data);
    const auto element = [&](int i) {
      if constexpr (std::is_same_v<T, bool>) {
        return value[i] != 0;
      } else {
        return store<T>(value[i]);
      }
    };
    if (p.packed && count == k_width) {
      Pack<T, k_width> pack;
      for (int i = 0; i < k_width; ++i) pack.element[i] = element(i);
      store_pack<T, k_width>(data + first, pack);
    } else {
      for (int i = 0; i < count; ++i) data[first + i] = element(i);
    }
  });
}

__device__ inline void round_to(DType dtype, float* y) {
  if (dtype == DType::float16) {
    for (int i = 0; i < k_width; ++i) y[i] = to_float(to_float16(y[i]));
  } else if (dtype == DType::bfloat16) {
    for (int i = 0; i < k_width; ++i) y[i] = to_float(to_bfloat16(y[i]));
  }
}

__device__ inline void run_step(const Program& p, int n, std::int64_t four, Values& values) {
  const Operation& step = p.operation[n];
  float* y = values.of[p.inputs + n];
  if (step.function == k_random) {
    const auto ordinal = *static_cast<const std::int64_t*>(p.source[step.operands[0]].data);
    const std::uint64_t key = mix(step.stream, static_cast<std::uint64_t>(ordinal));
    const auto words = random_words(step.seed, key, static_cast<std::uint64_t>(four));
    for (std::size_t i = 0; i < k_width; ++i) y[i] = to_uniform(words[i]);
    return;
  }
  apply_function<0, k_random>(step.function,
                              step.alpha,
                              values.of[step.operands[0]],
                              values.of[step.operands[1]],
                              values.of[step.operands[2]],
                              y);
  round_to(step.dtype, y);
}

__global__ void fused_kernel(Program p) {
  Values values;
  HALFSTEP_ROLLED
  for (int n = 0; n < p.inputs; ++n) {
    for (int i = 0; i < k_width; ++i) values.of[n][i] = 0;
    if (p.source[n].reading != Reading::scalar) continue;
    with_type(p.source[n].dtype, [&]<class T>(Type<T>) {
      const auto x = static_cast<float>(load(*static_cast<const T*>(p.source[n].data)));
      for (int i = 0; i < k_width; ++i) values.of[n][i] = x;
    });
  }
  for (std::int64_t four = thread_of_grid(); four * k_width < p.elements;
       four += threads_of_grid()) {
    const std::int64_t first = four * k_width;
    const std::int64_t rest = p.elements - first;
    const int count = rest < k_width ? static_cast<int>(rest) : k_width;
    // An output may alias an input: all of the thread's elements are read before one is stored.
    HALFSTEP_ROLLED
    for (int n = 0; n < p.inputs; ++n) {
      const Reading reading = p.source[n].reading;
      if (reading == Reading::elements || reading == Reading::strided) {
        load_input(p, n, first, count, values.of[n]);
      }
    }
    HALFSTEP_ROLLED
    for (int n = 0; n < p.steps; ++n) run_step(p, n, four, values);
    HALFSTEP_ROLLED
    for (int n = 0; n < p.outputs; ++n) {
      store_output(p, p.sink[n], first, count, values.of[p.sink[n].value]);
    }
  }
}

template <class... F>
std::optional<std::uint8_t> find(std::string_view op, functions::List<F...>) {
  std::uint8_t number = 0;
  const bool found = ((op == F::op || (++number, false)) || ...);
  return found ? std::optional(number) : std::nullopt;
}

bool is_ordinal(const FusedParams& p, std::size_t input) {
  for (std::size_t n = 0; n < p.steps; ++n) {
    if (p.step[n].function == k_random && p.step[n].operands[0] == input) return true;
  }
  return false;
}

}  // namespace

std::optional<std::uint8_t> fused_function(std::string_view op) {
  if (op == graph::ops::k_random_uniform_from_ordinal) return static_cast<std::uint8_t>(k_random);
  return find(op, Functions{});
}

void fused_elementwise(Stream stream, const FusedParams& p) {
  Program program{};
  program.elements = p.shape.elements();
  program.packed = true;
  program.inputs = static_cast<int>(p.inputs);
  program.steps = static_cast<int>(p.steps);
  program.outputs = static_cast<int>(p.outputs);
  const auto packed = [](const void* data, DType dtype) {
    return aligned(data, k_width * size_bytes(dtype));
  };
  std::array<Steps, k_inputs> steps{};
  bool broadcasts = false;
  for (std::size_t n = 0; n < p.inputs; ++n) {
    const FusedParams::Input& input = p.input[n];
    const bool whole = input.shape.elements() == program.elements;
    Reading reading = whole ? Reading::elements : Reading::strided;
    if (input.shape.elements() == 1) reading = Reading::scalar;
    if (is_ordinal(p, n)) reading = Reading::ordinal;
    program.source[n] = {input.data, input.dtype, reading};
    if (reading == Reading::elements) {
      program.packed = program.packed && packed(input.data, input.dtype);
    } else if (reading == Reading::strided) {
      steps[n] = broadcast_steps(input.shape, p.shape);
      broadcasts = true;
    }
  }
  if (broadcasts) program.walk = Walk<k_inputs>(p.shape, steps);
  for (std::size_t n = 0; n < p.steps; ++n) {
    const FusedStep& step = p.step[n];
    program.operation[n] = {step.function,
                            {step.operands[0], step.operands[1], step.operands[2]},
                            step.dtype,
                            step.alpha,
                            step.seed,
                            step.stream};
  }
  for (std::size_t n = 0; n < p.outputs; ++n) {
    const DType dtype = p.step[p.output[n].step].dtype;
    program.sink[n] = {p.output[n].data, static_cast<int>(p.inputs + p.output[n].step), dtype};
    program.packed = program.packed && packed(p.output[n].data, dtype);
  }
  launch(fused_kernel, grid_of((program.elements + k_width - 1) / k_width), stream, program);
}

}  // namespace halfstep::backend::cuda::kernels
