#include "nn/trained_output.h"

#include <fmt/format.h>

#include <source_location>
#include <utility>

#include "core/ranges.h"
#include "nn/metric.h"

namespace halfstep::nn {

Where metric_where(const config::RunSpec& spec, std::size_t i) {
  Where where = spec.where(config::item_path("metrics", i));
  if (spec.model.outputs.size() > 1) where.path = "metrics";
  return where;
}

std::optional<NamedMetric> find_metric_of(std::string_view name,
                                          std::span<const TrainedOutput> outputs) {
  std::optional<NamedMetric> found;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& key = outputs[i].key;
    if (!name.starts_with(config::metric_name(key, ""))) continue;
    const std::string_view metric_name = key.empty() ? name : name.substr(key.size() + 1);
    if (find_metric(metric_name) == nullptr && (key.empty() || metric_name != k_loss_metric))
      continue;
    if (!found || metric_name.size() < found->name.size()) found = {i, metric_name};
  }
  return found;
}

void read_metrics(const config::RunSpec& spec,
                  std::span<TrainedOutput> outputs,
                  Diagnostics& diagnostics) {
  const auto known = mapped<std::string>(metric_table(), &MetricDef::name);
  std::vector<std::string> full;
  for (const TrainedOutput& output : outputs) {
    for (const std::string& metric : known) full.push_back(config::metric_name(output.key, metric));
  }
  std::string_view unknown;
  for (std::size_t i = 0; i < spec.metrics.size(); ++i) {
    const std::string& name = spec.metrics[i];
    const auto metric = find_metric_of(name, outputs);
    if (!metric) {
      std::string_view metric_name = name;
      for (const TrainedOutput& output : outputs) {
        const std::string prefix = config::metric_name(output.key, "");
        if (name.starts_with(prefix)) metric_name = std::string_view(name).substr(prefix.size());
      }
      // A name without an output is one of each.
      if (std::exchange(unknown, metric_name) == metric_name) continue;
      std::string hint = outputs.size() > 1 ? did_you_mean(metric_name, full) : "";
      if (hint.empty()) {
        hint = choices(metric_name, known) +
               ", with any whole number for 5 and weighted_ before a name";
      }
      diagnostics.error(
          metric_where(spec, i), fmt::format("unknown metric '{}'", metric_name), std::move(hint));
      continue;
    }
    if (metric->name == k_loss_metric && !outputs[metric->output].has_loss) {
      diagnostics.error(metric_where(spec, i),
                        fmt::format("there is no {}: the output has no loss", name));
      continue;
    }
    outputs[metric->output].metrics.emplace_back(metric->name);
    if (is_weighted(metric->name) && !spec.data.sample_weight) {
      diagnostics.error(metric_where(spec, i),
                        fmt::format("{} weighs the samples, which have no weights", name),
                        "data.sample_weight names them");
    }
  }
}

std::unique_ptr<Loss> make_unscored(const ModelOutput& form) {
  class Unscored final : public Loss {
   public:
    explicit Unscored(const ModelOutput& form)
        : kind_(form.activation == "Sigmoid"                            ? LabelKind::events
                : form.activation == "Softmax" && form.shape.rank() > 1 ? LabelKind::classes
                                                                        : LabelKind::targets),
          probabilities_(form.probabilities) {}
    LabelKind label_kind() const override { return kind_; }
    graph::Value build(const LossContext&) const override {
      throw InternalError("an output without a loss is not scored",
                          std::source_location::current());
    }
    bool from_logits() const override { return false; }
    bool takes_probabilities() const override { return probabilities_; }

   private:
    LabelKind kind_;
    bool probabilities_;
  };
  return std::make_unique<Unscored>(form);
}

}  // namespace halfstep::nn
