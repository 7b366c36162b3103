#include "train/attribution.h"

#include <fmt/format.h>

#include <cmath>

#include "core/dispatch.h"
#include "precision/loss_scale.h"

namespace halfstep::train {
namespace {

/// Counts of the non-finite values of a tensor.
struct Scan {
  std::int64_t infinities = 0;
  std::int64_t nans = 0;
  double finite_absmax = 0;
};

Scan scan(const TensorView& view) {
  Scan result;
  dispatch_floating(view.dtype, [&]<class T>(Type<T>) {
    const T* x = view.as<T>();
    for (std::int64_t i = 0; i < view.elements(); ++i) {
      const double value = static_cast<double>(static_cast<Compute<T>>(x[i]));
      if (std::isnan(value)) {
        ++result.nans;
      } else if (std::isinf(value)) {
        ++result.infinities;
      } else {
        result.finite_absmax = std::max(result.finite_absmax, std::abs(value));
      }
    }
  });
  return result;
}

}  // namespace

std::optional<FirstNonfinite> attribute(plan::Plan& plan,
                                        plan::State& state,
                                        std::optional<double> scale) {
  std::optional<float> after;
  if (scale && state.contains(precision::k_scale_variable)) {
    after = state.read<float>(precision::k_scale_variable);
    state.write(precision::k_scale_variable, static_cast<float>(*scale));
  }
  std::optional<FirstNonfinite> first;
  plan.trace([&](const graph::Node& node,
                 std::span<const TensorView> /*inputs*/,
                 std::span<const TensorView> outputs) {
    for (const TensorView& out : outputs) {
      if (first || !is_floating(out.dtype)) continue;
      const Scan found = scan(out);
      if (found.infinities + found.nans == 0) continue;
      first = FirstNonfinite{node.name,
                             node.op,
                             node.origin.layer,
                             std::string(name(node.origin.phase)),
                             std::string(name(out.dtype)),
                             found.nans > 0 ? "nan" : "inf",
                             found.infinities + found.nans,
                             found.finite_absmax,
                             true};
    }
  });
  if (first) first->loss_finite = std::isfinite(plan.read<float>("loss"));
  if (after) state.write(precision::k_scale_variable, *after);
  return first;
}

std::string describe(const FirstNonfinite& first) {
  return fmt::format("{} first in {} ({}{}{}, {})",
                     first.kind == "nan" ? "NaN" : "Inf",
                     first.tensor,
                     first.op,
                     first.layer.empty() ? "" : " of ",
                     first.layer,
                     first.dtype);
}

}  // namespace halfstep::train
