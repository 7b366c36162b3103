#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/functions/lists.h"

namespace halfstep::backend::cuda::kernels {
namespace {

template <class F>
void unary(Stream stream, const UnaryParams& p) {
  dispatch_domain<F::domain>(p.dtype, [&]<class T>(Type<T>) {
    using Result = std::conditional_t<F::predicate, bool, T>;
    using Applied = Apply<F, Compute<T>>;
    const Sources<T, 1> from{{static_cast<const T*>(p.x)}};
    map<T, Result, 1, Applied>(stream,
                               Applied{static_cast<Compute<T>>(p.alpha)},
                               from,
                               static_cast<Result*>(p.y),
                               p.elements);
  });
}

template <class... F>
Unary find(std::string_view op, functions::List<F...>) {
  Unary found = nullptr;
  ((op == F::op ? void(found = unary<F>) : void()), ...);
  return found;
}

}  // namespace

Unary unary_of(std::string_view op) { return find(op, functions::UnaryFunctions{}); }

}  // namespace halfstep::backend::cuda::kernels
