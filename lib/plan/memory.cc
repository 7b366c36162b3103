#include "plan/memory.h"

#include <algorithm>
#include <numeric>

namespace halfstep::plan {

Layout assign_offsets_by_lifetime(std::span<const Lifetime> blocks, std::size_t alignment) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return blocks[a].bytes > blocks[b].bytes;
  });

  Layout layout;
  layout.offsets.resize(blocks.size(), 0);
  std::vector<std::size_t> placed;  // sorted by offset
  for (std::size_t block : order) {
    const Lifetime& life = blocks[block];
    const std::size_t bytes = aligned(life.bytes, alignment);
    std::size_t offset = 0;
    for (std::size_t other : placed) {
      if (blocks[other].last < life.first || life.last < blocks[other].first) continue;
      if (offset + bytes <= layout.offsets[other]) break;
      offset = std::max(offset, layout.offsets[other] + aligned(blocks[other].bytes, alignment));
    }
    layout.offsets[block] = offset;
    layout.bytes = std::max(layout.bytes, offset + bytes);
    placed.insert(std::upper_bound(placed.begin(),
                                   placed.end(),
                                   offset,
                                   [&](std::size_t at, std::size_t other) {
                                     return at < layout.offsets[other];
                                   }),
                  block);
  }
  return layout;
}

}  // namespace halfstep::plan
