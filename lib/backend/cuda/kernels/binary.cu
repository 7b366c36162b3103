#include <array>
#include <utility>

#include "backend/cuda/kernels/device/binary_functions.h"
#include "backend/cuda/kernels/device/constants.h"
#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"
#include "backend/cuda/kernels/elementwise.h"

namespace halfstep::backend::cuda::kernels {
namespace {

constexpr std::array<std::pair<std::string_view, Binary>, 31> k_functions{{
    {"Add", Binary::add},
    {"AddV2", Binary::add},
    {"DivNoNan", Binary::div_no_nan},
    {"EluGrad", Binary::elu_grad},
    {"Equal", Binary::equal},
    {"FloorDiv", Binary::floor_div},
    {"Greater", Binary::greater},
    {"GreaterEqual", Binary::greater_equal},
    {"LeakyReluGrad", Binary::leaky_relu_grad},
    {"Less", Binary::less},
    {"LessEqual", Binary::less_equal},
    {"LogicalAnd", Binary::logical_and},
    {"LogicalOr", Binary::logical_or},
    {"Maximum", Binary::maximum},
    {"Minimum", Binary::minimum},
    {"Mul", Binary::mul},
    {"NotEqual", Binary::not_equal},
    {"Pow", Binary::pow},
    {"RealDiv", Binary::real_div},
    {"ReciprocalGrad", Binary::reciprocal_grad},
    {"Relu6Grad", Binary::relu6_grad},
    {"ReluGrad", Binary::relu_grad},
    {"RsqrtGrad", Binary::rsqrt_grad},
    {"SeluGrad", Binary::selu_grad},
    {"SigmoidGrad", Binary::sigmoid_grad},
    {"SoftplusGrad", Binary::softplus_grad},
    {"SoftsignGrad", Binary::softsign_grad},
    {"SqrtGrad", Binary::sqrt_grad},
    {"SquaredDifference", Binary::squared_difference},
    {"Sub", Binary::sub},
    {"TanhGrad", Binary::tanh_grad},
}};

/// A function selected at compile time.
template <Binary function, class C>
struct Function {
  C alpha;
  __device__ C operator()(C a, C b) const {
    if constexpr (std::is_floating_point_v<C>) {
      return floating_function<function>(a, b, alpha);
    } else {
      return number_function<function>(a, b);
    }
  }
};

/// One of several functions, selected at run time per launch: fewer kernels for rare functions.
template <class C, Binary... functions>
struct AnyFunction {
  Binary chosen;
  C alpha;
  __device__ C operator()(C a, C b) const {
    C y{};
    ((chosen == functions ? void(y = Function<functions, C>{alpha}(a, b)) : void()), ...);
    return y;
  }
};

template <class C>
struct Question {
  Binary chosen;
  __device__ bool operator()(C a, C b) const {
    switch (chosen) {
      case Binary::equal:
        return a == b;
      case Binary::not_equal:
        return a != b;
      case Binary::greater:
        return a > b;
      case Binary::greater_equal:
        return a >= b;
      case Binary::less:
        return a < b;
      default:
        return a <= b;
    }
  }
};

struct BooleanFunction {
  Binary chosen;
  __device__ bool operator()(bool a, bool b) const {
    switch (chosen) {
      case Binary::logical_and:
        return a && b;
      case Binary::logical_or:
        return a || b;
      case Binary::equal:
        return a == b;
      default:
        return a != b;
    }
  }
};

bool is_question(Binary function) {
  switch (function) {
    case Binary::equal:
    case Binary::not_equal:
    case Binary::greater:
    case Binary::greater_equal:
    case Binary::less:
    case Binary::less_equal:
      return true;
    default:
      return false;
  }
}

bool is_boolean(Binary function) {
  return function == Binary::logical_and || function == Binary::logical_or ||
         function == Binary::equal || function == Binary::not_equal;
}

/// The arguments of a launch with its operands as T.
template <class T>
struct Call {
  Stream stream;
  const BinaryParams& p;
  Walk<2> walk;
  Sources<T, 2> from;

  Call(Stream s, const BinaryParams& params)
      : stream(s),
        p(params),
        walk(broadcast_walk<2>({params.a_shape, params.b_shape}, params.shape)),
        from{{static_cast<const T*>(params.a), static_cast<const T*>(params.b)}} {}

