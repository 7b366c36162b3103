// Ops that move elements: copies of unsigned integers of the element's size, without rounding.

#include <algorithm>
#include <cstring>

#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "backend/cpu/workspace_layout.h"

namespace halfstep::backend::cpu {
namespace {

using graph::TensorType;

/// A copy of the elements of `shape`, with an offset and strides for source and destination.
struct Copy {
  Shape shape;
  std::array<Strides, 2> strides{};  ///< of the source, of the destination
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// Calls f with an unsigned type of the element's size.
template <class F>
decltype(auto) dispatch_word(DType dtype, F&& f) {
  switch (size_bytes(dtype)) {
    case 1:
      return f(Type<std::uint8_t>{});
    case 2:
      return f(Type<std::uint16_t>{});
    case 4:
      return f(Type<std::uint32_t>{});
    default:
      return f(Type<std::uint64_t>{});
  }
}

/// Copies `count` runs of `run` elements, which are `strides` apart; `size` is the bytes of a run,
/// a constant so that the copy is inlined, or 0 for any number.
template <std::size_t size, class Word>
void copy_runs(const Word* x,
               Word* y,
               std::int64_t run,
               std::int64_t count,
               const std::array<std::int64_t, 2>& strides) {
  for (; count > 0; --count, x += strides[0], y += strides[1]) {
    if constexpr (size > 0) {
      std::memcpy(y, x, size);
    } else {
      std::copy_n(x, run, y);
    }
  }
}

/// Trailing axes along which source and destination are dense are copied as one run.
template <class Word>
void run_copy(const Copy& c, const Word* x, Word* y) {
  std::int64_t run = 1;
  std::size_t rank = c.shape.rank();
  const auto dense = [&](std::size_t axis) {
    return c.shape[axis] == 1 || (c.strides[0][axis] == run && c.strides[1][axis] == run);
  };
  while (rank > 0 && dense(rank - 1)) run *= c.shape[--rank];
  const auto copy = [&] {
    switch (static_cast<std::size_t>(run) * sizeof(Word)) {
      case sizeof(Word):
        return copy_runs<sizeof(Word), Word>;
      case 32:
        return copy_runs<32, Word>;
      case 64:
        return copy_runs<64, Word>;
      case 128:
        return copy_runs<128, Word>;
      default:
        return copy_runs<0, Word>;
    }
  }();
  const std::int64_t grain = k_grain / std::max<std::int64_t>(run, 1) + 1;
  // The innermost axis of runs is a plain loop, without index arithmetic.
  std::int64_t inner = 1;
  std::array<std::int64_t, 2> strides{};
  if (rank > 0) {
    inner = c.shape[--rank];
    strides = {c.strides[0][rank], c.strides[1][rank]};
  }
  const Shape outer(c.shape.dims().first(rank));
  parallel_for(outer.elements() * inner, grain, [&](std::int64_t begin, std::int64_t end) {
    walk(outer, c.strides, begin / inner, divide_up(end, inner), [&](std::int64_t i, auto& at) {
      const std::int64_t from = std::max(begin - i * inner, std::int64_t{0});
      const std::int64_t to = std::min(end - i * inner, inner);
      copy(x + c.from + at[0] + from * strides[0],
           y + c.to + at[1] + from * strides[1],
           run,
           to - from,
           strides);
    });
  });
}

/// One copy from input `i` to output 0.
Prepared launch_copy(const NodeView& node, Copy copy, std::size_t i = 0) {
  return dispatch_word(node.output().dtype, [&]<class Word>(Type<Word>) {
    return launch(
        [=](const Args& args) { run_copy(copy, args.in[i].as<Word>(), args.out[0].as<Word>()); });
  });
}

/// Constant input `i`; accepts() has checked that it is one.
std::vector<std::int64_t> constant(const NodeView& node, std::size_t i) {
  return node.constant(i).value();
}

template <std::size_t... I>
Accepts constants(const NodeView& node, const Capabilities& capabilities) {
  for (std::size_t i : {I...}) {
    if (!node.constant(i)) return Accepts::no(fmt::format("input {} is not constant", i));
  }
  return executable(node, capabilities);
}

Prepared prepare_broadcast_to(const NodeView& node, const Capabilities&) {
  const Shape& y = node.output().shape;
  return launch_copy(node, {y, {broadcast_strides(node.input(0).shape, y), dense_strides(y)}});
}

Prepared prepare_transpose(const NodeView& node, const Capabilities&) {
  const Shape& x = node.input(0).shape;
  const Shape& y = node.output().shape;
  const Strides dense = dense_strides(x);
  const std::vector<std::int64_t> perm = constant(node, 1);
  Strides strides{};
  for (std::size_t i = 0; i < perm.size(); ++i) strides[i] = dense[axis_of(perm[i], x.rank())];
  return launch_copy(node, {y, {strides, dense_strides(y)}});
}

Prepared prepare_reverse(const NodeView& node, const Capabilities&) {
  const Shape& x = node.input(0).shape;
  Copy copy{x, {dense_strides(x), dense_strides(x)}};
  std::vector<bool> turned(x.rank(), false);
  const std::vector<std::int64_t> axes = constant(node, 1);
  for (std::int64_t axis : axes) turned[axis_of(axis, x.rank())] = true;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (!turned[i]) continue;
    copy.from += (x[i] - 1) * copy.strides[0][i];
    copy.strides[0][i] = -copy.strides[0][i];
  }
  return launch_copy(node, copy);
}

Prepared prepare_slice(const NodeView& node, const Capabilities&) {
  const Shape& y = node.output().shape;
  Copy copy{y, {dense_strides(node.input(0).shape), dense_strides(y)}};
  const std::vector<std::int64_t> begin = constant(node, 1);
  for (std::size_t i = 0; i < y.rank(); ++i) copy.from += begin[i] * copy.strides[0][i];
  return launch_copy(node, copy);
}

/// Pad with zeros, PadV2 with its third input.
Prepared prepare_pad(const NodeView& node, const Capabilities&) {
  const Shape& x = node.input(0).shape;
  Copy copy{x, {dense_strides(x), dense_strides(node.output().shape)}};
  const std::vector<std::int64_t> paddings = constant(node, 1);
  for (std::size_t i = 0; i < x.rank(); ++i) copy.to += paddings[2 * i] * copy.strides[1][i];
  return dispatch_word(node.output().dtype, [&]<class Word>(Type<Word>) {
    return launch([copy](const Args& args) {
      Word* y = args.out[0].as<Word>();
      const Word value = args.in.size() > 2 ? args.in[2].as<Word>()[0] : Word{};
      parallel_for(args.out[0].elements(), k_grain, [&](std::int64_t begin, std::int64_t end) {
        std::fill_n(y + begin, end - begin, value);
      });
      run_copy(copy, args.in[0].as<Word>(), y);
    });
  });
}

/// Copies the input to each repetition.
Prepared prepare_tile(const NodeView& node, const Capabilities&) {
  const Shape& x = node.input(0).shape;
  const Strides to = dense_strides(node.output().shape);
  const Copy copy{x, {dense_strides(x), to}};
  const Shape repetitions(constant(node, 1));
  std::array<Strides, 1> steps{};
  for (std::size_t i = 0; i < x.rank(); ++i) steps[0][i] = x[i] * to[i];
  return dispatch_word(node.output().dtype, [&]<class Word>(Type<Word>) {
    return launch([=](const Args& args) {
      walk(repetitions, steps, 0, repetitions.elements(), [&](std::int64_t, const auto& at) {
        run_copy(copy, args.in[0].as<Word>(), args.out[0].as<Word>() + at[0]);
      });
    });
  });
}

/// Concatenates (`join`) or splits along `axis`.
Prepared parts_copy(
    DType dtype, const Shape& whole, std::size_t axis, const std::vector<Shape>& parts, bool join) {
  const Strides strides = dense_strides(whole);
  std::vector<Copy> copies;
  std::int64_t at = 0;
  for (const Shape& part : parts) {
    Copy copy{part, {dense_strides(part), strides}, 0, at};
    if (!join) copy = {part, {strides, dense_strides(part)}, at, 0};
    copies.push_back(copy);
    at += part[axis] * strides[axis];
  }
  return dispatch_word(dtype, [&]<class Word>(Type<Word>) {
    return launch([copies, join](const Args& args) {
      for (std::size_t i = 0; i < copies.size(); ++i) {
        const TensorView& x = args.in[join ? i : 1];  // Split's axis comes first
        run_copy(copies[i], x.as<Word>(), args.out[join ? 0 : i].as<Word>());
      }
    });
  });
}

Accepts accepts_concat(const NodeView& node, const Capabilities& capabilities) {
  if (!node.constant(node.inputs() - 1)) return Accepts::no("the axis is not constant");
  return executable(node, capabilities);
}

Prepared prepare_concat(const NodeView& node, const Capabilities&) {
  const std::size_t count = node.inputs() - 1;
  std::vector<Shape> parts;
  for (std::size_t i = 0; i < count; ++i) parts.push_back(node.input(i).shape);
  const Shape& whole = node.output().shape;
  const std::size_t axis = axis_of(constant(node, count).at(0), whole.rank());
  return parts_copy(node.output().dtype, whole, axis, parts, true);
}

Prepared prepare_split(const NodeView& node, const Capabilities&) {
  std::vector<Shape> parts;
  for (const TensorType& type : node.node.outputs) parts.push_back(type.shape);
  const Shape& whole = node.input(1).shape;
  const std::size_t axis = axis_of(constant(node, 0).at(0), whole.rank());
  return parts_copy(node.output().dtype, whole, axis, parts, false);
}

Prepared prepare_fill(const NodeView& node, const Capabilities&) {
  return launch_copy(
      node, {node.output().shape, {Strides{}, dense_strides(node.output().shape)}}, 1);
}

Prepared prepare_shape(const NodeView& node, const Capabilities&) {
  const Shape shape = node.input(0).shape;
  const bool wide = node.output().dtype == DType::int64;
  return launch([=](const Args& args) {
    for (std::size_t i = 0; i < shape.rank(); ++i) {
      if (wide) {
        args.out[0].as<std::int64_t>()[i] = shape[i];
      } else {
        args.out[0].as<std::int32_t>()[i] = static_cast<std::int32_t>(shape[i]);
      }
    }
  });
}

/// y[.., i, ..] = indices[..] == i ? on : off; an index out of range gives off everywhere.
Prepared prepare_one_hot(const NodeView& node, const Capabilities&) {
  const Shape& indices = node.input(0).shape;
  const std::size_t axis = axis_of(node.attrs().get<std::int64_t>("axis"), indices.rank() + 1);
  const std::int64_t depth = node.output().shape[axis];
  const std::int64_t inner = indices.elements(axis, indices.rank());
  return dispatch_number(node.input(0).dtype, [&]<class Index>(Type<Index>) {
    return dispatch_word(node.output().dtype, [&]<class Word>(Type<Word>) {
      return launch([=](const Args& args) {
        const Word on = args.in[2].as<Word>()[0];
        const Word off = args.in[3].as<Word>()[0];
        Word* y = args.out[0].as<Word>();
        std::fill_n(y, args.out[0].elements(), off);
        for (std::int64_t i = 0; i < args.in[0].elements(); ++i) {
          const auto hot = static_cast<std::int64_t>(load_sum(args.in[0].as<Index>()[i]));
          if (hot < 0 || hot >= depth) continue;
          y[(i / inner * depth + hot) * inner + i % inner] = on;
        }
      });
    });
  });
}

/// y[outer, j, inner] = params[outer, indices[j], inner], 0 where the index is out of range, as
/// TensorFlow does on a GPU.
Prepared prepare_gather_v2(const NodeView& node, const Capabilities&) {
  const Shape& params = node.input(0).shape;
  const std::size_t axis = axis_of(constant(node, 2).at(0), params.rank());
  const std::int64_t outer = params.elements(0, axis);
  const std::int64_t extent = params[axis];
  const std::int64_t inner = params.elements(axis + 1, params.rank());
  return dispatch_number(node.input(1).dtype, [&]<class Index>(Type<Index>) {
    return dispatch_word(node.output().dtype, [&]<class Word>(Type<Word>) {
      return launch([=](const Args& args) {
        const Word* x = args.in[0].as<Word>();
        Word* y = args.out[0].as<Word>();
        const std::int64_t count = args.in[1].elements();
        for (std::int64_t i = 0; i < outer * count; ++i, y += inner) {
          const auto at = static_cast<std::int64_t>(load_sum(args.in[1].as<Index>()[i % count]));
          if (at < 0 || at >= extent) {
            std::fill_n(y, inner, Word{});
          } else {
            std::copy_n(x + (i / count * extent + at) * inner, inner, y);
          }
        }
      });
    });
  });
}

/// y[id, ..] = sum of the data with that id, in double; ids out of range are ignored.
Prepared prepare_segment_sum(const NodeView& node, const Capabilities&) {
  const Shape& y_shape = node.output().shape;
  const std::int64_t segments = y_shape[0];
  const std::int64_t inner = y_shape.elements(1, y_shape.rank());
  const auto workspace_bytes = static_cast<std::size_t>(y_shape.elements()) * sizeof(double);
  return dispatch_number(node.input(1).dtype, [&]<class Index>(Type<Index>) {
    return dispatch_number(node.output().dtype, [&]<class T>(Type<T>) {
      return launch(
          [=](const Args& args) {
            auto* sums = reinterpret_cast<Sum<T>*>(args.workspace);
            std::fill_n(sums, segments * inner, Sum<T>{});
            const T* x = args.in[0].as<T>();
            for (std::int64_t i = 0; i < args.in[1].elements(); ++i, x += inner) {
              const auto id = static_cast<std::int64_t>(load_sum(args.in[1].as<Index>()[i]));
              if (id < 0 || id >= segments) continue;
              for (std::int64_t k = 0; k < inner; ++k) sums[id * inner + k] += load_sum(x[k]);
            }
            T* y = args.out[0].as<T>();
            for (std::int64_t i = 0; i < segments * inner; ++i) y[i] = store<T>(sums[i]);
          },
          workspace_bytes);
    });
  });
}

}  // namespace

std::vector<Kernel> array_kernels() {
  return {
      {"BroadcastTo", "reference/broadcast_to", executable, prepare_broadcast_to},
      {"ConcatV2", "reference/concat_v2", accepts_concat, prepare_concat},
      {"ExpandDims", "reference/expand_dims", executable},
      {"Fill", "reference/fill", executable, prepare_fill},
      {"GatherV2", "reference/gather_v2", constants<2>, prepare_gather_v2},
      {"OneHot", "reference/one_hot", executable, prepare_one_hot},
      {"Pad", "reference/pad", constants<1>, prepare_pad},
      {"PadV2", "reference/pad_v2", constants<1>, prepare_pad},
      {"PreventGradient", "reference/prevent_gradient", executable},
      {"Reshape", "reference/reshape", executable},
      {"ReverseV2", "reference/reverse_v2", constants<1>, prepare_reverse},
      {"Shape", "reference/shape", executable, prepare_shape},
      {"Slice", "reference/slice", constants<1>, prepare_slice},
      {"Split", "reference/split", constants<0>, prepare_split},
      {"Squeeze", "reference/squeeze", executable},
      {"StopGradient", "reference/stop_gradient", executable},
      {"Tile", "reference/tile", constants<1>, prepare_tile},
      {"Transpose", "reference/transpose", constants<1>, prepare_transpose},
      {"UnsortedSegmentSum", "reference/unsorted_segment_sum", executable, prepare_segment_sum},
  };
}

}  // namespace halfstep::backend::cpu
