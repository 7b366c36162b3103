#include "backend/cuda/kernels/dataset.h"

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/element.h"

namespace halfstep::backend::cuda::kernels {
namespace {

struct Rows {
  const std::int32_t* order;
  const std::int64_t* first;
  std::int64_t cycle;
  std::int64_t count;
  std::int64_t elements;  ///< per sample

  /// The index of the sample at position `i` of the batch.
  __device__ std::int64_t sample(std::int64_t i) const {
    std::int64_t at = first == nullptr ? 0 : *first;
    if (cycle > 0) at = at % cycle * count;
    return order[at + i];
  }
};

template <class Word>
__global__ void copy_rows_kernel(Rows r, const Word* from, Word* to) {
  for (std::int64_t i = thread_of_grid(); i < r.count * r.elements; i += threads_of_grid()) {
    to[i] = from[r.sample(i / r.elements) * r.elements + i % r.elements];
  }
}

template <class From, class To>
__global__ void scale_rows_kernel(Rows r, const From* from, To* to, double scale) {
  for (std::int64_t i = thread_of_grid(); i < r.count * r.elements; i += threads_of_grid()) {
    const From x = from[r.sample(i / r.elements) * r.elements + i % r.elements];
    // As data::Loader: uint8 is scaled in double, float32 in float.
    if constexpr (std::is_same_v<From, std::uint8_t>) {
      to[i] = store<To>(static_cast<float>(static_cast<double>(x) * scale));
    } else {
      to[i] = store<To>(x * static_cast<float>(scale));
    }
  }
}

}  // namespace

void gather_batch(Stream stream, const GatherBatchParams& p) {
  const Rows rows{p.order, p.first, p.cycle, p.count, p.row_elements};
  const Grid grid = grid_of(p.count * p.row_elements);
  if (p.from == p.to && p.scale == 1) {
    return dispatch_word(size_bytes(p.from), [&]<class Word>(Type<Word>) {
      launch(copy_rows_kernel<Word>,
             grid,
             stream,
             rows,
             static_cast<const Word*>(p.rows),
             static_cast<Word*>(p.batch));
    });
  }
  const auto scaled = [&]<class From>(Type<From>) {
    dispatch_floating(p.to, [&]<class To>(Type<To>) {
      launch(scale_rows_kernel<From, To>,
             grid,
             stream,
             rows,
             static_cast<const From*>(p.rows),
             static_cast<To*>(p.batch),
             p.scale);
    });
  };
  if (p.from == DType::uint8) return scaled(Type<std::uint8_t>{});
  if (p.from == DType::float32) return scaled(Type<float>{});
  refuse(p.from);
}

}  // namespace halfstep::backend::cuda::kernels
