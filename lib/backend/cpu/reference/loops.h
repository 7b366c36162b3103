#pragma once
// Loops shared by several reference kernels.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "backend/kernel.h"
#include "core/dispatch.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu {

/// A loop over fewer elements stays on one thread.
constexpr std::int64_t k_grain = 1 << 14;

/// Yes when every input and output has a dtype that halfstep computes with.
Accepts executable(const NodeView& node, const Capabilities& capabilities);

/// The kernel's name of a scalar function or update rule, with a terminating zero: "reference/elu"
/// for the op Elu, "reference/keras_rms_prop" for KerasRMSProp.
template <class F>
constexpr auto k_kernel_name = [] {
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  std::array<char, 64> text{};
  std::size_t n = 0;
  for (const char c : std::string_view("reference/")) text[n++] = c;
  for (const char* c = F::op; *c != 0; ++c) {
    const bool begins = upper(*c) && c != F::op && !(upper(c[-1]) && (upper(c[1]) || c[1] == 0));
    if (begins) text[n++] = '_';
    text[n++] = upper(*c) ? static_cast<char>(*c - 'A' + 'a') : *c;
  }
  return text;
}();

/// An element in its compute type, and back.
template <class T>
Compute<T> load(T x) {
  return static_cast<Compute<T>>(x);
}
template <class T, class C>
T store(C x) {
  return static_cast<T>(static_cast<Compute<T>>(x));
}

/// The accumulator type of sums of T: double for floating T, int64 otherwise.
template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
template <class T>
Sum<T> load_sum(T x) {
  return static_cast<Sum<T>>(static_cast<Compute<T>>(x));
}

/// f(Type<T>, Type<U>) for the storage type T of `values` and the type U, float or double, of
/// `sums`.
template <class F>
Prepared dispatch_with_sums(DType values, DType sums, F&& f) {
  return dispatch_floating(values, [&]<class T>(Type<T> type) {
    return sums == DType::float64 ? f(type, Type<double>{}) : f(type, Type<float>{});
  });
}

/// Rows for each part of a parallel loop, where a part is worth a thread from `work` operations on
/// and a row takes `row_work` of them.
constexpr std::int64_t rows_per_part(std::int64_t work, std::int64_t row_work) {
  return std::max<std::int64_t>(1, work / std::max<std::int64_t>(1, row_work));
}

/// Calls body(i, offsets) for the elements [begin, end) of `shape` in row-major order, with one
/// offset per set of strides.
template <std::size_t N, class F>
void walk(const Shape& shape,
          const std::array<Strides, N>& strides,
          std::int64_t begin,
          std::int64_t end,
          F&& body) {
  std::array<std::int64_t, Shape::k_max_rank> at{};
  std::array<std::int64_t, N> offsets{};
  std::int64_t rest = begin;
  for (std::size_t axis = shape.rank(); axis-- > 0 && begin < end;) {
    at[axis] = rest % shape[axis];
    rest /= shape[axis];
    for (std::size_t n = 0; n < N; ++n) offsets[n] += at[axis] * strides[n][axis];
  }
  for (std::int64_t i = begin; i < end; ++i) {
    body(i, std::as_const(offsets));
    for (std::size_t axis = shape.rank(); axis-- > 0;) {
      for (std::size_t n = 0; n < N; ++n) offsets[n] += strides[n][axis];
      if (++at[axis] < shape[axis]) break;
      for (std::size_t n = 0; n < N; ++n) offsets[n] -= shape[axis] * strides[n][axis];
      at[axis] = 0;
    }
  }
}

}  // namespace halfstep::backend::cpu
