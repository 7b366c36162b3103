#include "graph/ops/ops.h"
#include "nn/layers/image.h"

namespace halfstep::nn {
namespace {

using graph::Value;

template <bool maximum>
struct Pooling2D {
  config::Pair pool_size{2, 2};
  config::Pair strides{0, 0};  ///< 0: the pool size
  Padding padding = Padding::valid;
  DataFormatField data_format;
};

}  // namespace
}  // namespace halfstep::nn
