#include "nn/layers/random_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "config/read_value.h"

namespace halfstep::nn {

void RandomImages::common_fields(config::Fields& f) {
  draws.seed_field(f);
  data_format.field(f);
}

void Resampling::fields(config::Fields& f) {
  f.choice("fill_mode",
           fill_mode,
           k_fill_modes,
           {.doc = "Values beyond the edge: fill_value, the nearest pixel, the mirrored image, or "
                   "the image's other side."});
  f.choice("interpolation",
           interpolation,
           k_interpolations,
           {.doc = "How values between the pixels are found."});
  f.field("fill_value", fill_value, {.doc = "Value for fill_mode constant."});
}

void read_range(const config::Node& node, std::vector<double>& range, Diagnostics& out) {
  if (node.kind == config::Node::Kind::null) return;
  const config::FieldOptions options{.doc = {}, .min = -1, .max = 1};
  if (node.kind == config::Node::Kind::sequence) {
    std::vector<double> both;
    if (!read_value(node, both, options, out)) return;
    if (both.size() == 2) {
      range = {std::min(both[0], both[1]), std::max(both[0], both[1])};
    } else {
      out.error(node.where, fmt::format("must be one share or [low, high], got {}", both.size()));
    }
    return;
  }
  double share = 0;
  if (read_value(node, share, options, out)) range = {-std::abs(share), std::abs(share)};
}

}  // namespace halfstep::nn
