#include "backend/cuda/kernels/softmax.h"

#include <cmath>
#include <limits>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/element.h"

namespace halfstep::backend::cuda::kernels {
namespace {

constexpr int k_warp = 32;

/// The lanes of a warp that share a row, a power of two, and their assignment.
struct Rows {
  std::int64_t rows;
  std::int64_t classes;
  int lanes;

  /// The running thread's row, and its lane there. Lanes with a row beyond `rows` must not return
  /// early, because shuffles need whole warps.
  __device__ std::int64_t row() const { return thread_of_grid() / lanes; }
  __device__ int lane() const { return static_cast<int>(thread()) & (lanes - 1); }
};

Rows rows_of(std::int64_t rows, std::int64_t classes) {
  int lanes = 1;
  while (lanes < k_warp && lanes < classes) lanes *= 2;
  return {rows, classes, lanes};
}

Grid grid_of_rows(const Rows& r) {
  constexpr unsigned k_threads = 128;
  const std::int64_t per_block = k_threads / static_cast<unsigned>(r.lanes);
  return {.blocks = (r.rows + per_block - 1) / per_block, .threads = k_threads, .cooperates = true};
}

/// max(x) and log(sum(exp(x - max))) of a row, in all of its lanes. NaN and +inf make the latter
/// NaN.
template <class C>
struct RowSums {
  C max;
  C log_sum;
};

template <class T>
__device__ inline RowSums<Compute<T>> row_sums(const Rows& r, const T* x) {
  using C = Compute<T>;
  const std::int64_t classes = r.row() < r.rows ? r.classes : 0;
  C max = -std::numeric_limits<C>::infinity();
  for (std::int64_t i = r.lane(); i < classes; i += r.lanes) {
    const C value = load(x[i]);
    max = value > max ? value : max;
  }
  for (int o = r.lanes / 2; o > 0; o /= 2) {
    const C other = shuffle_xor(max, static_cast<unsigned>(o));
    max = other > max ? other : max;
  }
  C sum = 0;
  for (std::int64_t i = r.lane(); i < classes; i += r.lanes) sum += std::exp(load(x[i]) - max);
  for (int o = r.lanes / 2; o > 0; o /= 2) sum += shuffle_xor(sum, static_cast<unsigned>(o));
  return {max, std::log(sum)};
}

template <class T>
__global__ void softmax_kernel(Rows r, const T* x, T* y, bool logarithm) {
  const bool exists = r.row() < r.rows;
  x += exists ? r.row() * r.classes : 0;
  const auto s = row_sums(r, x);
  if (!exists) return;
  y += r.row() * r.classes;
  for (std::int64_t i = r.lane(); i < r.classes; i += r.lanes) {
    const auto log_y = load(x[i]) - s.max - s.log_sum;
    y[i] = store<T>(logarithm ? log_y : std::exp(log_y));
  }
}

template <class T>
__global__ void cross_entropy_kernel(Rows r, const T* x, const T* labels, T* losses, T* dx) {
  using C = Compute<T>;
  const bool exists = r.row() < r.rows;
  const std::int64_t at = exists ? r.row() * r.classes : 0;
  const RowSums<C> s = row_sums(r, x + at);
  C loss = 0;
  for (std::int64_t i = r.lane(); exists && i < r.classes; i += r.lanes) {
    const C log_y = load(x[at + i]) - s.max - s.log_sum;
    const C label = load(labels[at + i]);
    if (label != 0) loss -= label * log_y;
    dx[at + i] = store<T>(std::exp(log_y) - label);
  }
  for (int o = r.lanes / 2; o > 0; o /= 2) loss += shuffle_xor(loss, static_cast<unsigned>(o));
  if (!exists || r.lane() != 0) return;
  losses[r.row()] = store<T>(std::isnan(s.log_sum) ? s.log_sum : loss);
}

template <class T, class Label>
__global__ void sparse_cross_entropy_kernel(
    Rows r, const T* x, const Label* labels, T* losses, T* dx) {
  using C = Compute<T>;
  constexpr C k_nan = std::numeric_limits<C>::quiet_NaN();
  const bool exists = r.row() < r.rows;
  x += exists ? r.row() * r.classes : 0;
  const RowSums<C> s = row_sums(r, x);
  if (!exists) return;
  dx += r.row() * r.classes;
  const auto label = static_cast<std::int64_t>(labels[r.row()]);
  const bool known = label >= 0 && label < r.classes;
  for (std::int64_t i = r.lane(); i < r.classes; i += r.lanes) {
    const C y = std::exp(load(x[i]) - s.max - s.log_sum);
    dx[i] = store<T>(known ? y - (i == label ? C(1) : C(0)) : k_nan);
  }
  if (r.lane() != 0) return;
  losses[r.row()] = store<T>(known ? s.max + s.log_sum - load(x[label]) : k_nan);
}

/// The sums over some rows.
struct LossSums {
  float loss, correct;
};

/// The largest value of a row and its first index.
struct Largest {
  float value;
  std::int32_t index;
};

__device__ inline Largest larger(Largest a, Largest b) {
  if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
  if (a.value == b.value || (a.value != a.value && b.value != b.value)) {
    return a.index < b.index ? a : b;
  }
  return b.value > a.value || b.value != b.value ? b : a;
}

/// Sums over the block, in thread 0.
__device__ inline LossSums sum_block(LossSums sums) {
  HALFSTEP_SHARED(LossSums, all, 128);
  all[thread()] = sums;
  for (unsigned half = threads() / 2; half > 0; half /= 2) {
    sync_block();
    if (thread() >= half) continue;
    all[thread()].loss += all[thread() + half].loss;
    all[thread()].correct += all[thread() + half].correct;
  }
  return thread() == 0 ? all[0] : sums;
}

template <class T, class Label>
struct LossTensors {
  const T* logits;
  const Label* labels;
  const float* seed;
  float* probabilities;
  float* losses;
  float* mean;
  float* correct;
  T* gradient;
  std::int64_t columns;  ///< of logits and gradient
  LossSums* parts;       ///< per block
  unsigned* ticket;
};

template <class T, class Label>
__global__ void softmax_loss_kernel(Rows r, LossTensors<T, Label> t) {
  constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();
  const bool exists = r.row() < r.rows;
  const std::int64_t at = exists ? r.row() * t.columns : 0;
  const T* x = t.logits + at;
  const RowSums<float> s = row_sums(r, x);
  const auto label = exists ? static_cast<std::int64_t>(t.labels[r.row()]) : -1;
  const bool known = label >= 0 && label < r.classes;
  const float seed = t.gradient == nullptr ? 0 : *t.seed / static_cast<float>(r.rows);
  Largest largest{0, -1};
  for (std::int64_t i = r.lane(); exists && i < r.classes; i += r.lanes) {
    const float y = std::exp(load(x[i]) - s.max - s.log_sum);
    largest = larger(largest, {y, static_cast<std::int32_t>(i)});
    if (t.probabilities != nullptr) t.probabilities[r.row() * r.classes + i] = y;
    if (t.gradient == nullptr) continue;
    const float slope = known ? y - (i == label ? 1.0F : 0.0F) : k_nan;
    t.gradient[at + i] = store<T>(seed * slope);
  }
  for (std::int64_t i = r.classes + r.lane(); exists && i < t.columns; i += r.lanes) {
    if (t.gradient != nullptr) t.gradient[at + i] = store<T>(0.0F);
  }
  for (int o = r.lanes / 2; o > 0; o /= 2) {
    const auto lanes = static_cast<unsigned>(o);
    largest =
        larger(largest, {shuffle_xor(largest.value, lanes), shuffle_xor(largest.index, lanes)});
  }
  LossSums sums{0, 0};
  if (exists && r.lane() == 0) {
    sums.loss = known ? s.max + s.log_sum - load(x[label]) : k_nan;
    sums.correct = known && largest.index == label ? 1.0F : 0.0F;
    if (t.losses != nullptr) t.losses[r.row()] = sums.loss;
  }
  if (t.parts == nullptr) return;
  sums = sum_block(sums);
  if (thread() == 0) t.parts[block()] = sums;
  if (!is_last_block(t.ticket, blocks())) return;
  LossSums all{0, 0};
  for (std::int64_t i = thread(); i < blocks(); i += threads()) {
    all.loss += t.parts[i].loss;
    all.correct += t.parts[i].correct;
  }
  all = sum_block(all);
  if (thread() != 0) return;
  if (t.mean != nullptr) *t.mean = all.loss / static_cast<float>(r.rows);
  if (t.correct != nullptr) *t.correct = all.correct;
}

}  // namespace

void softmax(Stream stream, const SoftmaxParams& p) {
  const Rows r = rows_of(p.rows, p.classes);
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    launch(softmax_kernel<T>,
           grid_of_rows(r),
           stream,
           r,
           static_cast<const T*>(p.x),
           static_cast<T*>(p.y),
           p.logarithm);
  });
}

