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
/// Elements of a thread: those of two counters of random numbers, 16 bytes of float16. They share
/// the decoding of each op.
constexpr int k_width = 8;

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

/// An operand: an input, a saved result (counted from k_inputs on), or
constexpr std::uint8_t k_previous = 254;  ///< the result of the preceding op, in registers
constexpr std::uint8_t k_none = 255;

/// How a pack of k_width elements is loaded.
enum class Reading : std::uint8_t {
  pack,     ///< by one load
  element,  ///< all are one element
  slow,     ///< one by one
};

struct Source {
  const void* data;
  DType dtype;
  Reading reading;
  bool whole;  ///< has the elements of the result: offsets need no walk
};

struct Operation {
  std::uint8_t function;
  std::uint8_t operands[3];
  std::uint8_t saved;  ///< the operand by which later ops and outputs read the result, or k_none
  DType dtype;
  float alpha;
  std::uint64_t seed, stream;
};

struct Sink {
  void* data;
  std::uint8_t operand;
  DType dtype;
};

/// The arguments of a launch.
struct Program {
  std::int64_t elements;
  bool packed;  ///< outputs are aligned to packs
  int steps, outputs;
  Source source[k_inputs];
  Walk<1> walk[k_inputs];
  Operation operation[k_steps];
  Sink sink[k_steps];
};
static_assert(sizeof(Program) <= 4096);

/// Values of a thread's elements.
using Few = float[k_width];

/// The operand's elements [first, first + count) of the result.
__device__ inline void fetch(const Program& p,
                             unsigned operand,
                             std::int64_t first,
                             int count,
                             const Few& last,
                             const Few* saved,
                             Few& x) {
  if (operand == k_previous) {
    for (int i = 0; i < k_width; ++i) x[i] = last[i];
    return;
  }
  if (operand >= k_inputs) {
    for (int i = 0; i < k_width; ++i) x[i] = saved[operand - k_inputs][i];
    return;
  }
  const Source& source = p.source[operand];
  if (count == k_width && source.reading != Reading::slow) {
    const std::int64_t offset = source.whole ? first : p.walk[operand].at(first).of[0];
    with_type(source.dtype, [&]<class T>(Type<T>) {
      const T* data = static_cast<const T*>(source.data) + offset;
      if (source.reading == Reading::element) {
        const auto value = static_cast<float>(load(*data));
        for (int i = 0; i < k_width; ++i) x[i] = value;
      } else {
        const auto pack = load_pack<T, k_width>(data);
        for (int i = 0; i < k_width; ++i) x[i] = static_cast<float>(load(pack.element[i]));
      }
    });
    return;
  }
  Few slow = {};
  HALFSTEP_ROLLED
  for (int i = 0; i < count; ++i) {
    const std::int64_t offset = source.whole ? first + i : p.walk[operand].at(first + i).of[0];
    with_type(source.dtype, [&]<class T>(Type<T>) {
      slow[i] = static_cast<float>(load(static_cast<const T*>(source.data)[offset]));
    });
  }
  for (int i = 0; i < k_width; ++i) x[i] = slow[i];
}

__device__ inline void store_output(const Program& p,
                                    const Sink& sink,
                                    std::int64_t first,
                                    int count,
                                    const Few& last,
                                    const Few* saved) {
  Few value;
  fetch(p, sink.operand, first, count, last, saved, value);
  with_type(sink.dtype, [&]<class T>(Type<T>) {
    T* data = static_cast<T*>(sink.data) + first;
    const auto element = [](float x) {
      if constexpr (std::is_same_v<T, bool>) {
        return x != 0;
      } else {
        return store<T>(x);
      }
    };
    Pack<T, k_width> pack;
    for (int i = 0; i < k_width; ++i) pack.element[i] = element(value[i]);
    if (p.packed && count == k_width) {
      store_pack<T, k_width>(data, pack);
    } else {
      for (int i = 0; i < k_width; ++i) {
        if (i < count) data[i] = pack.element[i];
      }
    }
  });
}

__device__ inline void round_to(DType dtype, Few& y) {
  if (dtype == DType::float16) {
    for (int i = 0; i < k_width; ++i) y[i] = to_float(to_float16(y[i]));
  } else if (dtype == DType::bfloat16) {
    for (int i = 0; i < k_width; ++i) y[i] = to_float(to_bfloat16(y[i]));
  }
}

/// Changes `last`, the result of the preceding op, to that of this one.
__device__ inline void run_step(
    const Program& p, const Operation& step, std::int64_t first, int count, Few& last, Few* saved) {
  if (step.function == k_random) {
    constexpr std::size_t k_words = 4;
    const auto ordinal = *static_cast<const std::int64_t*>(p.source[step.operands[0]].data);
    const std::uint64_t key = mix(step.stream, static_cast<std::uint64_t>(ordinal));
    for (std::size_t j = 0; j < k_width / k_words; ++j) {
      const auto words =
          random_words(step.seed, key, static_cast<std::uint64_t>(first) / k_words + j);
      for (std::size_t i = 0; i < k_words; ++i) {
        last[j * k_words + i] = to_uniform(words[i]);
      }
    }
  } else {
    Few x[3] = {};
    for (int n = 0; n < 3; ++n) {
      if (step.operands[n] != k_none) fetch(p, step.operands[n], first, count, last, saved, x[n]);
    }
    apply_function<0, k_random>(step.function, step.alpha, x[0], x[1], x[2], last);
    round_to(step.dtype, last);
  }
  if (step.saved == k_none) return;
  for (int i = 0; i < k_width; ++i) saved[step.saved - k_inputs][i] = last[i];
}

