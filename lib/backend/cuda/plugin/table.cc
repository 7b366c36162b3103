#include <algorithm>
#include <iterator>

#include "backend/cuda/plugin/prepare.h"

namespace halfstep::backend::cuda::plugin {

std::span<const Row> rows() {
  static const std::vector<Row> k_rows = [] {
    std::vector<Row> all;
    for (auto family : {ahead_rows,
                        array_rows,
                        elementwise_rows,
                        fused_product_rows,
                        layer_rows,
                        product_rows,
                        random_rows,
                        reduce_rows,
                        update_rows}) {
      const std::vector<Row> rows = family();
      std::copy(rows.begin(), rows.end(), std::back_inserter(all));
    }
    return all;
  }();
  return k_rows;
}

}  // namespace halfstep::backend::cuda::plugin
