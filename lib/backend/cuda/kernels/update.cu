#include "backend/cuda/kernels/update.h"

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"
#include "backend/cuda/kernels/device/share.h"
#include "backend/functions/std_math.h"

namespace halfstep::backend::cuda::kernels {
namespace {

using functions::StdMath;
using functions::UpdateScalars;

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
          .weight_decay = number<T>(p.weight_decay)};
}

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

/// The arguments of a rule. Before it is applied, `decay` times twice the variable is added to a
/// gradient of an L2 penalty, every gradient is multiplied by `unscale`, and the share
/// `weight_decay` of the variable is taken off.
template <class C>
struct Arguments {
  UpdateScalars<C> scalars;
  bool flag;
  C unscale, decay, weight_decay;
};

/// The elements from i * width on, with a gradient of dtype G.
template <class R, int width, class G, class T>
__device__ inline void update_at(const Arguments<Compute<T>>& p,
                                 const Entry<T>& t,
                                 std::int64_t i) {
  using C = Compute<T>;
  // Of gradient and copy.
  const std::int64_t at =
      width > 1 || t.columns == 0 ? i * width : i / t.columns * t.padded_columns + i % t.columns;
  const auto g = load_pack<G, width>(static_cast<const G*>(t.gradient) + at);
  auto w = load_pack<T, width>(t.variable + i * width);
  Pack<T, width> slots[3] = {};
  for (int k = 0; k < R::slots; ++k) slots[k] = load_pack<T, width>(t.slots[k] + i * width);
  for (int e = 0; e < width; ++e) {
    C weight = load(w.element[e]);
    C slot[3] = {};
    for (int k = 0; k < R::slots; ++k) slot[k] = load(slots[k].element[e]);
    C gradient = static_cast<C>(load(g.element[e]));
    if (t.decayed) gradient += p.decay * (weight * C(2));
    if (p.weight_decay != C(0)) weight -= weight * p.weight_decay;
    R::template apply<StdMath>(p.scalars, p.flag, gradient * p.unscale, weight, slot);
    w.element[e] = store<T>(weight);
    for (int k = 0; k < R::slots; ++k) slots[k].element[e] = store<T>(slot[k]);
  }
  store_pack<T, width>(t.variable + i * width, w);
  for (int k = 0; k < R::slots; ++k) store_pack<T, width>(t.slots[k] + i * width, slots[k]);
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
template <class R, class G, class T>
__device__ inline void update_tensor(const Arguments<Compute<T>>& p,
                                     const Entry<T>& t,
                                     std::int64_t first,
                                     std::int64_t step) {
  constexpr int k_width = k_pack_width<T>;
  const std::int64_t packs = t.packed ? t.elements / k_width : 0;
  for (std::int64_t i = first; i < packs; i += step) {
    update_at<R, k_width, G>(p, t, i);
  }
  for (std::int64_t i = packs * k_width + first; i < t.elements; i += step) {
    update_at<R, 1, G>(p, t, i);
  }
}

/// The tensors are those of `tensors`, not of `params`.
template <class R, class T>
__global__ void update_kernel(UpdateParams params, Entries<T> tensors) {
  using C = Compute<T>;
  if (params.ok != nullptr && !*params.ok) return;
  const C unscale = params.unscale == nullptr ? C(1) : number<T>(params.unscale);
  Arguments<C> p{.scalars = load_scalars<T>(params.scalars),
                 .flag = params.flag,
                 .unscale = params.reciprocal ? C(1) / unscale : unscale,
                 .decay = number<T>(params.decay),
                 .weight_decay = static_cast<C>(params.decay_by_rate)};
  p.weight_decay *= p.scalars.rate;
  if (params.updates != nullptr) {
    functions::set_powers<StdMath>(p.scalars, static_cast<C>(*params.updates));
  }
  R::template prepare<StdMath>(p.scalars);
  const auto [n, first, step] = share_of(tensors.entry, tensors.count);
  const Entry<T>& t = tensors.entry[n];
  if constexpr (std::is_same_v<T, float>) {
    if (t.gradient_dtype == DType::float16) {
      return update_tensor<R, float16>(p, t, first, step);
    }
    if (t.gradient_dtype == DType::bfloat16) {
      return update_tensor<R, bfloat16>(p, t, first, step);
    }
  }
  update_tensor<R, T>(p, t, first, step);
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

template <class R, class T>
void run(Stream stream, const UpdateParams& p) {
  Entries<T> entries{};
  Grid grid{.blocks = 0};
  const auto flush = [&] {
    launch(update_kernel<R, T>, grid, stream, p, entries);
    entries.count = 0;
    grid.blocks = 0;
  };
  for (const UpdatedTensor& tensor : p.tensors) {
    if (tensor.elements == 0) continue;
    Entry<T>& entry = entries.entry[entries.count++];
    entry = entry_of<T>(tensor, R::slots);
    entry.first_block = static_cast<std::int32_t>(grid.blocks);
    const int width = entry.packed ? k_pack_width<T> : 1;
    grid.blocks += grid_of((tensor.elements + width - 1) / width, grid.threads).blocks;
    if (entries.count == Entries<T>::k_max) flush();
  }
  if (entries.count > 0) flush();
}

template <class R>
void update(Stream stream, const UpdateParams& p) {
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) { run<R, T>(stream, p); });
}

template <class... R>
const Update* find(std::string_view op, functions::List<R...>) {
  static constexpr Update k_updates[] = {{R::op, R::flag, update<R>}...};
  for (const Update& update : k_updates) {
    if (update.op == op) return &update;
  }
  return nullptr;
}

}  // namespace

const Update* update_of(std::string_view op) { return find(op, functions::UpdateRules{}); }

}  // namespace halfstep::backend::cuda::kernels
