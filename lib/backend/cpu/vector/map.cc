// Elementwise ops in float32: y[i] = f(x0[i], x1[i], x2[i]) with NumPy broadcasting, rounded once
// on store. Stored dtypes: float32, float16, bfloat16; casts also uint8, bool and int32.
// Bit-identical for every instruction set and number of threads.

#include <algorithm>
#include <string_view>

#include "backend/cpu/vector/operand.h"
#include "backend/cpu/vector/rows.h"
#include "core/error.h"
#include "core/parallel.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cpu::vector {
namespace {

/// Work on fewer elements stays on one thread.
constexpr std::int64_t k_map_grain = 16384;
constexpr std::size_t k_max_inputs = 3;

std::size_t inputs(const MapRow& row) { return static_cast<std::size_t>(row.inputs); }

Accepts accepts_map(const NodeView& node, const Capabilities& capabilities) {
  const MapRow& row = *find_map(loops(capabilities.isa), node.node.op);
  bool computed = false;
  for (std::size_t i = 0; i < inputs(row); ++i) {
    const DType dtype = node.input(i).dtype;
    if (dtype != DType::boolean && !is_computed(dtype)) {
      return Accepts::no(fmt::format("no {} here", name(dtype)));
    }
    computed = computed || is_computed(dtype);
  }
  // Equal and Select of bools would work, but do not justify a second path.
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
  const MapRow row = *find_map(l, node.node.op);
  const graph::TensorType& out = node.output();
  std::array<Operand, k_max_inputs> operands;
  for (std::size_t i = 0; i < inputs(row); ++i) {
    operands[i] = Operand(l, node.input(i).dtype, node.input(i).shape, out.shape);
    if (row.costly) operands[i].prefetch();
  }
  const Sink sink(l, out.dtype);
  const float a =
      row.attribute == nullptr ? 0.0F : static_cast<float>(node.attrs().get<double>(row.attribute));
  return launch([=, n = out.shape.elements()](const Args& args) {
    parallel_for(n, k_map_grain, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float scratch[k_max_inputs][Operand::k_scratch];
      alignas(64) float result[k_run];
      const float* x[k_max_inputs];
      const std::size_t count = inputs(row);
      const std::int64_t longest = std::min(k_run, end - begin);
      for (std::size_t j = 0; j < count; ++j)
        operands[j].start(args.in[j].data, scratch[j], longest);
      for (std::int64_t i = begin; i < end; i += k_run) {
        const std::int64_t length = std::min(k_run, end - i);
        for (std::size_t j = 0; j < count; ++j) {
          x[j] = operands[j].read(args.in[j].data, scratch[j], i, length);
        }
        row.loop(sink.place(args.out[0].data, i, result), x, length, a);
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
    return Accepts::no(fmt::format("no cast from {} to {} here", name(from), name(to)));
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
        float* y = sink.place(args.out[0].data, i, scratch);
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
  if (!is_computed(node.output().dtype)) {
    return Accepts::no(fmt::format("no {} here", name(node.output().dtype)));
  }
  return Accepts::yes();
}

/// A sum of any number of inputs in float32, rounded once.
Prepared prepare_add_n(const NodeView& node, const Capabilities& capabilities) {
  const Loops& l = loops(capabilities.isa);
  const Source source(l, node.output().dtype);
  const Sink sink(l, node.output().dtype);
  const Map add = find_map(l, "AddV2")->loop;
  return launch([=, n = node.output().shape.elements()](const Args& args) {
    parallel_for(n, k_map_grain, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float scratch[k_run];
      alignas(64) float sum[k_run];
      for (std::int64_t i = begin; i < end; i += k_run) {
        const std::int64_t length = std::min(k_run, end - i);
        const float* x[2] = {source.read(args.in[0].data, i, length, sum), nullptr};
        float* y = sink.place(args.out[0].data, i, sum);
        // The result may be in the memory of the first input, which may occur again: only the last
        // addition writes there.
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

const MapRow* find_map(const Loops& loops, std::string_view op) {
  const auto* row = std::find_if(
      loops.maps.begin(), loops.maps.end(), [&](const MapRow& r) { return op == r.op; });
  return row == loops.maps.end() ? nullptr : row;
}

std::vector<Kernel> map_kernels() {
  std::vector<Kernel> rows{
      {"Cast", "vector/cast", accepts_cast, prepare_cast, 0b1},
      {"AddN", "vector/add_n", accepts_add_n, prepare_add_n, 0b1},
  };
  for (const MapRow& row : baseline_loops().maps) {
    rows.push_back({row.op, "vector/map", accepts_map, prepare_map, (1U << row.inputs) - 1});
  }
  return rows;
}

}  // namespace halfstep::backend::cpu::vector
