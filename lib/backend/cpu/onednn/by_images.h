#pragma once
// Programs over chunks of a batch, each computed by one thread, so that no thread waits for another
// one inside oneDNN, and float32 copies of 16-bit operands stay in the L2 cache.

#include <functional>
#include <optional>

#include "backend/cpu/onednn/program.h"

namespace halfstep::backend::cpu::onednn {

/// An op whose batch axis is the first axis of some of its tensors.
struct ImageOp {
  std::vector<std::size_t> inputs;  ///< ports with images
  /// Adds the op over `images` images. A sum over images is a dense float32 result(), whose offset
  /// it returns; the other ops write output 0, which has images.
  std::function<std::optional<std::size_t>(Program& program, std::int64_t images)> add;
  bool sums = false;
  std::int64_t batch = 1;
  double flops = 0;  ///< of the batch
};

/// The op as a launch. Sums of chunks are added in an order that depends on the batch and on
/// `capabilities.threads` only, and are rounded once. If oneDNN uses its own threads, there is one
/// chunk. Throws dnnl::error for configurations that oneDNN does not support.
Prepared prepare_by_images(const NodeView& node,
                           const Capabilities& capabilities,
                           Arithmetic arithmetic,
                           const ImageOp& op);

}  // namespace halfstep::backend::cpu::onednn
