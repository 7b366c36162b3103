#include "backend/cuda/kernels/update.h"

#include <cmath>
#include <utility>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"
#include "backend/cuda/kernels/device/share.h"

namespace halfstep::backend::cuda::kernels {
namespace {

template <class T>
__device__ inline Compute<T> number(const void* p) {
  return p == nullptr ? Compute<T>(0) : load(*static_cast<const T*>(p));
}

template <class T>
__device__ inline UpdateScalars<Compute<T>> load_scalars(const UpdateScalars<const void*>& p) {
  return {.rate = number<T>(p.rate),
          .momentum = number<T>(p.momentum),
          .rho = number<T>(p.rho),
          .beta1_power = number<T>(p.beta1_power),
          .beta2_power = number<T>(p.beta2_power),
          .beta1 = number<T>(p.beta1),
          .beta2 = number<T>(p.beta2),
          .epsilon = number<T>(p.epsilon),
          .weight_decay = number<T>(p.weight_decay),
          .decay = number<T>(p.decay),
          .unscale = p.unscale == nullptr ? Compute<T>(1) : number<T>(p.unscale)};
}

// The update rules: operator()(gradient, weight, slots) changes the last two. prepare() runs once
// per thread.

template <class C>
struct Rule {
  UpdateScalars<C> numbers = {};
  const std::int64_t* updates = nullptr;
  bool nesterov = false, update_slots = true;

  __device__ void prepare() {}
};

template <class C>
struct GradientDescent : Rule<C> {
  static constexpr int k_slots = 0;
  __device__ void operator()(C g, C& w, C*) const { w -= this->numbers.rate * g; }
};

template <class C>
struct Momentum : Rule<C> {
  static constexpr int k_slots = 1;  ///< accum
  __device__ void operator()(C g, C& w, C* s) const {
    s[0] = this->numbers.momentum * s[0] - this->numbers.rate * g;
    w += this->nesterov ? this->numbers.momentum * s[0] - this->numbers.rate * g : s[0];
  }
};

template <class C>
struct KerasRmsProp : Rule<C> {
  static constexpr int k_slots = 1;  ///< ms
  __device__ void operator()(C g, C& w, C* s) const {
    const auto& n = this->numbers;
    s[0] = n.rho * s[0] + (C(1) - n.rho) * (g * g);
    w -= n.rate * g / std::sqrt(s[0] + n.epsilon);
  }
};

template <class C>
struct RmsProp : Rule<C> {
  static constexpr int k_slots = 2;  ///< ms, mom
  __device__ void operator()(C g, C& w, C* s) const {
    const auto& n = this->numbers;
    s[0] = n.rho * s[0] + (C(1) - n.rho) * (g * g);
    s[1] = n.momentum * s[1] + n.rate * g / std::sqrt(s[0] + n.epsilon);
    w -= s[1];
  }
};

template <class C>
struct CenteredRmsProp : Rule<C> {
  static constexpr int k_slots = 3;  ///< mg, ms, mom
  __device__ void operator()(C g, C& w, C* s) const {
    const auto& n = this->numbers;
    s[0] = n.rho * s[0] + (C(1) - n.rho) * g;
    s[1] = n.rho * s[1] + (C(1) - n.rho) * (g * g);
    // Rounding can make the variance negative, where the plain formula would give NaN: clamped to
    // 0.
    const C variance = s[1] - s[0] * s[0];
    const C root = std::sqrt((variance < 0 ? C(0) : variance) + n.epsilon);
    s[2] = n.momentum * s[2] + n.rate * g / root;
    w -= s[2];
  }
};

template <class C>
struct Adam : Rule<C> {
  static constexpr int k_slots = 2;  ///< m, v
  C step = 0;
  __device__ void prepare() {
    auto& n = this->numbers;
    if (this->updates != nullptr) {
      const C number = static_cast<C>(*this->updates) + C(1);
      n.beta1_power = std::pow(n.beta1, number);
      n.beta2_power = std::pow(n.beta2, number);
    }
    step = n.rate * std::sqrt(C(1) - n.beta2_power) / (C(1) - n.beta1_power);
  }
  __device__ void operator()(C g, C& w, C* s) const {
    const auto& n = this->numbers;
    s[0] += (g - s[0]) * (C(1) - n.beta1);
    s[1] += (g * g - s[1]) * (C(1) - n.beta2);
    const C m = this->nesterov ? s[0] * n.beta1 + (C(1) - n.beta1) * g : s[0];
    w -= step * m / (std::sqrt(s[1]) + n.epsilon);
  }
};

template <class C>
struct AdamW : Adam<C> {
  __device__ void operator()(C g, C& w, C* s) const {
    w -= w * this->numbers.weight_decay * this->numbers.rate;
    Adam<C>::operator()(g, w, s);
  }
};

template <class C>
struct Adagrad : Rule<C> {
  static constexpr int k_slots = 1;  ///< accum
  __device__ void operator()(C g, C& w, C* s) const {
    const auto& n = this->numbers;
    if (this->update_slots) s[0] += g * g;
    w -= n.rate * g / std::sqrt(s[0] + n.epsilon);
  }
};

/// A tensor of a launch, with the first of its blocks.
template <class T>
struct Entry {
  T* variable;
  T* slots[3];
  const void* gradient;
  void* copy;
  std::int64_t elements;
  std::int32_t columns, padded_columns;  ///< 0: rows without padding
  std::int32_t first_block;
  DType gradient_dtype, copy_dtype;
  bool packed;  ///< all addresses are aligned for packs
  bool decayed;
};

/// The tensors of one launch, whose arguments may have 4 KiB.
template <class T>
struct Entries {
  static constexpr int k_max = 48;

