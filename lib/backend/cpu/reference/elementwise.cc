// The scalar functions (backend/functions) with NumPy broadcasting, in float (double for float64),
// rounded once.

#include <cmath>

#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "backend/functions/lists.h"
#include "backend/functions/std_math.h"

namespace halfstep::backend::cpu {
namespace {

using functions::Domain;

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
      // The input of a unary op has the output's shape.
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

template <class F>
Prepared prepare_function(const NodeView& node, const Capabilities&) {
  double attribute = 0;
  if constexpr (F::attribute != nullptr) attribute = node.attrs().get<double>(F::attribute);
  return dispatch_domain<F::domain>(node.input(0).dtype, [&]<class T>(Type<T>) {
    using Result = std::conditional_t<F::predicate, bool, T>;
    const auto a = static_cast<Compute<T>>(attribute);
    return elementwise<T, Result, F::arity>(
        node, [a](auto... x) { return functions::call<F, functions::StdMath>(a, x...); });
  });
}

/// An input may share its memory with the output where their shapes and dtypes agree.
template <class... F>
void add_kernels(std::vector<Kernel>& kernels, functions::List<F...>) {
  (kernels.push_back({F::op,
                      k_kernel_name<F>.data(),
                      executable,
                      prepare_function<F>,
                      F::predicate ? 0U : (1U << F::arity) - 1}),
   ...);
}

}  // namespace

std::vector<Kernel> elementwise_kernels() {
  std::vector<Kernel> kernels;
  add_kernels(kernels, functions::UnaryFunctions{});
  add_kernels(kernels, functions::BinaryFunctions{});
  add_kernels(kernels, functions::TernaryFunctions{});
  return kernels;
}

}  // namespace halfstep::backend::cpu
