#include "study/gate_quantity.h"

#include <fmt/format.h>

#include <array>

#include "core/error.h"

namespace halfstep::study {
namespace {

using report::Estimate;
using report::MetricEstimate;
using report::PolicyBlock;
using Number = std::optional<double>;

using Getter = Number (*)(const Estimate& estimate);

Number centre(const Estimate& e) { return e.value; }
Number low(const Estimate& e) { return e.ci95 ? Number(e.ci95->low) : std::nullopt; }
Number high(const Estimate& e) { return e.ci95 ? Number(e.ci95->high) : std::nullopt; }

template <Getter get>
Number speedup(const PolicyBlock& policy, const MetricEstimate*) {
  return policy.speedup ? get(*policy.speedup) : std::nullopt;
}

/// A count of a policy.
template <std::int64_t PolicyBlock::*member>
Number count(const PolicyBlock& policy, const MetricEstimate*) {
  return static_cast<double>(policy.*member);
}

/// A member of a block, which a policy may lack.
template <auto block, auto member>
Number of_block(const PolicyBlock& policy, const MetricEstimate*) {
  return policy.*block ? Number((*(policy.*block)).*member) : std::nullopt;
}

Number metric_mean(const PolicyBlock&, const MetricEstimate* metric) {
  return metric != nullptr ? Number(metric->value) : std::nullopt;
}

template <Getter get>
Number metric_delta(const PolicyBlock&, const MetricEstimate* metric) {
  return metric != nullptr && metric->delta ? get(*metric->delta) : std::nullopt;
}

constexpr auto k_time = &PolicyBlock::step_time;
constexpr auto k_tost = &PolicyBlock::tost;
constexpr auto k_mcnemar = &PolicyBlock::mcnemar;

constexpr std::array k_fields{
    QuantityField{"speedup", Owner::difference, speedup<centre>},
    QuantityField{"speedup_ci_low", Owner::difference, speedup<low>},
    QuantityField{"speedup_ci_high", Owner::difference, speedup<high>},
    QuantityField{"ms_per_step", Owner::policy, of_block<k_time, &report::PolicyTime::median>},
    QuantityField{"skipped_steps", Owner::policy, count<&PolicyBlock::skipped_steps>},
    QuantityField{"diverged", Owner::policy, count<&PolicyBlock::diverged>},
    QuantityField{
        "equivalent", Owner::difference, of_block<k_tost, &report::Tost::equivalent>, true},
    QuantityField{"tost_p", Owner::difference, of_block<k_tost, &report::Tost::p>},
    QuantityField{"mcnemar_p", Owner::difference, of_block<k_mcnemar, &report::McNemar::p>},
    QuantityField{"mean", Owner::metric, metric_mean},
    QuantityField{"delta_mean", Owner::metric_difference, metric_delta<centre>},
    QuantityField{"delta_ci_low", Owner::metric_difference, metric_delta<low>},
    QuantityField{"delta_ci_high", Owner::metric_difference, metric_delta<high>},
};

[[noreturn]] void unknown(const std::string& text,
                          std::string_view what,
                          const std::string& name,
                          const std::vector<std::string>& known) {
  const std::string nearest = did_you_mean(name, known);
  throw UserError(ErrorKind::config,
                  {"--fail-if", 0, 0, ""},
                  fmt::format("'{}': unknown {} '{}'", text, what, name),
                  nearest.empty() ? fmt::format("known: {}", fmt::join(known, ", ")) : nearest);
}

/// The metric with this name: a name with its split, or one without it in the headline's split.
std::string metric_named(const std::string& text,
                         const std::string& name,
                         const ComparisonNames& names) {
  const std::string split = names.headline.substr(0, names.headline.find('_') + 1);
  std::vector<std::string> known;
  for (const std::string& metric : names.metrics) {
    if (metric == name || metric == split + name) return metric;
    known.push_back(metric);
    if (metric.starts_with(split)) known.push_back(metric.substr(split.size()));
  }
  unknown(text, "metric", name, known);
}

}  // namespace

Quantity resolve_quantity(const std::string& text, const ComparisonNames& names) {
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
  const std::string path = text.substr(quantity.policy.size() + 1);
  const std::size_t dot = path.find('.');
  const bool of_metric = dot != std::string::npos;
  if (of_metric) quantity.metric = metric_named(text, path.substr(0, dot), names);
  const std::string name = of_metric ? path.substr(dot + 1) : path;

  std::vector<std::string> known;
  for (const QuantityField& field : k_fields) {
    if (field.of_metric() == of_metric) known.emplace_back(field.name);
    const bool shorter = name == "delta" && field.name == "delta_mean";
    if (field.of_metric() == of_metric && (field.name == name || shorter)) quantity.field = &field;
  }
  if (quantity.field == nullptr) {
    if (!of_metric) {
      for (const std::string& metric : names.metrics) known.push_back(metric + ".mean");
    }
    unknown(text, "quantity", name, known);
  }
  if (quantity.policy == names.baseline && !quantity.field->of_baseline()) {
    throw UserError(
        ErrorKind::config,
        {"--fail-if", 0, 0, ""},
        fmt::format(
            "'{}': {} is the baseline, which is not compared with itself", text, names.baseline));
  }
  return quantity;
}

std::optional<double> value_of(const Quantity& quantity, const report::CompareReport& comparison) {
  const PolicyBlock* policy = report::policy_named(comparison.policies, quantity.policy);
  require(policy != nullptr, "a gate on {}, which was not compared", quantity.policy);
  const auto metric = policy->metrics.find(quantity.metric);
  return quantity.field->get(*policy, metric == policy->metrics.end() ? nullptr : &metric->second);
}

}  // namespace halfstep::study