  template <class R, class F>
  void any(F f) const {
    map_any<T, R, 2, F>(stream, f, from, static_cast<R*>(p.y), walk);
  }
  template <class R, class F>
  void broadcast(F f) const {
    map_broadcast<T, R, 2, F>(stream, f, from, static_cast<R*>(p.y), walk);
  }
  template <class R, class F>
  void dense(F f) const {
    map<T, R, 2, F>(stream, f, from, static_cast<R*>(p.y), walk.elements, scalars_of(walk));
  }
};

/// The most frequent functions of training have dedicated kernels.
template <class T>
bool run_frequent(const Call<T>& call) {
  using C = Compute<T>;
  const C alpha = static_cast<C>(call.p.alpha);
  if (dispatch_value<Binary::add, Binary::mul, Binary::sub>(
          call.p.function, [&]<Binary function>(Constant<function>) {
            call.template any<T>(Function<function, C>{alpha});
          })) {
    return true;
  }
  if (call.walk.rank > 1) return false;
  return dispatch_value<Binary::elu_grad,
                        Binary::leaky_relu_grad,
                        Binary::maximum,
                        Binary::minimum,
                        Binary::real_div,
                        Binary::relu_grad,
                        Binary::sigmoid_grad,
                        Binary::squared_difference,
                        Binary::tanh_grad>(call.p.function,
                                           [&]<Binary function>(Constant<function>) {
                                             call.template dense<T>(Function<function, C>{alpha});
                                           });
}

template <class T>
void run_floating(const Call<T>& call) {
  using C = Compute<T>;
  using Others = AnyFunction<C,
                             Binary::div_no_nan,
                             Binary::elu_grad,
                             Binary::floor_div,
                             Binary::leaky_relu_grad,
                             Binary::maximum,
                             Binary::minimum,
                             Binary::pow,
                             Binary::real_div,
                             Binary::reciprocal_grad,
                             Binary::relu6_grad,
                             Binary::relu_grad,
                             Binary::rsqrt_grad,
                             Binary::selu_grad,
                             Binary::sigmoid_grad,
                             Binary::softplus_grad,
                             Binary::softsign_grad,
                             Binary::sqrt_grad,
                             Binary::squared_difference,
                             Binary::tanh_grad>;
  if (run_frequent(call)) return;
  call.template broadcast<T>(Others{call.p.function, static_cast<C>(call.p.alpha)});
}

template <Binary... functions>
struct Functions {};

template <class T>
bool run_integer(const Call<T>& call) {
  const auto run = [&]<Binary... functions>(Functions<functions...>) {
    if (((call.p.function != functions) && ...)) return false;
    call.template broadcast<T>(AnyFunction<T, functions...>{call.p.function, T{}});
    return true;
  };
  return run(Functions<Binary::add,
                       Binary::floor_div,
                       Binary::maximum,
                       Binary::minimum,
                       Binary::mul,
                       Binary::pow,
                       Binary::real_div,
                       Binary::relu6_grad,
                       Binary::relu_grad,
                       Binary::squared_difference,
                       Binary::sub>{});
}

}  // namespace

std::optional<Binary> binary_of(std::string_view op) {
  for (const auto& [name, function] : k_functions) {
    if (name == op) return function;
  }
  return std::nullopt;
}

void binary(Stream stream, const BinaryParams& p) {
  const bool asks = is_question(p.function);
  if (p.dtype == DType::boolean) {
    if (!is_boolean(p.function)) refuse(p.dtype);
    return Call<bool>(stream, p).broadcast<bool>(BooleanFunction{p.function});
  }
  if (is_boolean(p.function) && !asks) refuse(p.dtype);
  dispatch_number(p.dtype, [&]<class T>(Type<T>) {
    const Call<T> call(stream, p);
    if (asks) return call.template any<bool>(Question<Compute<T>>{p.function});
    if constexpr (std::is_integral_v<T>) {
      if (!run_integer(call)) refuse(p.dtype);
    } else {
      run_floating(call);
    }
  });
}

}  // namespace halfstep::backend::cuda::kernels