void cross_entropy(Stream stream, const CrossEntropyParams& p) {
  const Rows r = rows_of(p.rows, p.classes);
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    launch(cross_entropy_kernel<T>,
           grid_of_rows(r),
           stream,
           r,
           static_cast<const T*>(p.logits),
           static_cast<const T*>(p.labels),
           static_cast<T*>(p.loss),
           static_cast<T*>(p.gradient));
  });
}

void sparse_cross_entropy(Stream stream, const SparseCrossEntropyParams& p) {
  const Rows r = rows_of(p.rows, p.classes);
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    dispatch_index(p.label, [&]<class Label>(Type<Label>) {
      launch(sparse_cross_entropy_kernel<T, Label>,
             grid_of_rows(r),
             stream,
             r,
             static_cast<const T*>(p.logits),
             static_cast<const Label*>(p.labels),
             static_cast<T*>(p.loss),
             static_cast<T*>(p.gradient));
    });
  });
}

std::size_t softmax_loss_workspace(const SoftmaxLossParams& p) {
  return static_cast<std::size_t>(grid_of_rows(rows_of(p.rows, p.classes)).blocks) *
         sizeof(LossSums);
}

void softmax_loss(Stream stream, const SoftmaxLossParams& p) {
  const Rows r = rows_of(p.rows, p.classes);
  dispatch_matmul(p.dtype, [&]<class T>(Type<T>) {
    dispatch_index(p.label, [&]<class Label>(Type<Label>) {
      const bool sums = p.mean != nullptr || p.correct != nullptr;
      const LossTensors<T, Label> tensors{static_cast<const T*>(p.logits),
                                          static_cast<const Label*>(p.labels),
                                          p.seed,
                                          p.probabilities,
                                          p.losses,
                                          p.mean,
                                          p.correct,
                                          static_cast<T*>(p.gradient),
                                          p.columns,
                                          sums ? static_cast<LossSums*>(p.workspace) : nullptr,
                                          p.tickets.data};
      launch(softmax_loss_kernel<T, Label>, grid_of_rows(r), stream, r, tensors);
    });
  });
}

}  // namespace halfstep::backend::cuda::kernels
