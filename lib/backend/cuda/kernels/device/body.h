#pragma once
// The ops of a FusedElementwise's body on a few elements of a thread.

#include <optional>
#include <string_view>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"
#include "backend/cuda/kernels/fused.h"
#include "backend/functions/body.h"
#include "core/philox.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cuda::kernels {

/// Elements of a thread: those of two counters of random numbers, 16 bytes of float16. They share
/// the decoding of each op.
inline constexpr int k_body_width = 8;

/// The operand is converted when it is loaded, and rounded when it is stored.
struct Cast : functions::BroadcastTo {
  static constexpr const char* op = "Cast";
};
using Functions = functions::Join<functions::List<Cast>, functions::BodyFunctions>;

template <class... F>
constexpr int count_of(functions::List<F...>) {
  return static_cast<int>(sizeof...(F));
}
/// The number of the op that is no function of elements.
constexpr int k_random = count_of(Functions{});
static_assert(k_random < 255);

template <int n, class L>
struct Nth;
template <int n, class First, class... F>
struct Nth<n, functions::List<First, F...>> : Nth<n - 1, functions::List<F...>> {};
template <class First, class... F>
struct Nth<0, functions::List<First, F...>> {
  using type = First;
};

/// y = the function `chosen`, in [low, high), of the operands. A chain of comparisons would be ten
/// times as long as this search, which takes the same branches in all threads.
template <int low, int high>
__device__ inline void apply_function(
    int chosen, float alpha, const float* x0, const float* x1, const float* x2, float* y) {
  if constexpr (high - low == 1) {
    using F = typename Nth<low, Functions>::type;
    for (int i = 0; i < k_body_width; ++i) {
      const Apply<F, float> f{alpha};
      if constexpr (F::arity == 1) {
        y[i] = static_cast<float>(f(x0[i]));
      } else if constexpr (F::arity == 2) {
        y[i] = static_cast<float>(f(x0[i], x1[i]));
      } else {
        y[i] = static_cast<float>(f(x0[i], x1[i], x2[i]));
      }
    }
  } else {
    constexpr int k_middle = (low + high) / 2;
    if (chosen < k_middle) {
      apply_function<low, k_middle>(chosen, alpha, x0, x1, x2, y);
    } else {
      apply_function<k_middle, high>(chosen, alpha, x0, x1, x2, y);
    }
  }
}

/// Calls f with the storage type of a tensor of a body.
template <class F>
__device__ inline void with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float16:
      return f(Type<float16>{});
    case DType::bfloat16:
      return f(Type<bfloat16>{});
    case DType::boolean:
      return f(Type<bool>{});
    case DType::uint8:
      return f(Type<std::uint8_t>{});
    case DType::int32:
      return f(Type<std::int32_t>{});
    case DType::int64:
      return f(Type<std::int64_t>{});
    default:
      return f(Type<float>{});
  }
}

/// The values of a thread's elements, in registers.
using ThreadValues = float[k_body_width];

/// How a pack of k_body_width elements is loaded.
enum class LoadMode : std::uint8_t {
  pack,       ///< by one load
  broadcast,  ///< all are one element
  gather,     ///< one by one
};

struct Source {
  const void* data;
  DType dtype;
  LoadMode load_mode;
  bool whole;  ///< has the elements of the result: offsets need no walk
};

__device__ inline void round_to(DType dtype, ThreadValues& y) {
  if (dtype == DType::float16) {
    for (int i = 0; i < k_body_width; ++i) y[i] = to_float(to_float16(y[i]));
  } else if (dtype == DType::bfloat16) {
    for (int i = 0; i < k_body_width; ++i) y[i] = to_float(to_bfloat16(y[i]));
  }
}

/// Random numbers in [0, 1) for the elements from `first` on; `ordinal` is that of the batch.
__device__ inline void uniform(const void* ordinal,
                               std::uint64_t seed,
                               std::uint64_t stream,
                               std::int64_t first,
                               ThreadValues& y) {
  constexpr std::size_t k_words = 4;
  const std::uint64_t key =
      mix(stream, static_cast<std::uint64_t>(*static_cast<const std::int64_t*>(ordinal)));
  for (std::size_t j = 0; j < k_body_width / k_words; ++j) {
    const auto words = random_words(seed, key, static_cast<std::uint64_t>(first) / k_words + j);
    for (std::size_t i = 0; i < k_words; ++i) y[j * k_words + i] = to_uniform(words[i]);
  }
}

template <class... F>
constexpr std::optional<std::uint8_t> find(std::string_view op, functions::List<F...>) {
  std::uint8_t number = 0;
  const bool found = ((op == F::op || (++number, false)) || ...);
  return found ? std::optional(number) : std::nullopt;
}

template <class... F>
constexpr std::size_t arity_in(std::uint8_t function, functions::List<F...>) {
  constexpr std::array<int, sizeof...(F)> k_arities{F::arity...};
  return static_cast<std::size_t>(k_arities.at(function));
}

/// Operands of a function; random numbers have the ordinal.
constexpr std::size_t arity_of(std::uint8_t function) {
  return function == k_random ? 1 : arity_in(function, Functions{});
}

constexpr std::optional<std::uint8_t> number_of(std::string_view op) {
  if (op == graph::ops::k_random_uniform_from_ordinal) return static_cast<std::uint8_t>(k_random);
  return find(op, Functions{});
}

/// Launches the kernel that was compiled for the body, whose results are aligned to packs of
/// k_body_width elements, where all inputs are read in packs or are one element; false for others.
/// `sources` and `walks`: of the inputs.
bool launch_compiled_body(Stream stream,
                          const FusedParams& params,
                          const Source* sources,
                          const Walk<1>* walks);

}  // namespace halfstep::backend::cuda::kernels
