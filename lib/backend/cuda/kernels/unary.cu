#include <array>
#include <utility>

#include "backend/cuda/kernels/device/constants.h"
#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"
#include "backend/cuda/kernels/device/unary_functions.h"
#include "backend/cuda/kernels/elementwise.h"

namespace halfstep::backend::cuda::kernels {
namespace {

constexpr std::array<std::pair<std::string_view, Unary>, 31> k_functions{{
    {"Abs", Unary::abs},
    {"Ceil", Unary::ceil},
    {"Elu", Unary::elu},
    {"Erf", Unary::erf},
    {"Erfc", Unary::erfc},
    {"Exp", Unary::exp},
    {"Expm1", Unary::expm1},
    {"Floor", Unary::floor},
    {"IsFinite", Unary::is_finite},
    {"IsInf", Unary::is_inf},
    {"IsNan", Unary::is_nan},
    {"LeakyRelu", Unary::leaky_relu},
    {"Log", Unary::log},
    {"Log1p", Unary::log1p},
    {"LogicalNot", Unary::logical_not},
    {"Neg", Unary::neg},
    {"OnesLike", Unary::ones_like},
    {"Reciprocal", Unary::reciprocal},
    {"Relu", Unary::relu},
    {"Relu6", Unary::relu6},
    {"Round", Unary::round},
    {"Rsqrt", Unary::rsqrt},
    {"Selu", Unary::selu},
    {"Sigmoid", Unary::sigmoid},
    {"Sign", Unary::sign},
    {"Softplus", Unary::softplus},
    {"Softsign", Unary::softsign},
    {"Sqrt", Unary::sqrt},
    {"Square", Unary::square},
    {"Tanh", Unary::tanh},
    {"ZerosLike", Unary::zeros_like},
}};

template <Unary function, class C>
struct Function {
  C alpha;
  __device__ C operator()(C x) const {
    if constexpr (std::is_floating_point_v<C>) {
      return floating_function<function>(x, alpha);
    } else {
      return number_function<function>(x);
    }
  }
};

template <Unary function>
struct Question {
  template <class C>
  __device__ bool operator()(C x) const {
    if constexpr (function == Unary::is_finite) {
      return std::isfinite(x);
    } else if constexpr (function == Unary::is_inf) {
      return std::isinf(x);
    } else {
      return std::isnan(x);
    }
  }
};

template <bool value>
struct BooleanFunction {
  bool flips;
  __device__ bool operator()(bool x) const { return flips ? !x : value; }
};

template <class T, class R, class F>
void run(Stream stream, const UnaryParams& p, F f) {
  const Sources<T, 1> from{{static_cast<const T*>(p.x)}};
  map<T, R, 1, F>(stream, f, from, static_cast<R*>(p.y), p.elements);
}

template <class T, Unary... functions>
bool run_functions(Stream stream, const UnaryParams& p) {
  using C = Compute<T>;
  return dispatch_value<functions...>(p.function, [&]<Unary function>(Constant<function>) {
    run<T, T>(stream, p, Function<function, C>{static_cast<C>(p.alpha)});
  });
}

template <class T>
bool run_number(Stream stream, const UnaryParams& p) {
  return run_functions<T,
                       Unary::abs,
                       Unary::neg,
                       Unary::ones_like,
                       Unary::reciprocal,
                       Unary::relu,
                       Unary::relu6,
                       Unary::round,
                       Unary::sign,
                       Unary::square,
                       Unary::zeros_like>(stream, p);
}

template <class T>
bool run_floating(Stream stream, const UnaryParams& p) {
  if (run_number<T>(stream, p)) return true;
  if (run_functions<T,
                    Unary::ceil,
                    Unary::elu,
                    Unary::erf,
                    Unary::erfc,
                    Unary::exp,
                    Unary::expm1,
                    Unary::floor,
                    Unary::leaky_relu,
                    Unary::log,
                    Unary::log1p,
                    Unary::rsqrt,
                    Unary::selu,
                    Unary::sigmoid,
                    Unary::softplus,
                    Unary::softsign,
                    Unary::sqrt,
                    Unary::tanh>(stream, p)) {
    return true;
  }
  return dispatch_value<Unary::is_finite, Unary::is_inf, Unary::is_nan>(
      p.function,
      [&]<Unary function>(Constant<function>) { run<T, bool>(stream, p, Question<function>{}); });
}

bool run_boolean(Stream stream, const UnaryParams& p) {
  switch (p.function) {
    case Unary::logical_not:
      run<bool, bool>(stream, p, BooleanFunction<false>{true});
      return true;
    case Unary::ones_like:
      run<bool, bool>(stream, p, BooleanFunction<true>{false});
      return true;
    case Unary::zeros_like:
      run<bool, bool>(stream, p, BooleanFunction<false>{false});
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<Unary> unary_of(std::string_view op) {
  for (const auto& [name, function] : k_functions) {
    if (name == op) return function;
  }
  return std::nullopt;
}

void unary(Stream stream, const UnaryParams& p) {
  bool found = false;
  if (p.dtype == DType::boolean) {
    found = run_boolean(stream, p);
  } else if (is_floating(p.dtype)) {
    dispatch_floating(p.dtype, [&]<class T>(Type<T>) { found = run_floating<T>(stream, p); });
  } else {
    dispatch_integer(p.dtype, [&]<class T>(Type<T>) { found = run_number<T>(stream, p); });
  }
  if (!found) refuse(p.dtype);
}

}  // namespace halfstep::backend::cuda::kernels
