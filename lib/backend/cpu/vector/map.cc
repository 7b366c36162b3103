// Elementwise ops in float32: y[i] = f(x0[i], x1[i], x2[i]) with NumPy broadcasting, rounded once
// on store. Stored dtypes: float32, float16, bfloat16; casts also uint8, bool and int32.
// Bit-identical for every instruction set and number of threads.

#include <algorithm>
#include <string_view>

#include "backend/cpu/vector/kernels.h"
#include "backend/cpu/vector/operand.h"
#include "core/error.h"
#include "core/parallel.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cpu::vector {
namespace {

/// Minimum number of elements per thread.
constexpr std::int64_t k_map_grain = 16384;
constexpr std::size_t k_max_inputs = 3;

std::size_t inputs(const MapLoop& map) { return static_cast<std::size_t>(map.inputs); }

Accepts accepts_map(const NodeView& node, const Capabilities& capabilities) {
  const MapLoop& map = *find_entry(loops(capabilities.isa).maps, node.node.op);
  bool computed = false;
  for (std::size_t i = 0; i < inputs(map); ++i) {
    const DType dtype = node.input(i).dtype;
    if (dtype == DType::boolean) continue;
    if (Accepts a = accepts_dtype(dtype); !a) return a;
    computed = true;
  }
  // Equal and Select of bool inputs only are left to the reference kernel.
  if (!computed) return Accepts::no("no floating input");
  if (node.node.is(graph::ops::k_bias_add) &&
      node.attrs().get<std::string>("data_format") != "NHWC") {
    return Accepts::no("channels are not the last axis");
  }
  // A vector condition selects whole rows in Select.
  if (node.node.is(graph::ops::k_select) && node.input(0).shape.rank() == 1 &&
      node.output().shape.rank() != 1) {
    return Accepts::no("one condition per row");
  }
  return Accepts::yes();
}

Prepared prepare_map(const NodeView& node, const Capabilities& capabilities) {
  const Loops& l = loops(capabilities.isa);
  const MapLoop map = *find_entry(l.maps, node.node.op);
  const graph::TensorType& out = node.output();
  std::array<Operand, k_max_inputs> operands;
  for (std::size_t i = 0; i < inputs(map); ++i) {
    operands[i] = Operand(l, node.input(i).dtype, node.input(i).shape, out.shape);
    if (map.costly) operands[i].prefetch();
  }
  const Sink sink(l, out.dtype);
  const float a =
      map.attribute == nullptr ? 0.0F : static_cast<float>(node.attrs().get<double>(map.attribute));
  return launch([=, n = out.shape.elements()](const Args& args) {
    parallel_for(n, k_map_grain, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float scratch[k_max_inputs][Operand::k_scratch];
      alignas(64) float result[k_run];
      const float* x[k_max_inputs];
      const std::size_t count = inputs(map);
      const std::int64_t max_length = std::min(k_run, end - begin);
      for (std::size_t j = 0; j < count; ++j)
        operands[j].start(args.in[j].data, scratch[j], max_length);
      for (std::int64_t i = begin; i < end; i += k_run) {
        const std::int64_t length = std::min(k_run, end - i);
        for (std::size_t j = 0; j < count; ++j) {
          x[j] = operands[j].read(args.in[j].data, scratch[j], i, length);
        }
        map.loop(sink.buffer(args.out[0].data, i, result), x, length, a);
        sink.store(args.out[0].data, i, length, result);
      }
    });
  });
}

bool is_cast(DType dtype) {
  return is_computed(dtype) || dtype == DType::uint8 || dtype == DType::boolean ||
         dtype == DType::int32;
}

Accepts accepts_cast(const NodeView& node, const Capabilities&) {
  const DType from = node.input(0).dtype;
  const DType to = node.output().dtype;
  if (!is_cast(from) || !is_cast(to)) {
    return Accepts::no(fmt::format("no cast from {} to {}", name(from), name(to)));
  }
  // A conversion through float32 would lose bits of an integer.
  if (!is_floating(from) && !is_floating(to)) return Accepts::no("between integers");
  return Accepts::yes();
}

Prepared prepare_cast(const NodeView& node, const Capabilities& capabilities) {
  const Loops& l = loops(capabilities.isa);
  const Source source(l, node.input(0).dtype);
  const Sink sink(l, node.output().dtype);
  return launch([=, n = node.output().shape.elements()](const Args& args) {
    parallel_for(n, k_map_grain, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float scratch[k_run];
      for (std::int64_t i = begin; i < end; i += k_run) {
        const std::int64_t length = std::min(k_run, end - i);
        float* y = sink.buffer(args.out[0].data, i, scratch);
        const float* x = source.read(args.in[0].data, i, length, y);
        if (sink.loop != nullptr) {
          sink.store(args.out[0].data, i, length, x);
        } else if (x != y) {
          std::copy_n(x, length, y);
        }
      }
    });
  });
}

Accepts accepts_add_n(const NodeView& node, const Capabilities&) {
  return accepts_dtype(node.output().dtype);
}

/// A sum of any number of inputs in float32, rounded once.
Prepared prepare_add_n(const NodeView& node, const Capabilities& capabilities) {
  const Loops& l = loops(capabilities.isa);
  const Source source(l, node.output().dtype);
  const Sink sink(l, node.output().dtype);
  const Map add = find_entry(l.maps, "AddV2")->loop;
  return launch([=, n = node.output().shape.elements()](const Args& args) {
    parallel_for(n, k_map_grain, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float scratch[k_run];
      alignas(64) float sum[k_run];
      for (std::int64_t i = begin; i < end; i += k_run) {
        const std::int64_t length = std::min(k_run, end - i);
        const float* x[2] = {source.read(args.in[0].data, i, length, sum), nullptr};
        float* y = sink.buffer(args.out[0].data, i, sum);
        // The result may share the memory of the first input, which may be read again, so only the
        // last addition writes there.
        for (std::size_t j = 1; j < args.in.size(); ++j) {
          x[1] = source.read(args.in[j].data, i, length, scratch);
          float* to = j + 1 == args.in.size() ? y : sum;
          add(to, x, length, 0);
          x[0] = to;
        }
        if (args.in.size() == 1 && x[0] != y) std::copy_n(x[0], length, y);
        sink.store(args.out[0].data, i, length, y);
      }
    });
  });
}

}  // namespace

std::vector<Kernel> map_kernels() {
  std::vector<Kernel> kernels{
      {"Cast", "vector/cast", accepts_cast, prepare_cast, 0b1},
      {"AddN", "vector/add_n", accepts_add_n, prepare_add_n, 0b1},
  };
  for (const MapLoop& map : baseline_loops().maps) {
    kernels.push_back({map.op, "vector/map", accepts_map, prepare_map, (1U << map.inputs) - 1});
  }
  return kernels;
}

}  // namespace halfstep::backend::cpu::vector
