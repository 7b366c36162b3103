#include "nn/mixup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/philox.h"
#include "graph/ops/ops.h"
#include "nn/model.h"

namespace halfstep::nn {
namespace {

using graph::Builder;
using graph::Value;

constexpr std::string_view k_stream = "mixup";
constexpr int k_intervals = 1024;

/// Values of the quantile function at float32 numbers u in [0, 1).
Value beta_at(Builder& b, double alpha, Value u) {
  const std::vector<double> quantiles = beta_quantiles(alpha, k_intervals);
  std::vector<double> steps;
  for (int i = 0; i < k_intervals; ++i) {
    const auto at = static_cast<std::size_t>(i);
    steps.push_back(quantiles[at + 1] - quantiles[at]);
  }
  const Value position = b.add("Mul", {u, b.scalar(DType::float32, k_intervals)});
  const Value below = b.add("Floor", {position});
  const Value index = b.cast(below, DType::int32);
  const auto entry = [&](std::vector<double> values) {
    const Value table = b.floats({k_intervals}, std::move(values));
    return b.add("GatherV2", {table, index, b.scalar(DType::int32, 0)});
  };
  const Value part = b.add("Mul", {entry(std::move(steps)), b.add("Sub", {position, below})});
  return b.add("AddV2", {entry({quantiles.begin(), quantiles.end() - 1}), part}, {}, "weights");
}

}  // namespace

std::vector<double> beta_quantiles(double alpha, int intervals) {
  // With s = t^alpha the density of t up to one half, t^(alpha - 1) (1 - t)^(alpha - 1), becomes
  // (1 - t)^(alpha - 1) / alpha, which is smooth; the other half is its mirror image.
  constexpr int k_cells = 1 << 14;
  const double end = std::pow(0.5, alpha), width = end / k_cells;
  const auto value = [&](double s) { return std::pow(s, 1 / alpha); };
  const auto density = [&](double s) { return std::pow(1 - value(s), alpha - 1); };
  std::vector<double> masses{0};
  for (int i = 0; i < k_cells; ++i) {
    // Simpson's rule.
    const double left = i * width;
    masses.push_back(masses.back() + (density(left) + 4 * density(left + width / 2) +
                                      density(std::min(left + width, end))));
  }
  std::vector<double> quantiles(static_cast<std::size_t>(intervals) + 1);
  std::size_t cell = 0;
  for (int i = 0; i <= intervals / 2; ++i) {
    const double mass = masses.back() * 2 * i / intervals;
    while (cell + 2 < masses.size() && masses[cell + 1] < mass) ++cell;
    const double part = (mass - masses[cell]) / (masses[cell + 1] - masses[cell]);
    const double t = value((static_cast<double>(cell) + part) * width);
    quantiles[static_cast<std::size_t>(i)] = t;
    quantiles[static_cast<std::size_t>(intervals - i)] = 1 - t;
  }
  return quantiles;
}

Mixup::Mixup(Builder& b, double alpha, Value ordinal, std::uint64_t seed, const BatchShare& share)
    : b_(b) {
  const graph::ScopeGuard scope(b, b.origin(), std::string(k_stream));
  const Value u =
      b.add("RandomUniformFromOrdinal",
            {ordinal},
            {{"shape", Shape{share.samples}},
             {"seed", static_cast<std::int64_t>(seed)},
             {"stream", static_cast<std::int64_t>(name_key(k_stream.data(), k_stream.size()))},
             {"first", share.first}});
  weights_ = beta_at(b, alpha, u);
}

std::pair<Value, Value> Mixup::halves(Builder& b, Value both) {
  const Value split =
      b.add("Split", {b.scalar(DType::int32, 0), both}, {{"num_split", std::int64_t{2}}});
  return {{split.node, 0}, {split.node, 1}};
}

Value Mixup::weights_like(Value like) const {
  std::vector<std::int64_t> extents(b_.shape(like).rank(), 1);
  extents[0] = b_.shape(weights_)[0];
  return graph::ops::reshape(b_, weights_, Shape(extents));
}

Value Mixup::mean(Value x, Value y) const {
  const Value difference = b_.add("Mul", {weights_like(x), b_.add("Sub", {x, y})});
  return b_.add("AddV2", {y, difference}, {}, "mixed");
}

Value Mixup::mean_of_halves(Value both) const {
  const auto [x, y] = halves(b_, both);
  return mean(x, y);
}

Value Mixup::heavier(Value x, Value y) const {
  const Value own = b_.add("GreaterEqual", {weights_like(x), b_.scalar(DType::float32, 0.5)});
  return b_.add("SelectV2", {own, x, y}, {}, "heavier");
}

void check_mixup(const config::RunSpec& spec,
                 const Model& model,
                 std::span<const TrainedOutput> outputs,
                 Diagnostics& diagnostics) {
  if (!spec.data.augment.mixup) return;
  const auto refuse = [&](std::string message, std::string hint) {
    diagnostics.error(spec.where("data.augment.mixup"), std::move(message), std::move(hint));
  };
  for (const TrainedOutput& output : outputs) {
    if (output.has_loss && output.loss && output.loss->ignored_class()) {
      refuse("mixes two labels, of which the loss may ignore one", "remove ignore_class");
    }
    if (!output.has_loss || output.loss_type.ends_with("crossentropy")) continue;
    refuse(fmt::format(
               "mixes the losses of two labels, which for {} is not the loss of the mixed label",
               output.loss_type),
           "the cross-entropies fit");
  }
  if (std::ranges::any_of(index_limits(model), [](std::int64_t limit) { return limit > 0; })) {
    refuse("mixes samples, but the samples of this model are indices, such as words", "remove it");
  }
}

}  // namespace halfstep::nn
