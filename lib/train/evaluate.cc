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

/// Allocates `results` bytes, and uploads samples that are evaluated again, unless they leave too
/// little memory for the trace of a step.
void allocate(Session& session,
              const data::SplitView& rows,
              std::size_t results,
              EvaluationMemory& memory) {
  const std::shared_ptr<backend::Memory>& all = session.backend().memory;
  memory.results = backend::Buffer(all, results);
  memory.rows = rows;
  memory.near = all->is_host();
  if (memory.near || session.ranks() != nullptr || &memory != &session.validation_memory()) return;
  std::vector<TensorView*> tensors{&memory.rows.images, &memory.rows.labels};
  if (rows.weighted()) tensors.push_back(&memory.rows.weights);
  const MemoryUse use = session.memory();
  std::size_t bytes = use.arena_bytes + use.state_bytes;
  for (const TensorView* tensor : tensors) bytes += tensor->bytes();
  if (bytes > all->left()) return;
  for (TensorView* tensor : tensors) {
    const backend::Buffer& to = memory.uploaded.emplace_back(all, tensor->bytes());
    all->upload(tensor->data, to.data(), to.bytes());
    tensor->data = to.data();
  }
  memory.near = true;
}

}  // namespace

Evaluation evaluate(Session& session, const data::SplitView& rows) {
  const auto start = std::chrono::steady_clock::now();
  Evaluation result;
  const std::int64_t samples = rows.samples();
  const std::int64_t batch = std::min(session.evaluation_batch(), samples);
  const std::int64_t batches = (samples + batch - 1) / batch;
  const std::int64_t positions = rows.labels.shape.elements(1, rows.labels.shape.rank());
  const plan::Plan& full = session.plan(nn::Purpose::evaluate, batch);
  const bool predicts = full.graph().has_fetch("predictions");
  // Of labels that are no class numbers, one prediction for each sample.
  const std::int64_t each = predicts ? full.fetch("predictions").shape[0] / batch : 0;
  const std::vector<std::string> counters = nn::counter_names(session.step_spec().metrics);
  const std::size_t row = 1 + counters.size();
  // The places of results behind the ordinal: an even number of scalars, then predictions.
  const auto scalar = [&](std::size_t index) {
    return sizeof k_no_ordinal + index * row * sizeof(float);
  };
  const auto prediction = [&](std::int64_t sample) {
    return scalar(static_cast<std::size_t>(batches + batches % 2)) +
           static_cast<std::size_t>(sample * each) * sizeof(std::int64_t);
  };
  EvaluationMemory once;
  EvaluationMemory& memory =
      &rows == &session.validation_rows() ? session.validation_memory() : once;
  if (memory.results.bytes() == 0) allocate(session, rows, prediction(samples), memory);

  backend::Memory& all = *session.backend().memory;
  comm::Communicator* ranks = session.ranks();
  // Calls body(index, first sample, samples) for each batch of this rank.
  const auto for_own = [&](const auto& body) {
    for (std::int64_t index = 0; index < batches; ++index) {
      if (ranks != nullptr && index % ranks->size() != ranks->rank()) continue;
      body(
          static_cast<std::size_t>(index), index * batch, std::min(batch, samples - index * batch));
    }
  };
  std::int64_t end = 0;  // of the samples of these batches
  for_own([&](std::size_t index, std::int64_t first, std::int64_t size) {
    end = first + size;
    plan::Plan& plan = session.plan(nn::Purpose::evaluate, size);
    const auto put = [&](const char* input, const TensorView& tensor) {
      const TensorView to = plan.input(input);
      if (!memory.near) return plan.write(input, rows_from(tensor, first));
      all.copy(rows_from(tensor, first), to.data, to.bytes());
    };
    put("images", memory.rows.images);
    put("labels", memory.rows.labels);
    if (plan.has_input("sample_weights")) put("sample_weights", memory.rows.weights);
    all.copy(memory.results.data(), plan.input("ordinal").data, sizeof k_no_ordinal);
    plan.run();
    const auto keep = [&](std::string_view fetch, std::size_t at) {
      const TensorView from = plan.fetch(fetch);
      all.copy(from.data, memory.results.data() + at, from.bytes());
    };
    std::size_t at = scalar(index);
    keep("loss", at);
    for (const std::string& counter : counters) keep("metric/" + counter, at += sizeof(float));
    if (predicts) keep("predictions", prediction(first));
  });
  std::vector<std::byte> results(prediction(end));
  all.download(memory.results.data(), results.data(), results.size());
  const auto* predictions = reinterpret_cast<const std::int64_t*>(results.data() + prediction(0));
  result.predictions.assign(predictions, predictions + end * each);

  const bool classes = predicts && rows.labels.dtype == DType::int32 &&
                       session.dataset().classes > 1 && !session.dataset().text &&
                       session.dataset().classes <= k_most_confused;
  if (classes) {
    const std::int64_t n = session.dataset().classes;
    result.confusion = {n, std::vector<std::int64_t>(static_cast<std::size_t>(n * n), 0)};
  }
  double loss = 0;
  std::map<std::string, double> sums;
  for (const std::string& counter : counters) sums[counter] = 0;
  for_own([&](std::size_t index, std::int64_t first, std::int64_t size) {
    const auto* value = reinterpret_cast<const float*>(results.data() + scalar(index));
    loss += static_cast<double>(*value) * static_cast<double>(size);
    for (const std::string& counter : counters) sums[counter] += static_cast<double>(*++value);
    if (!classes) return;
    count(result.confusion,
          rows.labels.as<std::int32_t>() + first * positions,
          {result.predictions.data() + first * each, static_cast<std::size_t>(size * each)});
  });
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
