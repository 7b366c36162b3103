#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/functions/lists.h"

namespace halfstep::backend::cuda::kernels {
namespace {

using functions::Domain;
using functions::Filter;
using functions::List;

/// A function by another name has no kernels of its own.
template <class F>
struct Formula {
  using type = F;
};
template <>
struct Formula<functions::AddV2> {
  using type = functions::Add;
};

template <class F, class... G>
constexpr bool is_one_of(List<G...>) {
  return (std::is_same_v<F, G> || ...);
}

/// The position of F in a list that has it.
template <class F, class... G>
constexpr int index_in(List<G...>) {
  int index = 0;
  bool found = false;
  ((found = found || std::is_same_v<F, G>, index += found ? 0 : 1), ...);
  return index;
}

// Every kernel is compiled for each dtype and GPU, so that not every function has its own.

/// The most frequent functions of training have kernels of their own, also to broadcast.
using Frequent = List<functions::Add, functions::Mul, functions::Sub>;
/// These share the kernels of AnyFunction also where nothing is broadcast.
using Rare = List<functions::DivNoNan,
                  functions::FloorDiv,
                  functions::Pow,
                  functions::Relu6Grad,
                  functions::ReciprocalGrad,
                  functions::RsqrtGrad,
                  functions::SeluGrad,
                  functions::SoftplusGrad,
                  functions::SoftsignGrad,
                  functions::SqrtGrad>;

template <class F>
struct Distinct : std::is_same<F, typename Formula<F>::type> {};
template <class F>
struct OfBooleans {
  static constexpr bool value = F::domain == Domain::boolean || F::domain == Domain::any;
};
template <class F>
struct OfIntegers {
  static constexpr bool value = F::domain == Domain::number && !F::predicate;
};
template <class F>
struct Broadcasts {
  static constexpr bool value =
      F::domain != Domain::boolean && !F::predicate && !is_one_of<F>(Frequent{});
};
template <class F>
struct IsComparison {
  static constexpr bool value = F::domain != Domain::boolean && F::predicate;
};
template <template <class> class Condition>
using FunctionsWhere = Filter<Condition, Filter<Distinct, functions::BinaryFunctions>>;

/// One of several functions, selected at run time per launch.
template <class R, class C, class L>
struct AnyFunction;
template <class R, class C, class... F>
struct AnyFunction<R, C, List<F...>> {
  int chosen;  ///< index in the list
  C attribute;
  __device__ R operator()(C a, C b) const {
    R y{};
    int index = 0;
    static_cast<void>(((chosen == index++ && (y = Apply<F, C>{attribute}(a, b), true)) || ...));
    return y;
  }
};

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

template <class F, class T>
void run(const Call<T>& call) {
  using C = Compute<T>;
  const C attribute = static_cast<C>(call.p.alpha);
  const auto any_of = [&]<class R, class L>(Type<R>, L) {
    return AnyFunction<R, C, L>{index_in<F>(L{}), attribute};
  };
  if constexpr (std::is_same_v<T, bool>) {
    call.template broadcast<bool>(any_of(Type<bool>{}, FunctionsWhere<OfBooleans>{}));
  } else if constexpr (F::predicate) {
    call.template any<bool>(any_of(Type<bool>{}, FunctionsWhere<IsComparison>{}));
  } else if constexpr (std::is_integral_v<T>) {
    call.template broadcast<T>(any_of(Type<C>{}, FunctionsWhere<OfIntegers>{}));
  } else if constexpr (is_one_of<F>(Frequent{})) {
    call.template any<T>(Apply<F, C>{attribute});
  } else {
    if constexpr (!is_one_of<F>(Rare{})) {
      if (call.walk.rank <= 1) return call.template dense<T>(Apply<F, C>{attribute});
    }
    call.template broadcast<T>(any_of(Type<C>{}, FunctionsWhere<Broadcasts>{}));
  }
}

template <class F>
void binary(Stream stream, const BinaryParams& p) {
  dispatch_domain<F::domain>(p.dtype, [&]<class T>(Type<T>) { run<F>(Call<T>(stream, p)); });
}

template <class... F>
Binary find(std::string_view op, List<F...>) {
  Binary found = nullptr;
  ((op == F::op ? void(found = binary<typename Formula<F>::type>) : void()), ...);
  return found;
}

}  // namespace

Binary binary_of(std::string_view op) { return find(op, functions::BinaryFunctions{}); }

}  // namespace halfstep::backend::cuda::kernels
