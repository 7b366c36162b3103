// FusedElementwise: several ops on a run of elements in the L1 cache. Each op computes in float32
// and rounds like the unfused op, so results are bit-identical to the unfused ops for every
// instruction set and number of threads.

#include <algorithm>

#include "backend/cpu/vector/kernels.h"
#include "backend/cpu/vector/operand.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/philox.h"
#include "graph/elementwise_body.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cpu::vector {
namespace {

using graph::ElementwiseBody;
using graph::ElementwiseStep;
using graph::k_max_elementwise_inputs;
using graph::k_max_elementwise_steps;

constexpr std::int64_t k_grain_runs = 16;
constexpr std::size_t k_max_operands = 3;

bool is_random(const ElementwiseStep& step) {
  return step.op == graph::ops::k_random_uniform_from_ordinal;
}

/// Whether a result needs no rounding.
bool is_exact(const ElementwiseStep& step, const MapLoop* map) {
  return !is_half(step.dtype) || (map != nullptr && map->exact);
}

DType dtype_of(const NodeView& node, const ElementwiseBody& body, int operand) {
  const auto at = static_cast<std::size_t>(operand);
  return at < node.inputs() ? node.input(at).dtype : body.steps[at - node.inputs()].dtype;
}

Accepts accepts(const NodeView& node, const Capabilities& capabilities) {
  const auto& body = node.attrs().get<ElementwiseBody>("body");
  if (node.inputs() > k_max_elementwise_inputs || body.steps.size() > k_max_elementwise_steps) {
    return Accepts::no("too long");
  }
  for (const ElementwiseStep& step : body.steps) {
    if (is_random(step)) {
      if (step.dtype == DType::float32) continue;
      return Accepts::no("random values are float32 only");
    }
    const bool cast = step.op == graph::ops::k_cast;
    const auto fits = [&](DType dtype) { return is_computed(dtype) || dtype == DType::boolean; };
    bool computed = cast && is_computed(step.dtype);
    for (const int operand : step.operands) {
      const DType dtype = dtype_of(node, body, operand);
      if (!fits(dtype) && !(cast && (dtype == DType::uint8 || dtype == DType::int32))) {
        return Accepts::no(fmt::format("{} is not supported", name(dtype)));
      }
      computed = computed || (!cast && is_computed(dtype));
    }
    if (!computed || !fits(step.dtype)) {
      return Accepts::no(fmt::format("{} to {} is not supported", step.op, name(step.dtype)));
    }
    if (!cast && find_entry(loops(capabilities.isa).maps, step.op) == nullptr) {
      return Accepts::no("no loop of " + step.op);
    }
  }
  return Accepts::yes();
}

/// An op of the body. Operands are inputs, or scratch buffers numbered after the inputs.
struct Instruction {
  /// The loop, which also rounds the result for its readers in the body; nullptr for a cast, which
  /// only rounds, and for random values.
  Map loop = nullptr;
  bool random = false;
  float alpha = 0;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::int64_t first = 0;
  std::array<std::size_t, k_max_operands> operands{};
  std::size_t count = 0;
  std::size_t buffer = 0;
  int output = -1;        ///< output in which the last result is computed
  Round round = nullptr;  ///< rounds a cast or a random value for its readers
};

struct Result {
  std::size_t buffer = 0;  ///< number of the input or scratch buffer
  Sink sink;
};

struct Program {
  std::array<Operand, k_max_elementwise_inputs> inputs;
  std::array<bool, k_max_elementwise_inputs> read{};  ///< whether the body reads its elements
  std::size_t input_count = 0;
  std::vector<Instruction> instructions;
  std::vector<Result> results;
  const Loops* loops = nullptr;

