// Sums of many operands, and selection by a condition, with NumPy broadcasting.

#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cpu {
namespace {

/// A sum of any number of inputs in double, rounded once.
Prepared prepare_add_n(const NodeView& node, const Capabilities&) {
  return dispatch_number(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([](const Args& args) {
      T* y = args.out[0].as<T>();
      parallel_for_each(args.out[0].elements(), k_grain, [&](std::int64_t i) {
        Sum<T> sum = 0;
        for (const TensorView& x : args.in) sum += load_sum(x.as<T>()[i]);
        y[i] = store<T>(sum);
      });
    });
  });
}

/// The strides of the condition; `rows`: a vector with one condition for each index of the first
/// axis.
Strides select_strides(const Shape& condition, const Shape& shape, bool rows) {
  if (!rows) return broadcast_strides(condition, shape);
  Strides strides{};
  strides[0] = 1;
  return strides;
}

Prepared prepare_select(const NodeView& node, const Capabilities&) {
  const Shape shape = node.output().shape;
  // A vector condition selects whole rows in Select; SelectV2 broadcasts it like any operand.
  const bool rows = node.node.is(graph::ops::k_select) && node.input(0).shape.rank() == 1;
  const std::array<Strides, 3> strides{select_strides(node.input(0).shape, shape, rows),
                                       broadcast_strides(node.input(1).shape, shape),
                                       broadcast_strides(node.input(2).shape, shape)};
  return dispatch(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([=](const Args& args) {
      const bool* condition = args.in[0].as<bool>();
      const T* t = args.in[1].as<T>();
      const T* e = args.in[2].as<T>();
      T* y = args.out[0].as<T>();
      parallel_for(shape.elements(), k_grain, [&](std::int64_t begin, std::int64_t end) {
        walk(shape, strides, begin, end, [&](std::int64_t i, const auto& at) {
          y[i] = condition[at[0]] ? t[at[1]] : e[at[2]];
        });
      });
    });
  });
}

}  // namespace

std::vector<Kernel> select_kernels() {
  return {
      {"AddN", "reference/add_n", executable, prepare_add_n, 0b1},
      {"Select", "reference/select", executable, prepare_select, 0b110},
      {"SelectV2", "reference/select_v2", executable, prepare_select, 0b110},
  };
}

}  // namespace halfstep::backend::cpu
