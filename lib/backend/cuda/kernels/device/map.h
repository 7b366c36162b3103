#pragma once
// Elementwise kernels: y[i] = f(x0[i], x1[i], ...) in Compute<T>, stored as R.

#include <array>
#include <cstdint>

#include "backend/cuda/kernels/device/element.h"
#include "backend/cuda/kernels/device/walk.h"
#include "backend/functions/function.h"
#include "backend/functions/std_math.h"

namespace halfstep::backend::cuda::kernels {

/// A scalar function in the compute type C.
template <class F, class C>
struct Apply {
  C attribute;
  template <class... X>
  __device__ auto operator()(X... x) const {
    return functions::call<F, functions::StdMath>(attribute, x...);
  }
};

template <class T, int N>
struct Sources {
  const T* x[N];
};

template <class F, class T, int N>
__device__ inline auto apply_at(const F& f, const Compute<T> (&x)[N]) {
  if constexpr (N == 1) {
    return f(x[0]);
  } else if constexpr (N == 2) {
    return f(x[0], x[1]);
  } else {
    return f(x[0], x[1], x[2]);
  }
}

/// Elements that one thread loads at once: 16 bytes.
template <class T>
constexpr int k_pack_width = 16 / static_cast<int>(sizeof(T));

/// The first `packs` * k_pack_width of `elements` are processed in packs. Bit n of `scalars`:
/// operand n is a scalar.
template <class T, class R, int N, class F>
__global__ void map_kernel(
    F f, Sources<T, N> from, R* y, std::int64_t elements, std::int64_t packs, unsigned scalars) {
  constexpr int k_width = k_pack_width<T>;
  Compute<T> x[N] = {};
  for (int n = 0; n < N; ++n) {
    if ((scalars >> n & 1U) != 0) x[n] = load(from.x[n][0]);
  }
  for (std::int64_t p = thread_of_grid(); p < packs; p += threads_of_grid()) {
    Pack<T, k_width> in[N] = {};
    Pack<R, k_width> out;
    for (int n = 0; n < N; ++n) {
      if ((scalars >> n & 1U) == 0) in[n] = load_pack<T, k_width>(from.x[n] + p * k_width);
    }
    for (int i = 0; i < k_width; ++i) {
      for (int n = 0; n < N; ++n) {
        if ((scalars >> n & 1U) == 0) x[n] = load(in[n].element[i]);
      }
      out.element[i] = store<R>(apply_at<F, T, N>(f, x));
    }
    store_pack<R, k_width>(y + p * k_width, out);
  }
  for (std::int64_t i = packs * k_width + thread_of_grid(); i < elements; i += threads_of_grid()) {
    for (int n = 0; n < N; ++n) {
      if ((scalars >> n & 1U) == 0) x[n] = load(from.x[n][i]);
    }
    y[i] = store<R>(apply_at<F, T, N>(f, x));
  }
}

template <class T, class R, int N, class F>
__global__ void broadcast_kernel(F f, Sources<T, N> from, R* y, Walk<N> walk) {
  for (std::int64_t i = thread_of_grid(); i < walk.elements; i += threads_of_grid()) {
    const auto at = walk.at(i);
    Compute<T> x[N];
    for (int n = 0; n < N; ++n) x[n] = load(from.x[n][at.of[n]]);
    y[i] = store<R>(apply_at<F, T, N>(f, x));
  }
}

inline bool aligned(const void* p, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(p) % bytes == 0;
}

/// All operands have the elements of the result, or are scalars where `scalars` says so.
template <class T, class R, int N, class F>
void map(Stream stream,
         F f,
         const Sources<T, N>& from,
         R* y,
         std::int64_t elements,
         unsigned scalars = 0) {
  constexpr int k_width = k_pack_width<T>;
  bool packed = aligned(y, alignof(Pack<R, k_width>));
  for (int n = 0; n < N; ++n)
    packed = packed && ((scalars >> n & 1U) != 0 || aligned(from.x[n], 16));
  const std::int64_t packs = packed ? elements / k_width : 0;
  const std::int64_t work = packed ? packs + elements % k_width : elements;
  launch(map_kernel<T, R, N, F>, grid_of(work), stream, f, from, y, elements, packs, scalars);
}

/// The iteration over operands that broadcast to `shape`.
template <int N>
Walk<N> broadcast_walk(const std::array<Shape, N>& shapes, const Shape& shape) {
  std::array<Strides, N> steps;
  for (std::size_t n = 0; n < N; ++n) steps[n] = broadcast_strides(shapes[n], shape);
  return {shape, steps};
}

/// Broadcast operands.
template <class T, class R, int N, class F>
void map_broadcast(Stream stream, F f, const Sources<T, N>& from, R* y, const Walk<N>& walk) {
  launch(broadcast_kernel<T, R, N, F>, grid_of(walk.elements), stream, f, from, y, walk);
}

/// Bit mask of the scalar operands, for an iteration along one axis.
template <int N>
unsigned scalars_of(const Walk<N>& walk) {
  unsigned scalars = 0;
  for (int n = 0; n < N; ++n) scalars |= walk.rank > 0 && walk.stride[n][0] == 0 ? 1U << n : 0U;
  return scalars;
}

/// Chooses the faster of the two kernels.
template <class T, class R, int N, class F>
void map_any(Stream stream, F f, const Sources<T, N>& from, R* y, const Walk<N>& walk) {
  if (walk.rank > 1) return map_broadcast<T, R, N, F>(stream, f, from, y, walk);
  map<T, R, N, F>(stream, f, from, y, walk.elements, scalars_of(walk));
}

}  // namespace halfstep::backend::cuda::kernels
