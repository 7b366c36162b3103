#pragma once
// Iteration of a reduction: the input elements of each output element.

#include <vector>

#include "backend/cpu/reference/loops.h"

namespace halfstep::backend::cpu {

/// The axes of an input, split into kept and reduced ones.
struct Reduction {
  Shape kept;
  Shape reduced;
  std::array<Strides, 1> kept_strides{};
  std::array<Strides, 1> reduced_strides{};
};

/// `is_reduced` has one entry per axis of `shape`.
Reduction reduction(const Shape& shape, const std::vector<bool>& is_reduced);

/// Folds the input of each output element: value = step(value, x, k) over its k-th input x in
/// row-major order, starting at `first`; then done(output index, value).
template <class T, class V, class Step, class Done>
void fold(const Reduction& r, const T* x, V first, const Step& step, const Done& done) {
  const std::int64_t terms = r.reduced.elements();
  const std::int64_t grain = k_grain / (terms + 1) + 1;
  parallel_for(r.kept.elements(), grain, [&](std::int64_t begin, std::int64_t end) {
    walk(r.kept, r.kept_strides, begin, end, [&](std::int64_t i, const auto& base) {
      V value = first;
      walk(r.reduced, r.reduced_strides, 0, terms, [&](std::int64_t k, const auto& at) {
        value = step(value, x[base[0] + at[0]], k);
      });
      done(i, value);
    });
  });
}

}  // namespace halfstep::backend::cpu
