#pragma once
// Kernels of elementwise ops with broadcasting.

#include "backend/cpu/reference/loops.h"

namespace halfstep::backend::cpu {

/// The dtypes that the inputs of an elementwise op may have.
enum class Domain { floating, number, boolean, any };

template <Domain domain, class F>
decltype(auto) dispatch_domain(DType dtype, F&& f) {
  if constexpr (domain == Domain::floating) {
    return dispatch_floating(dtype, f);
  } else if constexpr (domain == Domain::number) {
    return dispatch_number(dtype, f);
  } else if constexpr (domain == Domain::boolean) {
    return f(Type<bool>{});
  } else {
    return dispatch(dtype, f);
  }
}

template <class T, class F, std::size_t N, std::size_t... I>
auto apply_at(const F& f,
              const std::array<const T*, N>& x,
              const std::array<std::int64_t, N>& at,
              std::index_sequence<I...>) {
  return f(load(x[I][at[I]])...);
}

/// y[i] = f(x0[i], x1[i], ...) in Compute<T>, stored as R.
template <class T, class R, std::size_t N, class F>
Prepared elementwise(const NodeView& node, F f) {
  const Shape shape = node.output().shape;
  std::array<Strides, N> strides;
  bool dense = true;
  for (std::size_t n = 0; n < N; ++n) {
    dense = dense && node.input(n).shape == shape;
    strides[n] = broadcast_strides(node.input(n).shape, shape);
  }
  return launch([=](const Args& args) {
    constexpr auto k_all = std::make_index_sequence<N>{};
    std::array<const T*, N> x;
    for (std::size_t n = 0; n < N; ++n) x[n] = args.in[n].as<T>();
    R* y = args.out[0].as<R>();
    parallel_for(shape.elements(), k_grain, [&](std::int64_t begin, std::int64_t end) {
      // One input always has the shape of the output.
      if (N == 1 || dense) {
        for (std::int64_t i = begin; i < end; ++i) {
          std::array<std::int64_t, N> at;
          at.fill(i);
          y[i] = store<R>(apply_at(f, x, at, k_all));
        }
        return;
      }
      if constexpr (N > 1) {
        walk(shape, strides, begin, end, [&](std::int64_t i, const auto& at) {
          y[i] = store<R>(apply_at(f, x, at, k_all));
        });
      }
    });
  });
}

/// A kernel for a function without attributes whose result has the dtype of its N inputs. An input
/// may share its memory with the output where their shapes agree.
template <std::size_t N, Domain domain, class F>
Kernel map_row(std::string_view op, std::string_view name, F) {
  return {op,
          name,
          executable,
          [](const NodeView& node, const Capabilities&) {
            return dispatch_domain<domain>(node.input(0).dtype, [&]<class T>(Type<T>) {
              return elementwise<T, T, N>(node, F{});
            });
          },
          (1U << N) - 1};
}

/// The same for a predicate, whose result is bool.
template <std::size_t N, Domain domain, class F>
Kernel question_row(std::string_view op, std::string_view name, F) {
  return {op, name, executable, [](const NodeView& node, const Capabilities&) {
            return dispatch_domain<domain>(node.input(0).dtype, [&]<class T>(Type<T>) {
              return elementwise<T, bool, N>(node, F{});
            });
          }};
}

}  // namespace halfstep::backend::cpu
