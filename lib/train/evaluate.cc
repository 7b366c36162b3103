#include <algorithm>
#include <chrono>

#include "comm/communicator.h"
#include "nn/metric.h"
#include "train/epoch_sums.h"
#include "train/session.h"

namespace halfstep::train {
namespace {

/// Adds results of the batches that each rank evaluated; all ranks have the sums then.
void add_results(comm::Communicator& ranks,
                 double& loss,
                 std::map<std::string, double>& sums,
                 Confusion& confusion) {
  std::vector<double> numbers{loss};
  for (const auto& [name, sum] : sums) numbers.push_back(sum);
  for (const std::int64_t count : confusion.counts) numbers.push_back(static_cast<double>(count));
  comm::add_over_ranks(ranks, numbers);
  auto next = numbers.begin();
  loss = *next++;
  for (auto& [name, sum] : sums) sum = *next++;
  for (std::int64_t& count : confusion.counts) count = static_cast<std::int64_t>(*next++);
}

/// Evaluation draws no random numbers, so the ordinal is arbitrary.
constexpr std::int64_t k_no_ordinal = 0;

/// Classes up to which predictions are counted by class: the counts are quadratic in memory.
constexpr std::int64_t k_most_confused = 1000;

/// The address of row `first` along axis 0.
const std::byte* rows_from(const TensorView& tensor, std::int64_t first) {
  const std::size_t row_bytes = tensor.bytes() / static_cast<std::size_t>(tensor.shape[0]);
  return static_cast<const std::byte*>(tensor.data) + static_cast<std::size_t>(first) * row_bytes;
}

/// Counts predictions whose labels begin at `label`.
void count(Confusion& confusion,
           const std::int32_t* label,
           std::span<const std::int64_t> predictions) {
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
  const std::int64_t positions = rows.labels.shape.elements(1, rows.labels.shape.rank());
  const bool classes = rows.labels.dtype == DType::int32 && session.dataset().classes > 1 &&
                       session.dataset().classes <= k_most_confused && !session.dataset().text &&
                       session.plan(nn::Purpose::evaluate, batch).graph().has_fetch("predictions");
  if (classes) {
    const std::int64_t n = session.dataset().classes;
    result.confusion = {n, std::vector<std::int64_t>(static_cast<std::size_t>(n * n), 0)};
  }

  double loss = 0;
  const std::vector<std::string> counters = nn::counter_names(session.step_spec().metrics);
  std::map<std::string, double> sums;
  for (const std::string& counter : counters) sums[counter] = 0;
  comm::Communicator* ranks = session.ranks();
  for (std::int64_t first = 0; first < samples; first += batch) {
    if (ranks != nullptr && first / batch % ranks->size() != ranks->rank()) continue;
    const std::int64_t size = std::min(batch, samples - first);
    plan::Plan& plan = session.plan(nn::Purpose::evaluate, size);
    plan.write("images", rows_from(rows.images, first));
    plan.write("labels", rows_from(rows.labels, first));
    if (plan.has_input("sample_weights")) {
      plan.write("sample_weights", rows_from(rows.weights, first));
    }
    plan.write("ordinal", &k_no_ordinal);
    plan.run();
    loss += static_cast<double>(plan.read<float>("loss")) * static_cast<double>(size);
    for (const std::string& counter : counters) {
      sums[counter] += static_cast<double>(plan.read<float>("metric/" + counter));
    }
    if (!plan.graph().has_fetch("predictions")) continue;
    // Of labels that are no class numbers, one prediction for each sample.
    const std::int64_t each = plan.fetch("predictions").shape[0] / size;
    result.predictions.resize(static_cast<std::size_t>((first + size) * each));
    const std::span<std::int64_t> predictions =
        std::span(result.predictions).subspan(static_cast<std::size_t>(first * each));
    plan.read("predictions", predictions.data());
    if (classes) {
      count(result.confusion, rows.labels.as<std::int32_t>() + first * positions, predictions);
    }
  }
  if (ranks != nullptr) add_results(*ranks, loss, sums, result.confusion);
  result.metrics["loss"] = loss / static_cast<double>(samples);
  set_metric_values(sums, samples, result.metrics);
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
    plan.write("images", rows_from(images, first));
    if (plan.has_input("ordinal")) plan.write("ordinal", &k_no_ordinal);
    plan.run();
    const TensorView out = plan.fetch("outputs");
    if (first == 0) outputs = Tensor(out.dtype, out.shape.with(0, samples));
    const std::size_t row_bytes = out.bytes() / static_cast<std::size_t>(size);
    plan.read(
        "outputs",
        static_cast<std::byte*>(outputs.view().data) + static_cast<std::size_t>(first) * row_bytes);
  }
  return outputs;
}

}  // namespace halfstep::train