  Program(const NodeView& node, const Loops& l, const ElementwiseBody& body);
  void run(const Args& args, std::int64_t n, std::int64_t first, std::int64_t last) const;
};

/// For each op the op that computes its value: a cast of a buffer to float32 is a no-op, since
/// buffers hold rounded values as float32.
std::vector<std::size_t> computing_ops(const ElementwiseBody& body, std::size_t inputs) {
  std::vector<std::size_t> computing(body.steps.size());
  for (std::size_t i = 0; i < body.steps.size(); ++i) {
    const ElementwiseStep& step = body.steps[i];
    const auto operand = static_cast<std::size_t>(step.operands[0]);
    const bool same = step.op == graph::ops::k_cast && step.dtype == DType::float32;
    computing[i] = same && operand >= inputs ? computing[operand - inputs] : i;
  }
  return computing;
}

/// Assigns scratch buffers to results; a buffer is reused after its last reader.
std::vector<std::size_t> assign_buffers(const ElementwiseBody& body,
                                        std::size_t inputs,
                                        const std::vector<std::size_t>& computing) {
  const std::size_t steps = body.steps.size();
  std::vector<std::size_t> last(steps, 0);
  for (std::size_t i = 0; i < steps; ++i) {
    for (const int operand : body.steps[i].operands) {
      const auto at = static_cast<std::size_t>(operand);
      if (at >= inputs) last[computing[at - inputs]] = i;
    }
  }
  for (const int result : body.results) last[computing[static_cast<std::size_t>(result)]] = steps;
  std::vector<std::size_t> buffer(steps);
  for (std::size_t i = 0; i < steps; ++i) {
    if (computing[i] != i) continue;
    for (std::size_t candidate = 0;; ++candidate) {
      const bool used = std::any_of(buffer.begin(),
                                    buffer.begin() + static_cast<std::ptrdiff_t>(i),
                                    [&, j = std::size_t{0}](std::size_t r) mutable {
                                      return last[j++] > i && r == candidate;
                                    });
      if (used) continue;
      buffer[i] = candidate;
      break;
    }
  }
  return buffer;
}

Program::Program(const NodeView& node, const Loops& l, const ElementwiseBody& body)
    : input_count(node.inputs()), loops(&l) {
  std::array<bool, k_max_elementwise_steps> read_in_body{};
  for (const ElementwiseStep& step : body.steps) {
    for (const int operand : step.operands) {
      const auto at = static_cast<std::size_t>(operand);
      if (at >= input_count) {
        read_in_body[at - input_count] = true;
      } else if (!is_random(step)) {
        read[at] = true;
      }
    }
  }
  const Shape& shape = node.output().shape;
  for (std::size_t i = 0; i < input_count; ++i) {
    if (read[i]) inputs[i] = Operand(l, node.input(i).dtype, node.input(i).shape, shape);
  }
  const std::vector<std::size_t> computing = computing_ops(body, input_count);
  const std::vector<std::size_t> buffers = assign_buffers(body, input_count, computing);
  std::vector<std::size_t> values;  // the buffers of inputs and results
  std::size_t last_computed = body.steps.size();
  for (std::size_t i = 0; i < input_count; ++i) values.push_back(i);
  for (std::size_t i = 0; i < body.steps.size(); ++i) {
    const ElementwiseStep& step = body.steps[i];
    if (computing[i] != i) {
      values.push_back(values[input_count + computing[i]]);
      continue;
    }
    Instruction to;
    to.random = is_random(step);
    const MapLoop* map = find_entry(l.maps, step.op);  // null for a cast and for random numbers
    to.alpha = static_cast<float>(step.alpha);
    to.seed = static_cast<std::uint64_t>(step.seed);
    to.stream = static_cast<std::uint64_t>(step.stream);
    to.first = step.first;
    to.count = step.operands.size();
    for (std::size_t j = 0; j < to.count; ++j) {
      to.operands[j] = values[static_cast<std::size_t>(step.operands[j])];
    }
    to.buffer = buffers[i];
    if (map != nullptr && map->costly) {
      for (std::size_t j = 0; j < input_count; ++j) inputs[j].prefetch();
    }
    const bool rounds = read_in_body[i] && !is_exact(step, map);
    if (map != nullptr) {
      to.loop = rounds ? map->rounded[step.dtype == DType::bfloat16 ? 1 : 0] : map->loop;
    } else if (rounds) {
      to.round = round_loop(l, step.dtype);
    }
    // A cast to the dtype of its operand is the operand itself, except for a float32 input, which
    // is read in place and may share memory with an output that is stored first.
    const bool same = step.op == graph::ops::k_cast && to.round == nullptr &&
                      to.operands[0] < input_count &&
                      dtype_of(node, body, step.operands[0]) != DType::float32;
    values.push_back(same ? to.operands[0] : input_count + to.buffer);
    if (same) continue;
    instructions.push_back(to);
    last_computed = i;
  }
  for (const int result : body.results) {
    const auto at = static_cast<std::size_t>(result);
    results.push_back({values[input_count + at], Sink(l, body.steps[at].dtype)});
    const bool once = std::count_if(body.results.begin(), body.results.end(), [&](int other) {
                        return computing[static_cast<std::size_t>(other)] == computing[at];
                      }) == 1;
    if (once && last_computed == computing[at] && results.back().sink.loop == nullptr) {
      instructions.back().output = static_cast<int>(results.size()) - 1;
    }
  }
}

void Program::run(const Args& args, std::int64_t n, std::int64_t first, std::int64_t last) const {
  alignas(64) float buffers[k_max_elementwise_steps][k_run];
  alignas(64) float input_scratch[k_max_elementwise_inputs][Operand::k_scratch];
  std::array<const float*, k_max_elementwise_inputs + k_max_elementwise_steps> at{};
  const std::int64_t max_length = std::min(k_run, n);
  for (std::size_t i = 0; i < input_count; ++i) {
    if (read[i]) inputs[i].start(args.in[i].data, input_scratch[i], max_length);
  }
  for (std::size_t i = 0; i < k_max_elementwise_steps; ++i) at[input_count + i] = buffers[i];
  for (std::int64_t run = first; run < last; ++run) {
    const std::int64_t begin = run * k_run;
    const std::int64_t length = std::min(k_run, n - begin);
    // An output may share the memory of an input: all inputs are read before anything is stored.
    for (std::size_t i = 0; i < input_count; ++i) {
      if (read[i]) at[i] = inputs[i].read(args.in[i].data, input_scratch[i], begin, length);
    }
    for (const Instruction& step : instructions) {
      float* y = step.output < 0
                     ? buffers[step.buffer]
                     : args.out[static_cast<std::size_t>(step.output)].as<float>() + begin;
      const float* x[k_max_operands] = {};
      for (std::size_t j = 0; j < step.count; ++j) x[j] = at[step.operands[j]];
      if (step.random) {
        const auto ordinal =
            static_cast<std::uint64_t>(*args.in[step.operands[0]].as<std::int64_t>());
        uniform_elements(
            *loops, y, step.seed, mix(step.stream, ordinal), step.first + begin, length);
      } else if (step.loop != nullptr) {
        step.loop(y, x, length, step.alpha);
      } else if (step.round != nullptr) {
        step.round(y, x[0], length);
        continue;
      } else if (x[0] != y) {
        std::copy_n(x[0], length, y);
      }
      if (step.round != nullptr) step.round(y, y, length);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Result& result = results[i];
      const float* y = at[result.buffer];
      if (!instructions.empty() && static_cast<int>(i) == instructions.back().output) continue;
      result.sink.write(args.out[i].data, begin, length, y);
    }
  }
}

Prepared prepare(const NodeView& node, const Capabilities& capabilities) {
  const auto& body = node.attrs().get<ElementwiseBody>("body");
  return launch([program = Program(node, loops(capabilities.isa), body),
                 n = node.output().shape.elements()](const Args& args) {
    parallel_for((n + k_run - 1) / k_run, k_grain_runs, [&](std::int64_t begin, std::int64_t end) {
      program.run(args, n, begin, end);
    });
  });
}

}  // namespace

std::vector<Kernel> elementwise_kernels() {
  return {{"FusedElementwise",
           "vector/elementwise",
           accepts,
           prepare,
           (1U << k_max_elementwise_inputs) - 1}};
}

}  // namespace halfstep::backend::cpu::vector
