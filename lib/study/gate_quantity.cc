#include "study/gate_quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace halfstep::study {
namespace {

using train::ComparedMetric;
using train::ComparedPolicy;
using train::Estimate;
using Number = std::optional<double>;

Number centre(const std::optional<Estimate>& e) { return e ? Number(e->value) : std::nullopt; }
Number low(const std::optional<Estimate>& e) {
  return e && e->ci95 ? Number(e->ci95->low) : std::nullopt;
}
Number high(const std::optional<Estimate>& e) {
  return e && e->ci95 ? Number(e->ci95->high) : std::nullopt;
}

constexpr std::array k_fields{
    QuantityField{
        .name = "speedup",
        .of_baseline = false,
        .get = [](const ComparedPolicy& p, const ComparedMetric*) { return centre(p.speedup); }},
    QuantityField{
        .name = "speedup_ci_low",
        .of_baseline = false,
        .get = [](const ComparedPolicy& p, const ComparedMetric*) { return low(p.speedup); }},
    QuantityField{
        .name = "speedup_ci_high",
        .of_baseline = false,
        .get = [](const ComparedPolicy& p, const ComparedMetric*) { return high(p.speedup); }},
    QuantityField{
        .name = "ms_per_step",
        .get = [](const ComparedPolicy& p, const ComparedMetric*) { return centre(p.step_time); }},
    QuantityField{
        .name = "skipped_steps",
        .get = [](const ComparedPolicy& p,
                  const ComparedMetric*) { return Number(static_cast<double>(p.skipped_steps)); }},
    QuantityField{
        .name = "diverged",
        .get = [](const ComparedPolicy& p,
                  const ComparedMetric*) { return Number(static_cast<double>(p.diverged)); }},
    QuantityField{.name = "equivalent",
                  .of_baseline = false,
                  .flag = true,
                  .get =
                      [](const ComparedPolicy& p, const ComparedMetric*) {
                        return p.equivalence ? Number(p.equivalence->equivalent ? 1 : 0)
                                             : std::nullopt;
                      }},
    QuantityField{.name = "tost_p",
                  .of_baseline = false,
                  .get =
                      [](const ComparedPolicy& p, const ComparedMetric*) {
                        return p.equivalence ? Number(p.equivalence->p) : std::nullopt;
                      }},
    QuantityField{.name = "mcnemar_p",
                  .of_baseline = false,
                  .get =
                      [](const ComparedPolicy& p, const ComparedMetric*) {
                        return p.disagreement ? Number(p.disagreement->p) : std::nullopt;
                      }},
    QuantityField{.name = "mean",
                  .of_metric = true,
                  .get =
                      [](const ComparedPolicy&, const ComparedMetric* m) {
                        return m != nullptr ? Number(m->mean.value) : std::nullopt;
                      }},
    QuantityField{.name = "delta_mean",
                  .of_metric = true,
                  .of_baseline = false,
                  .get =
                      [](const ComparedPolicy&, const ComparedMetric* m) {
                        return m != nullptr ? centre(m->delta) : std::nullopt;
                      }},
    QuantityField{
        .name = "delta_ci_low",
        .of_metric = true,
        .of_baseline = false,
        .get = [](const ComparedPolicy&,
                  const ComparedMetric* m) { return m != nullptr ? low(m->delta) : std::nullopt; }},
    QuantityField{.name = "delta_ci_high",
                  .of_metric = true,
                  .of_baseline = false,
                  .get =
                      [](const ComparedPolicy&, const ComparedMetric* m) {
                        return m != nullptr ? high(m->delta) : std::nullopt;
                      }},
};

[[noreturn]] void unknown(const std::string& text,
                          std::string_view what,
                          const std::string& word,
                          const std::vector<std::string>& known) {
  const std::string nearest = did_you_mean(word, known);
  throw UserError(ErrorKind::config,
                  {"--fail-if", 0, 0, ""},
                  fmt::format("'{}': unknown {} '{}'", text, what, word),
                  nearest.empty() ? fmt::format("known: {}", fmt::join(known, ", ")) : nearest);
}

/// The metric with this name: a name with its split, or one without it in the headline's split.
std::string metric_named(const std::string& text, const std::string& word, const GateNames& names) {
  const std::string split = names.headline.substr(0, names.headline.find('_') + 1);
  std::vector<std::string> known;
  for (const std::string& metric : names.metrics) {
    if (metric == word || metric == split + word) return metric;
    known.push_back(metric);
    if (metric.starts_with(split)) known.push_back(metric.substr(split.size()));
  }
  unknown(text, "metric", word, known);
}

}  // namespace

Quantity resolve_quantity(const std::string& text, const GateNames& names) {
  // Names of finished runs may contain dots: the longest match is used.
  Quantity quantity;
  for (const std::string& policy : names.policies) {
    if (text.starts_with(policy + ".") && policy.size() >= quantity.policy.size()) {
      quantity.policy = policy;
    }
  }
  if (quantity.policy.empty()) {
    unknown(text, "policy", text.substr(0, text.find('.')), names.policies);
  }
  const std::string rest = text.substr(quantity.policy.size() + 1);
  const std::size_t dot = rest.find('.');
  const bool of_metric = dot != std::string::npos;
  if (of_metric) quantity.metric = metric_named(text, rest.substr(0, dot), names);
  const std::string word = of_metric ? rest.substr(dot + 1) : rest;

  std::vector<std::string> known;
  for (const QuantityField& field : k_fields) {
    if (field.of_metric == of_metric) known.emplace_back(field.name);
    const bool shorter = word == "delta" && field.name == "delta_mean";
    if (field.of_metric == of_metric && (field.name == word || shorter)) quantity.field = &field;
  }
  if (quantity.field == nullptr) {
    if (!of_metric) {
      for (const std::string& metric : names.metrics) known.push_back(metric + ".mean");
    }
    unknown(text, "quantity", word, known);
  }
  if (quantity.policy == names.baseline && !quantity.field->of_baseline) {
    throw UserError(
        ErrorKind::config,
        {"--fail-if", 0, 0, ""},
        fmt::format(
            "'{}': {} is the baseline, which is not compared with itself", text, names.baseline));
  }
  return quantity;
}

GateNames names_of(const train::Comparison& comparison) {
  GateNames names{{}, comparison.baseline, comparison.metrics, comparison.metric};
  for (const ComparedPolicy& policy : comparison.policies) names.policies.push_back(policy.policy);
  return names;
}

std::optional<double> value_of(const Quantity& quantity, const train::Comparison& comparison) {
  const ComparedPolicy* policy = comparison.find(quantity.policy);
  require(policy != nullptr, "a gate on {}, which was not compared", quantity.policy);
  const auto metric = policy->metrics.find(quantity.metric);
  return quantity.field->get(*policy, metric == policy->metrics.end() ? nullptr : &metric->second);
}

}  // namespace halfstep::study
