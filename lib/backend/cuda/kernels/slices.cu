#include "backend/cuda/kernels/slices.h"

#include <algorithm>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {
namespace {

/// Blocks of one column of the grid have one tensor.
template <class Whole, class Packed, bool k_pack>
__global__ void slices_kernel(SlicesParams p) {
  const auto count = static_cast<std::int64_t>(p.count);
  const SlicesParams::Tensor& t = p.tensors[static_cast<std::size_t>(block() % count)];
  auto* whole = static_cast<Whole*>(t.whole);
  const std::int64_t step = blocks() / count * threads();
  for (std::int64_t rank = 0; rank < p.ranks; ++rank) {
    auto* packed = static_cast<Packed*>(p.packed) + rank * p.stride + t.offset;
    for (std::int64_t j = block() / count * threads() + thread(); j < t.slice; j += step) {
      const std::int64_t i = rank * t.slice + j;
      if constexpr (k_pack) {
        packed[j] = i < t.elements ? store<Packed>(static_cast<Compute<Packed>>(load(whole[i])))
                                   : store<Packed>(Compute<Packed>{});
      } else if (i < t.elements) {
        whole[i] = store<Whole>(static_cast<Compute<Whole>>(load(packed[j])));
      }
    }
  }
}

template <bool k_pack>
void launch_slices(Stream stream, const SlicesParams& p) {
  std::int64_t longest = 1;
  for (std::size_t i = 0; i < p.count; ++i) longest = std::max(longest, p.tensors[i].slice);
  Grid grid = grid_of(longest);
  grid.blocks *= static_cast<std::int64_t>(p.count);
  dispatch_matmul(p.whole, [&]<class Whole>(Type<Whole>) {
    dispatch_matmul(p.packed_as, [&]<class Packed>(Type<Packed>) {
      launch(slices_kernel<Whole, Packed, k_pack>, grid, stream, p);
    });
  });
}

}  // namespace

void pack_slices(Stream stream, const SlicesParams& params) { launch_slices<true>(stream, params); }

void unpack_slices(Stream stream, const SlicesParams& params) {
  launch_slices<false>(stream, params);
}

}  // namespace halfstep::backend::cuda::kernels
