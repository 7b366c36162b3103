#include "predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "config/outputs.h"
#include "core/log.h"
#include "core/printable.h"
#include "data/tensor_files.h"

namespace halfstep::app {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

bool of_signs(const nn::Loss& loss) { return loss.label_kind() == nn::LabelKind::signs; }

/// The probabilities of all classes from the outputs of a sample, in double; of a loss of signs
/// scores, which are not probabilities. A single output is that of class 1.
std::vector<double> probabilities(std::span<const float> row, const nn::Loss& loss) {
  std::vector<double> p(row.begin(), row.end());
  if (of_signs(loss)) return p.size() == 1 ? std::vector{-p[0], p[0]} : p;
  if (nn::of_events(loss.label_kind())) {
    if (loss.from_logits()) std::ranges::transform(p, p.begin(), sigmoid);
    if (p.size() == 1) p = {1 - p[0], p[0]};
    return p;
  }
  if (!loss.from_logits()) return p;
  const double top = *std::ranges::max_element(p);
  for (double& x : p) x = std::exp(x - top);
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

/// `scores`: the outputs where they are not probabilities, else empty.
PredictedLine describe_class(const std::vector<double>& p,
                             const std::vector<std::string>& names,
                             std::span<const float> scores) {
  const auto best = static_cast<std::size_t>(std::ranges::max_element(p) - p.begin());
  const std::string name = best < names.size() ? names[best] : "";
  PredictedLine line{fmt::format("class {:>3}  {:<12} ", best, printable(name))};
  line.prediction.label = static_cast<std::int64_t>(best);
  line.prediction.name.emplace();
  if (!name.empty()) line.prediction.name = std::optional(name);
  if (!scores.empty()) {
    line.text += fmt::format("score {:.4f}", scores[std::min(best, scores.size() - 1)]);
    line.prediction.values = report::Column(scores.begin(), scores.end());
  } else {
    line.text += fmt::format("probability {:.4f}", p[best]);
    line.prediction.probability = std::optional(p[best]);
    line.prediction.probabilities = report::Column(p.begin(), p.end());
  }
  return line;
}

/// Longer rows are summed up in the text; the report and --output have all.
constexpr std::size_t k_max_printed = 64;

/// The class of the largest score at each position of a row.
std::vector<std::int64_t> classes_at(std::span<const float> row, std::size_t classes) {
  std::vector<std::int64_t> best;
  for (; !row.empty(); row = row.subspan(classes)) {
    best.push_back(std::ranges::max_element(row.first(classes)) - row.begin());
  }
  return best;
}

/// Shapes: `output` of one sample, [positions..., classes].
PredictedLine describe_positions(std::span<const float> row,
                                 const Shape& output,
                                 const data::Dataset& trained_on,
                                 const std::vector<std::string>& names) {
  PredictedLine line{trained_on.predicts_tokens() ? "next" : "classes"};
  line.prediction.labels = classes_at(row, static_cast<std::size_t>(output.back()));
  const std::vector<std::int64_t>& labels = *line.prediction.labels;
  const auto name = [&](std::int64_t label) {
    return label < std::ssize(names) ? printable(names[static_cast<std::size_t>(label)])
                                     : fmt::format("{}", label);
  };
  if (trained_on.predicts_tokens()) {
    line.text += "  " + printable(data::text_of(labels, *trained_on.text));
  } else if (labels.size() <= k_max_printed) {
    for (const std::int64_t label : labels) line.text += " " + name(label);
  } else {
    line.text += fmt::format(" at {} of {}", labels.size(), to_string(output));
    for (std::int64_t label = 0; label < output.back(); ++label) {
      const auto count = std::ranges::count(labels, label);
      if (count > 0) line.text += fmt::format("  {} {}", name(label), count);
    }
  }
  return line;
}

/// Shapes: `output` of one sample.
PredictedLine describe_values(const std::vector<double>& row, const Shape& output) {
  PredictedLine line{row.size() == 1 ? "value" : "values"};
  if (row.size() <= k_max_printed) {
    for (const double value : row) line.text += fmt::format(" {:.6g}", value);
  } else {
    const auto [min, max] = std::ranges::minmax(row);
    line.text +=
        fmt::format(" of {}  {:.6g} to {:.6g}, mean {:.6g}",
                    to_string(output),
                    min,
                    max,
                    std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(row.size()));
  }
  line.prediction.values = report::Column(row.begin(), row.end());
  return line;
}

/// The meaning of the values of an output.
enum class Kind { one_class, classes, values };

/// Shapes: `output` of one sample. `has_classes`: labels are class numbers, not answers of their
/// own for each output.
Kind kind_of(const nn::TrainedOutput& output, const Shape& shape, bool has_classes) {
  const bool positions = shape.rank() > 1 && shape.back() < shape.elements();
  const bool events = nn::of_events(output.loss->label_kind());
  const bool several = positions || (shape.elements() > 1 && !has_classes);
  if (output.has_values() || (events && several)) return Kind::values;
  return positions ? Kind::classes : Kind::one_class;
}

}  // namespace

PredictedLine describe(const nn::TrainedOutput& output,
                       std::size_t index,
                       const Tensor& values,
                       std::size_t i,
                       const data::Dataset& trained_on) {
  const Shape shape(values.shape().dims().subspan(1));
  const auto width = static_cast<std::size_t>(shape.elements());
  const std::span<const float> row(values.as<float>() + i * width, width);
  switch (kind_of(output, shape, trained_on.has_class_numbers(index))) {
    case Kind::values:
      return describe_values(probabilities(row, *output.loss), shape);
    case Kind::classes:
      return describe_positions(row, shape, trained_on, trained_on.class_names_of(index));
    case Kind::one_class:
      break;
  }
  return describe_class(probabilities(row, *output.loss),
                        trained_on.class_names_of(index),
                        of_signs(*output.loss) ? row : row.first(0));
}

void write_outputs(const std::string& path,
                   std::span<const nn::TrainedOutput> specs,
                   std::span<const Tensor> outputs) {
  std::vector<data::NamedTensor> arrays;
  std::vector<Tensor> predictions;
  predictions.reserve(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string behind = specs[i].key.empty() ? "" : "_" + specs[i].key;
    const Shape& shape = outputs[i].shape();
    arrays.push_back({"outputs" + behind, outputs[i].view()});
    const bool events = nn::of_events(specs[i].loss->label_kind());
    const Shape sample(shape.dims().subspan(1));
    if (events || kind_of(specs[i], sample, true) == Kind::values) continue;
    const Tensor& classes =
        predictions.emplace_back(DType::int64, Shape(shape.dims().first(shape.rank() - 1)));
    std::ranges::copy(classes_at(outputs[i].span<float>(), static_cast<std::size_t>(shape.back())),
                      classes.as<std::int64_t>());
    arrays.push_back({"predictions" + behind, classes.view()});
  }
  data::write_npz(path, arrays);
  for (const auto& [array, view] : arrays) {
    log_info("{}: {} {} {}", path, array, name(view.dtype), to_string(view.shape));
  }
}

}  // namespace halfstep::app
