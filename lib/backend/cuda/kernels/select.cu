// Ops of three operands, and sums of many.

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/functions/choice.h"

namespace halfstep::backend::cuda::kernels {
namespace {

template <class Word>
__global__ void select_kernel(
    const bool* condition, const Word* t, const Word* e, Word* y, Walk<3> walk) {
  for (std::int64_t i = thread_of_grid(); i < walk.elements; i += threads_of_grid()) {
    const auto at = walk.at(i);
    y[i] = condition[at.of[0]] ? t[at.of[1]] : e[at.of[2]];
  }
}

struct Addends {
  const void* x[AddNParams::k_max_inputs];
};

template <class T>
__global__ void add_n_kernel(Addends from, int count, T* y, std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    Sum<T> sum = 0;
    for (int n = 0; n < count; ++n) sum += load_sum(static_cast<const T*>(from.x[n])[i]);
    y[i] = store<T>(sum);
  }
}

}  // namespace

void clip(Stream stream, const ClipParams& p) {
  const Walk<3> walk = broadcast_walk<3>({p.x_shape, p.low_shape, p.high_shape}, p.shape);
  dispatch_number(p.dtype, [&]<class T>(Type<T>) {
    const Sources<T, 3> from{
        {static_cast<const T*>(p.x), static_cast<const T*>(p.low), static_cast<const T*>(p.high)}};
    using Clip = Apply<functions::ClipByValue, Compute<T>>;
    map_any<T, T, 3, Clip>(stream, Clip{}, from, static_cast<T*>(p.y), walk);
  });
}

void select(Stream stream, const SelectParams& p) {
  Strides condition{};
  if (p.rows) {
    condition[0] = 1;
  } else {
    condition = broadcast_strides(p.condition_shape, p.shape);
  }
  const Walk<3> walk(
      p.shape,
      {condition, broadcast_strides(p.t_shape, p.shape), broadcast_strides(p.e_shape, p.shape)});
  dispatch_word(p.element_bytes, [&]<class Word>(Type<Word>) {
    launch(select_kernel<Word>,
           grid_of(walk.elements),
           stream,
           p.condition,
           static_cast<const Word*>(p.t),
           static_cast<const Word*>(p.e),
           static_cast<Word*>(p.y),
           walk);
  });
}

void add_n(Stream stream, const AddNParams& p) {
  if (p.inputs.size() > AddNParams::k_max_inputs) {
    throw LaunchError("a sum of " + std::to_string(p.inputs.size()) + " tensors");
  }
  Addends from{};
  std::size_t count = 0;
  for (const void* x : p.inputs) from.x[count++] = x;
  dispatch_number(p.dtype, [&]<class T>(Type<T>) {
    launch(add_n_kernel<T>,
           grid_of(p.elements),
           stream,
           from,
           static_cast<int>(count),
           static_cast<T*>(p.y),
           p.elements);
  });
}

}  // namespace halfstep::backend::cuda::kernels
