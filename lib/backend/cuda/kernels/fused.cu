#include "backend/cuda/kernels/fused.h"

#include "backend/cuda/kernels/device/body.h"

namespace halfstep::backend::cuda::kernels {
namespace {

constexpr int k_inputs = static_cast<int>(FusedParams::k_max_inputs);
constexpr int k_steps = static_cast<int>(FusedParams::k_max_steps);

/// An operand: an input, a saved result (counted from k_inputs on), or
constexpr std::uint8_t k_previous = 254;  ///< the result of the preceding op, in registers
constexpr std::uint8_t k_none = 255;

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

/// The operand's elements [first, first + count) of the result.
__device__ inline void fetch(const Program& p,
                             unsigned operand,
                             std::int64_t first,
                             int count,
                             const ThreadValues& last,
                             const ThreadValues* saved,
                             ThreadValues& x) {
  if (operand == k_previous) {
    for (int i = 0; i < k_body_width; ++i) x[i] = last[i];
    return;
  }
  if (operand >= k_inputs) {
    for (int i = 0; i < k_body_width; ++i) x[i] = saved[operand - k_inputs][i];
    return;
  }
  const Source& source = p.source[operand];
  if (count == k_body_width && source.load_mode != LoadMode::gather) {
    const std::int64_t offset = source.whole ? first : p.walk[operand].at(first).of[0];
    with_type(source.dtype, [&]<class T>(Type<T>) {
      const T* data = static_cast<const T*>(source.data) + offset;
      if (source.load_mode == LoadMode::broadcast) {
        const auto value = static_cast<float>(load(*data));
        for (int i = 0; i < k_body_width; ++i) x[i] = value;
      } else {
        const auto pack = load_pack<T, k_body_width>(data);
        for (int i = 0; i < k_body_width; ++i) x[i] = static_cast<float>(load(pack.element[i]));
      }
    });
    return;
  }
  ThreadValues slow = {};
  HALFSTEP_ROLLED
  for (int i = 0; i < count; ++i) {
    const std::int64_t offset = source.whole ? first + i : p.walk[operand].at(first + i).of[0];
    with_type(source.dtype, [&]<class T>(Type<T>) {
      slow[i] = static_cast<float>(load(static_cast<const T*>(source.data)[offset]));
    });
  }
  for (int i = 0; i < k_body_width; ++i) x[i] = slow[i];
}

__device__ inline void store_output(const Program& p,
                                    const Sink& sink,
                                    std::int64_t first,
                                    int count,
                                    const ThreadValues& last,
                                    const ThreadValues* saved) {
  ThreadValues value;
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
    Pack<T, k_body_width> pack;
    for (int i = 0; i < k_body_width; ++i) pack.element[i] = element(value[i]);
    if (p.packed && count == k_body_width) {
      store_pack<T, k_body_width>(data, pack);
    } else {
      for (int i = 0; i < k_body_width; ++i) {
        if (i < count) data[i] = pack.element[i];
      }
    }
  });
}

/// Changes `last`, the result of the preceding op, to that of this one.
__device__ inline void run_step(const Program& p,
                                const Operation& step,
                                std::int64_t first,
                                int count,
                                ThreadValues& last,
                                ThreadValues* saved) {
  if (step.function == k_random) {
    uniform(p.source[step.operands[0]].data, step.seed, step.stream, first, last);
  } else {
    ThreadValues x[3] = {};
    for (int n = 0; n < 3; ++n) {
      if (step.operands[n] != k_none) fetch(p, step.operands[n], first, count, last, saved, x[n]);
    }
    apply_function<0, k_random>(step.function, step.alpha, x[0], x[1], x[2], last);
    round_to(step.dtype, last);
  }
  if (step.saved == k_none) return;
  for (int i = 0; i < k_body_width; ++i) saved[step.saved - k_inputs][i] = last[i];
}

/// An output may alias an input: a thread's elements are stored when it has read all inputs.
__global__ void HALFSTEP_BLOCK_OF(256, 4) fused_kernel(Program p) {
  for (std::int64_t first = thread_of_grid() * k_body_width; first < p.elements;
       first += threads_of_grid() * k_body_width) {
    const std::int64_t rest = p.elements - first;
    const int count = rest < k_body_width ? static_cast<int>(rest) : k_body_width;
    ThreadValues last;
    ThreadValues saved[k_steps];  // in local memory, for its index varies
    HALFSTEP_ROLLED
    for (int n = 0; n < p.steps; ++n) run_step(p, p.operation[n], first, count, last, saved);
    HALFSTEP_ROLLED
    for (int n = 0; n < p.outputs; ++n) store_output(p, p.sink[n], first, count, last, saved);
  }
}

/// How an input is read, by its iteration over the elements of the result.
Source source_of(const FusedParams::Input& input, const Walk<1>& walk, std::int64_t elements) {
  const std::size_t pack_bytes = k_body_width * size_bytes(input.dtype);
  const bool whole = input.shape.elements() == elements;
  // Packs do not cross the end of the last axis, and begin at multiples of their width.
  const int last = walk.rank - 1;
  bool packs = walk.rank > 0 && walk.extent[last] % k_body_width == 0 &&
               walk.stride[0][last] == 1 && aligned(input.data, pack_bytes);
  for (int axis = 0; axis < last; ++axis) packs = packs && walk.stride[0][axis] % k_body_width == 0;
  const bool one = walk.rank == 0 || (walk.stride[0][last] == 0 &&
                                      (walk.rank == 1 || walk.extent[last] % k_body_width == 0));
  LoadMode load_mode = LoadMode::gather;
  if (one) {
    load_mode = LoadMode::broadcast;
  } else if (packs || (whole && aligned(input.data, pack_bytes))) {
    load_mode = LoadMode::pack;
  }
  return {input.data, input.dtype, load_mode, whole && walk.rank > 0};
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

std::optional<std::uint8_t> fused_function(std::string_view op) { return number_of(op); }

void fused_elementwise(Stream stream, const FusedParams& p) {
  Program program{};
  program.elements = p.shape.elements();
  program.packed = true;
  program.steps = static_cast<int>(p.steps);
  program.outputs = static_cast<int>(p.outputs);
  for (std::size_t n = 0; n < p.inputs; ++n) {
    program.walk[n] = Walk<1>(p.shape, {broadcast_strides(p.input[n].shape, p.shape)});
    program.source[n] = source_of(p.input[n], program.walk[n], program.elements);
  }
  for (std::size_t n = 0; n < p.outputs; ++n) {
    const std::size_t bytes = k_body_width * size_bytes(p.step[p.output[n].step].dtype);
    program.packed = program.packed && aligned(p.output[n].data, bytes);
  }
  if (program.packed && launch_compiled_body(stream, p, program.source, program.walk)) return;
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
  }
  launch(
      fused_kernel, grid_of((program.elements + k_body_width - 1) / k_body_width), stream, program);
}

}  // namespace halfstep::backend::cuda::kernels