/// An output may alias an input: a thread's elements are stored when it has read all inputs.
__global__ void HALFSTEP_BLOCK_OF(256, 4) fused_kernel(Program p) {
  for (std::int64_t first = thread_of_grid() * k_width; first < p.elements;
       first += threads_of_grid() * k_width) {
    const std::int64_t rest = p.elements - first;
    const int count = rest < k_width ? static_cast<int>(rest) : k_width;
    Few last;
    Few saved[k_steps];  // in local memory, for its index varies
    HALFSTEP_ROLLED
    for (int n = 0; n < p.steps; ++n) run_step(p, p.operation[n], first, count, last, saved);
    HALFSTEP_ROLLED
    for (int n = 0; n < p.outputs; ++n) store_output(p, p.sink[n], first, count, last, saved);
  }
}

template <class... F>
std::optional<std::uint8_t> find(std::string_view op, functions::List<F...>) {
  std::uint8_t number = 0;
  const bool found = ((op == F::op || (++number, false)) || ...);
  return found ? std::optional(number) : std::nullopt;
}

template <class... F>
std::size_t arity_in(std::uint8_t function, functions::List<F...>) {
  constexpr std::array<int, sizeof...(F)> k_arities{F::arity...};
  return static_cast<std::size_t>(k_arities.at(function));
}

/// Operands of a function; random numbers have the ordinal.
std::size_t arity_of(std::uint8_t function) {
  return function == k_random ? 1 : arity_in(function, Functions{});
}

/// How an input is read, by its iteration over the elements of the result.
Source source_of(const FusedParams::Input& input, const Walk<1>& walk, std::int64_t elements) {
  const std::size_t pack_bytes = k_width * size_bytes(input.dtype);
  const bool whole = input.shape.elements() == elements;
  // Packs do not cross the end of the last axis, and begin at multiples of their width.
  const int last = walk.rank - 1;
  bool packs = walk.rank > 0 && walk.extent[last] % k_width == 0 && walk.step[0][last] == 1 &&
               aligned(input.data, pack_bytes);
  for (int axis = 0; axis < last; ++axis) packs = packs && walk.step[0][axis] % k_width == 0;
  const bool one = walk.rank == 0 || (walk.step[0][last] == 0 &&
                                      (walk.rank == 1 || walk.extent[last] % k_width == 0));
  Reading reading = Reading::slow;
  if (one) {
    reading = Reading::element;
  } else if (packs || (whole && aligned(input.data, pack_bytes))) {
    reading = Reading::pack;
  }
  return {input.data, input.dtype, reading, whole && walk.rank > 0};
}

/// The operand by which the ops after the next one, and outputs, read each result; k_none where
/// there are none. A slot of saved results is free again after the last op that reads it.
std::array<std::uint8_t, k_steps> saved_operands(const FusedParams& p) {
  std::array<std::size_t, k_steps> last_use{};
  for (std::size_t n = 0; n < p.steps; ++n) {
    for (std::size_t i = 0; i < arity_of(p.step[n].function); ++i) {
      const std::uint8_t operand = p.step[n].operands[i];
      if (operand >= p.inputs) last_use[operand - p.inputs] = n;
    }
  }
  for (std::size_t n = 0; n < p.outputs; ++n) last_use[p.output[n].step] = p.steps;
  std::array<std::uint8_t, k_steps> saved{};
  std::array<std::size_t, k_steps> free_at{};
  for (std::size_t n = 0; n < p.steps; ++n) {
    saved[n] = k_none;
    if (last_use[n] <= n + 1) continue;
    std::uint8_t slot = 0;
    while (free_at[slot] > n) ++slot;
    free_at[slot] = last_use[n];
    saved[n] = static_cast<std::uint8_t>(k_inputs + slot);
  }
  return saved;
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
  program.steps = static_cast<int>(p.steps);
  program.outputs = static_cast<int>(p.outputs);
  for (std::size_t n = 0; n < p.inputs; ++n) {
    program.walk[n] = Walk<1>(p.shape, {broadcast_steps(p.input[n].shape, p.shape)});
    program.source[n] = source_of(p.input[n], program.walk[n], program.elements);
  }
  const auto saved = saved_operands(p);
  const auto operand_of = [&](std::size_t value, std::size_t reader) {
    if (value < p.inputs) return static_cast<std::uint8_t>(value);
    const std::size_t step = value - p.inputs;
    return step + 1 == reader ? k_previous : saved[step];
  };
  for (std::size_t n = 0; n < p.steps; ++n) {
    const FusedStep& step = p.step[n];
    Operation& to = program.operation[n];
    to = {step.function,
          {k_none, k_none, k_none},
          saved[n],
          step.dtype,
          step.alpha,
          step.seed,
          step.stream};
    for (std::size_t i = 0; i < arity_of(step.function); ++i) {
      to.operands[i] = operand_of(step.operands[i], n);
    }
  }
  for (std::size_t n = 0; n < p.outputs; ++n) {
    const std::size_t step = p.output[n].step;
    const DType dtype = p.step[step].dtype;
    program.sink[n] = {p.output[n].data, operand_of(p.inputs + step, p.steps), dtype};
    program.packed = program.packed && aligned(p.output[n].data, k_width * size_bytes(dtype));
  }
  launch(fused_kernel, grid_of((program.elements + k_width - 1) / k_width), stream, program);
}

}  // namespace halfstep::backend::cuda::kernels
