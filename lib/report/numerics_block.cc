#include "report/numerics_block.h"

namespace halfstep::report {
namespace {

std::string_view name(config::NumericsMode mode) {
  switch (mode) {
    case config::NumericsMode::none:
      return "none";
    case config::NumericsMode::sample:
      return "sample";
    case config::NumericsMode::full:
      return "full";
  }
  return "none";
}

}  // namespace

Json tensor_numerics(const train::TensorNumerics& t) {
  Json window = nullptr;
  if (t.safe_loss_scale) window = {number(t.safe_loss_scale->low), number(t.safe_loss_scale->high)};
  return {{"name", utf8(t.name)},
          {"op", t.op},
          {"layer", utf8(t.layer)},
          {"phase", t.phase},
          {"dtype", t.dtype},
          {"elements", t.elements},
          {"absmax", number(t.absmax)},
          {"headroom_bits", number(t.headroom_bits)},
          {"zero_frac", number(t.zero_frac)},
          {"zero_underflow_frac", number(t.zero_underflow_frac)},
          {"subnormal_frac", number(t.subnormal_frac)},
          {"nonfinite", t.nonfinite},
          {"safe_loss_scale", std::move(window)},
          {"exponent_counts", {{"lo", t.exponents.lo}, {"counts", t.exponents.counts}}}};
}

Json numerics_block(const config::NumericsSpec& spec, const train::NumericsSummary& summary) {
  if (spec.mode == config::NumericsMode::none) return nullptr;
  Json tensors = Json::array();
  for (const train::TensorNumerics& t : summary.tensors) {
    Json tensor = tensor_numerics(t);
    tensor["steps"] = t.steps;
    tensors.push_back(std::move(tensor));
  }
  return {{"mode", name(spec.mode)},
          {"every", spec.mode == config::NumericsMode::full ? 1 : spec.every},
          {"sampled_steps", summary.sampled_steps},
          {"tensors", std::move(tensors)}};
}

}  // namespace halfstep::report