  Entry<T> entry[k_max];
  int count;
};

/// By which gradients are multiplied, and twice the variable in those of an L2 penalty; the part of
/// the variable that is taken off.
template <class C>
struct Factors {
  C unscale, decay, weight_decay;
};

/// The elements from i * width on, with a gradient of dtype G.
template <int width, class G, class T, class R>
__device__ inline void update_at(const R& rule,
                                 const Entry<T>& t,
                                 Factors<Compute<T>> factors,
                                 std::int64_t i) {
  using C = Compute<T>;
  // Of gradient and copy.
  const std::int64_t at =
      width > 1 || t.columns == 0 ? i * width : i / t.columns * t.padded_columns + i % t.columns;
  const auto g = load_pack<G, width>(static_cast<const G*>(t.gradient) + at);
  auto w = load_pack<T, width>(t.variable + i * width);
  Pack<T, width> slots[3] = {};
  for (int k = 0; k < R::k_slots; ++k) slots[k] = load_pack<T, width>(t.slots[k] + i * width);
  for (int e = 0; e < width; ++e) {
    C weight = load(w.element[e]);
    C slot[3] = {};
    for (int k = 0; k < R::k_slots; ++k) slot[k] = load(slots[k].element[e]);
    C gradient = static_cast<C>(load(g.element[e]));
    if (t.decayed) gradient += factors.decay * (weight * C(2));
    if (factors.weight_decay != C(0)) weight -= weight * factors.weight_decay;
    rule(gradient * factors.unscale, weight, slot);
    w.element[e] = store<T>(weight);
    for (int k = 0; k < R::k_slots; ++k) slots[k].element[e] = store<T>(slot[k]);
  }
  store_pack<T, width>(t.variable + i * width, w);
  for (int k = 0; k < R::k_slots; ++k) store_pack<T, width>(t.slots[k] + i * width, slots[k]);
  const auto copy_as = [&]<class Copy>(Type<Copy>) {
    Pack<Copy, width> copy;
    for (int e = 0; e < width; ++e) copy.element[e] = store<Copy>(load(w.element[e]));
    store_pack<Copy, width>(static_cast<Copy*>(t.copy) + at, copy);
  };
  if (t.copy == nullptr) return;
  if (t.copy_dtype == DType::float16) {
    copy_as(Type<float16>{});
  } else {
    copy_as(Type<bfloat16>{});
  }
}

/// A tensor by all of its blocks: `first` of `step` threads.
template <class G, class T, class R>
__device__ inline void update_tensor(const R& rule,
                                     const Entry<T>& t,
                                     Factors<Compute<T>> factors,
                                     std::int64_t first,
                                     std::int64_t step) {
  constexpr int k_width = k_pack_width<T>;
  const std::int64_t packs = t.packed ? t.elements / k_width : 0;
  for (std::int64_t i = first; i < packs; i += step) {
    update_at<k_width, G>(rule, t, factors, i);
  }
  for (std::int64_t i = packs * k_width + first; i < t.elements; i += step) {
    update_at<1, G>(rule, t, factors, i);
  }
}

template <class T, class R>
__global__ void update_kernel(R rule,
                              UpdateScalars<const void*> scalars,
                              bool reciprocal,
                              double decay_by_rate,
                              Entries<T> tensors,
                              const bool* ok) {
  if (ok != nullptr && !*ok) return;
  rule.numbers = load_scalars<T>(scalars);
  rule.prepare();
  const auto& given = rule.numbers;
  const Factors<Compute<T>> factors{reciprocal ? Compute<T>(1) / given.unscale : given.unscale,
                                    given.decay,
                                    static_cast<Compute<T>>(decay_by_rate) * given.rate};
  const auto [n, first, step] = share_of(tensors.entry, tensors.count);
  const Entry<T>& t = tensors.entry[n];
  if constexpr (std::is_same_v<T, float>) {
    if (t.gradient_dtype == DType::float16) {
      return update_tensor<float16>(rule, t, factors, first, step);
    }
    if (t.gradient_dtype == DType::bfloat16) {
      return update_tensor<bfloat16>(rule, t, factors, first, step);
    }
  }
  update_tensor<T>(rule, t, factors, first, step);
}

template <class T>
Entry<T> entry_of(const UpdatedTensor& from, std::size_t slots) {
  constexpr std::size_t k_width = k_pack_width<T>;
  Entry<T> to{.variable = static_cast<T*>(from.variable),
              .slots = {},
              .gradient = from.gradient,
              .copy = from.copy,
              .elements = from.elements,
              .columns = 0,
              .padded_columns = 0,
              .first_block = 0,
              .gradient_dtype = from.gradient_dtype,
              .copy_dtype = from.copy_dtype,
              .packed = aligned(from.variable, 16),
              .decayed = from.decayed};
  to.packed = to.packed && aligned(from.gradient, size_bytes(from.gradient_dtype) * k_width);
  to.packed = to.packed && aligned(from.copy, size_bytes(from.copy_dtype) * k_width);
  for (std::size_t k = 0; k < slots; ++k) {
    to.slots[k] = static_cast<T*>(from.slots[k]);
    to.packed = to.packed && aligned(from.slots[k], 16);
  }
  if (from.columns != from.padded_columns) {
    to.columns = static_cast<std::int32_t>(from.columns);
    to.padded_columns = static_cast<std::int32_t>(from.padded_columns);
    to.packed = false;
  }
  return to;
}

template <class T, class R>
void run(Stream stream, const UpdateParams& p) {
  R rule;
  rule.updates = p.updates;
  rule.nesterov = p.nesterov;
  rule.update_slots = p.update_slots;
  Entries<T> entries{};
  Grid grid{.blocks = 0};
  const auto flush = [&] {
    launch(update_kernel<T, R>,
           grid,
           stream,
           rule,
           p.scalars,
           p.reciprocal,
           p.decay_by_rate,
           entries,
           p.ok);
    entries.count = 0;
    grid.blocks = 0;
  };
  for (const UpdatedTensor& tensor : p.tensors) {
    if (tensor.elements == 0) continue;
    Entry<T>& entry = entries.entry[entries.count++];
    entry = entry_of<T>(tensor, static_cast<std::size_t>(R::k_slots));
    entry.first_block = static_cast<std::int32_t>(grid.blocks);
    const int width = entry.packed ? k_pack_width<T> : 1;
    grid.blocks += grid_of((tensor.elements + width - 1) / width, grid.threads).blocks;
    if (entries.count == Entries<T>::k_max) flush();
  }
  if (entries.count > 0) flush();
}

template <template <class> class R>
void update(Stream stream, const UpdateParams& p) {
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) { run<T, R<Compute<T>>>(stream, p); });
}

constexpr std::array<std::pair<std::string_view, Update>, 8> k_updates{{
    {"ResourceApplyAdagradV2", update<Adagrad>},
    {"ResourceApplyAdam", update<Adam>},
    {"ResourceApplyAdamW", update<AdamW>},
    {"ResourceApplyCenteredRMSProp", update<CenteredRmsProp>},
    {"ResourceApplyGradientDescent", update<GradientDescent>},
    {"ResourceApplyKerasMomentum", update<Momentum>},
    {"ResourceApplyKerasRMSProp", update<KerasRmsProp>},
    {"ResourceApplyRMSProp", update<RmsProp>},
}};

}  // namespace

Update update_of(std::string_view op) {
  for (const auto& [name, rule] : k_updates) {
    if (name == op) return rule;
  }
  return nullptr;
}

}  // namespace halfstep::backend::cuda::kernels
