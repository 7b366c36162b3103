#include "train/evaluate.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace halfstep::train {
namespace {

/// Rows [first, first + count) of a tensor, copied to a slot.
void copy_rows(const TensorView& from,
               std::int64_t first,
               std::int64_t count,
               const TensorView& slot) {
  const std::size_t row_bytes = from.bytes() / static_cast<std::size_t>(from.shape[0]);
  const auto* source = static_cast<const std::byte*>(from.data);
  std::memcpy(slot.data,
              source + static_cast<std::size_t>(first) * row_bytes,
              static_cast<std::size_t>(count) * row_bytes);
}

void count(Confusion& confusion,
           const TensorView& labels,
           std::int64_t first,
           std::span<const std::int64_t> predictions) {
  const auto* label = labels.as<std::int32_t>() + first;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const std::int64_t row = label[i];
    if (row < confusion.classes && predictions[i] < confusion.classes) {
      ++confusion.counts[static_cast<std::size_t>(row * confusion.classes + predictions[i])];
    }
  }
}

}  // namespace

Evaluation evaluate(Session& session, const data::SplitView& rows) {
  const auto start = std::chrono::steady_clock::now();
  Evaluation result;
  const std::int64_t samples = rows.samples();
  const std::int64_t batch = std::min(session.evaluation_batch(), samples);
  const bool classes = rows.labels.dtype == DType::int32 && session.dataset().classes > 1;
  if (classes) {
    const std::int64_t n = session.dataset().classes;
    result.confusion = {n, std::vector<std::int64_t>(static_cast<std::size_t>(n * n), 0)};
  }

  double loss = 0;
  std::map<std::string, double> sums;
  for (std::int64_t first = 0; first < samples; first += batch) {
    const std::int64_t size = std::min(batch, samples - first);
    plan::Plan& plan = session.plan(nn::Purpose::evaluate, size);
    copy_rows(rows.images, first, size, plan.input("images"));
    copy_rows(rows.labels, first, size, plan.input("labels"));
    *plan.input("ordinal").as<std::int64_t>() = 0;
    plan.run();
    loss += static_cast<double>(*plan.fetch("loss").as<float>()) * static_cast<double>(size);
    for (const std::string& metric : session.blueprint().metrics) {
      sums[metric] += static_cast<double>(*plan.fetch("metric/" + metric).as<float>());
    }
    if (!plan.graph().has_fetch("predictions")) continue;
    const auto* winners = plan.fetch("predictions").as<std::int64_t>();
    const std::span<const std::int64_t> predictions(winners, static_cast<std::size_t>(size));
    result.predictions.insert(result.predictions.end(), predictions.begin(), predictions.end());
    if (classes) count(result.confusion, rows.labels, first, predictions);
  }
  result.metrics["loss"] = loss / static_cast<double>(samples);
  for (const auto& [metric, sum] : sums)
    result.metrics[metric] = sum / static_cast<double>(samples);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

Tensor predict(Session& session, const TensorView& images) {
  const std::int64_t samples = images.shape[0];
  const std::int64_t batch = std::min(session.evaluation_batch(), samples);
  Tensor outputs;
  for (std::int64_t first = 0; first < samples; first += batch) {
    const std::int64_t size = std::min(batch, samples - first);
    plan::Plan& plan = session.plan(nn::Purpose::predict, size);
    copy_rows(images, first, size, plan.input("images"));
    if (plan.has_input("ordinal")) *plan.input("ordinal").as<std::int64_t>() = 0;
    plan.run();
    const TensorView out = plan.fetch("outputs");
    if (first == 0) outputs = Tensor(out.dtype, out.shape.with(0, samples));
    const std::size_t row_bytes = out.bytes() / static_cast<std::size_t>(size);
    std::memcpy(
        static_cast<std::byte*>(outputs.view().data) + static_cast<std::size_t>(first) * row_bytes,
        out.data,
        out.bytes());
  }
  return outputs;
}

}  // namespace halfstep::train
