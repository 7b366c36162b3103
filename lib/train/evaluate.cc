#include <algorithm>
#include <chrono>
#include <cstring>

#include "comm/communicator.h"
#include "data/loader.h"
#include "nn/metric.h"
#include "train/epoch_sums.h"
#include "train/session.h"
#include "train/step_time.h"

namespace halfstep::train {
namespace {

/// All-reduces the results of the batches that each rank evaluated. Where the ranks `repeat` the
/// same batches, only those of rank 0 count.
void add_results(comm::Communicator& ranks,
                 bool repeats,
                 double& loss,
                 std::map<std::string, double>& sums,
                 std::vector<OutputPredictions>& outputs) {
  std::vector<double> values{loss};
  for (const auto& [name, sum] : sums) values.push_back(sum);
  for (const OutputPredictions& output : outputs) {
    for (const std::int64_t count : output.confusion.counts) {
      values.push_back(static_cast<double>(count));
    }
  }
  if (repeats && ranks.rank() > 0) std::fill(values.begin(), values.end(), 0);
  comm::all_reduce_sum(ranks, values);
  auto next = values.begin();
  loss = *next++;
  for (auto& [name, sum] : sums) sum = *next++;
  for (OutputPredictions& output : outputs) {
    for (std::int64_t& count : output.confusion.counts) count = static_cast<std::int64_t>(*next++);
  }
}

/// Evaluation draws no random numbers, so the ordinal is arbitrary.
constexpr std::int64_t k_no_ordinal = 0;

/// Classes up to which predictions are counted by class: the counts are quadratic in memory.
constexpr std::int64_t k_max_confused = 1000;

/// The address of row `first` along axis 0.
const std::byte* rows_from(const TensorView& tensor, std::int64_t first) {
  return static_cast<const std::byte*>(tensor.data) +
         static_cast<std::size_t>(first) * data::sample_bytes(tensor);
}

/// A pass over samples, in batches of consecutive ones or, where the model carries states through
/// streams, of the next one of each stream.
class Pass {
 public:
  Pass(const Session& session, std::int64_t samples)
      : memory_(session.backend().memory),
        carries_(session.step_spec().model.carries_states),
        order_(samples,
               {.batch_size = std::min(session.evaluation_batch(), samples),
                .shuffle = false,
                .streams = carries_ && session.spec().data.streams,
                .keep_remainder = true}) {
    for (std::int64_t i = 0; i < batches(); ++i) first_.push_back(first_.back() + begin(i));
  }

  bool carries() const { return carries_; }
  /// Whether a batch has consecutive samples.
  bool is_consecutive() const { return !order_.options().streams; }
  std::span<const std::int32_t> samples() const { return batch_.samples; }  ///< of the batch
  std::int64_t batches() const { return order_.steps_per_epoch(); }
  /// Samples of the batches before batch `i`.
  std::int64_t before(std::int64_t i) const { return first_[static_cast<std::size_t>(i)]; }
  /// Advances to batch `i`; returns its number of samples.
  std::int64_t begin(std::int64_t i) {
    order_.batch_at(i, batch_);
    return batch_.size();
  }

  /// The samples of the batch in a tensor of all samples; valid until the next call.
  const std::byte* rows(const TensorView& all) {
    if (is_consecutive()) return rows_from(all, batch_.samples[0]);
    const std::size_t bytes = data::sample_bytes(all);
    const auto* from = static_cast<const std::byte*>(all.data);
    rows_.resize(batch_.samples.size() * bytes);
    for (std::size_t i = 0; i < batch_.samples.size(); ++i) {
      std::memcpy(rows_.data() + i * bytes, from + offset(i, bytes), bytes);
    }
    return rows_.data();
  }

  /// Copies a fetch, `bytes` for each sample of the batch, to their offsets among all samples.
  void read(const plan::Plan& plan, std::string_view fetch, std::size_t bytes, std::byte* all) {
    if (is_consecutive()) return plan.read(fetch, all + offset(0, bytes));
    rows_.resize(batch_.samples.size() * bytes);
    plan.read(fetch, rows_.data());
    for (std::size_t i = 0; i < batch_.samples.size(); ++i) {
      std::memcpy(all + offset(i, bytes), rows_.data() + i * bytes, bytes);
    }
  }

  /// Runs the batch from the states of the preceding one, initially 0. A smaller last batch has the
  /// first rows of the states.
  void run(plan::Plan& plan) {
    for (const auto& [name, value] : plan.graph().fetches()) {
      if (!plan.has_input(name)) continue;
      const TensorView to = plan.input(name);
      const auto state = states_.try_emplace(name, memory_, to.bytes()).first;
      memory_->copy(state->second.data(), to.data, to.bytes());
    }
    plan.run();
    for (const auto& [name, state] : states_) {
      const TensorView from = plan.fetch(name);
      memory_->copy(from.data, state.data(), from.bytes());
    }
  }

 private:
  std::size_t offset(std::size_t i, std::size_t bytes) const {
    return static_cast<std::size_t>(batch_.samples[i]) * bytes;
  }

  std::shared_ptr<backend::Memory> memory_;
  bool carries_;
  data::BatchOrder order_;
  std::vector<std::int64_t> first_{0};
  data::Batch batch_;
  std::vector<std::byte> rows_;
  std::map<std::string, backend::Buffer, std::less<>> states_;
};

/// The classes that an output predicts, and their labels.
struct PredictedOutput {
  std::string fetch;
  std::int64_t each = 0;     ///< predictions of a sample; 0 for real values
  std::int64_t before = 0;   ///< predictions of a sample in the preceding outputs
  std::int64_t label = 0;    ///< offset of the labels in those of a sample
  std::int64_t classes = 0;  ///< that predictions are counted by; 0: they are not
  std::int64_t targets = 1;  ///< values of a label; several are those of its classes
  std::optional<std::int64_t> ignored = {};  ///< class of labels that are not counted
};

/// `plan` evaluates `batch` samples.
std::vector<PredictedOutput> predicted(const Session& session,
                                       const data::SplitView& rows,
                                       const plan::Plan& plan,
                                       std::int64_t batch) {
  const data::Dataset& dataset = session.dataset();
  std::vector<PredictedOutput> all;
  PredictedOutput next;
  for (const nn::TrainedOutput& output : session.step_spec().outputs) {
    PredictedOutput& now = all.emplace_back(next);
    now.fetch = output.named("predictions");
    now.ignored = output.loss->ignored_class();
    const std::size_t index = all.size() - 1;
    const bool several = !dataset.outputs.empty();
    const Shape label =
        several ? dataset.outputs[index].shape : Shape(rows.labels.shape.dims().subspan(1));
    // Real values have no predicted class.
    const bool values = several && output.has_values();
    if (!values && plan.graph().has_fetch(now.fetch))
      now.each = plan.fetch(now.fetch).shape[0] / batch;
    if (dataset.has_class_numbers(index)) {
      now.classes = several ? dataset.outputs[index].classes : dataset.classes;
    } else if (!output.has_values() && output.loss->label_kind() == nn::LabelKind::targets &&
               label.rank() > 0 && label.elements() == now.each * label.back()) {
      now.classes = now.targets = label.back();
    }
    const bool counted = now.each > 0 && now.classes > 1 && now.classes <= k_max_confused &&
                         !dataset.predicts_tokens();
    if (!counted) now.classes = 0;
    next.before = now.before + now.each;
    if (several) next.label = now.label + dataset.outputs[index].shape.elements();
  }
  return all;
}

/// The class of the label at element `at`: its number, or that of the largest of its targets.
std::int64_t class_at(const TensorView& labels, std::int64_t at, std::int64_t targets) {
  if (targets == 1) return static_cast<std::int64_t>(element_as_double(labels, at));
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < targets; ++i) {
    if (element_as_double(labels, at + i) > element_as_double(labels, at + best)) best = i;
  }
  return best;
}

/// Counts the predictions of a sample whose labels begin at element `label` of `labels`.
void count(Confusion& confusion,
           const PredictedOutput& of,
           const TensorView& labels,
           std::int64_t label,
           std::span<const std::int64_t> predictions) {
  for (const std::int64_t prediction : predictions) {
    const std::int64_t row = class_at(labels, label, of.targets);
    label += of.targets;
    if (row == of.ignored) continue;
    if (row < confusion.classes && prediction < confusion.classes) {
      ++confusion.counts[static_cast<std::size_t>(row * confusion.classes + prediction)];
    }
  }
}

/// Allocates `results` bytes, and uploads samples that are evaluated again in `consecutive` rows,
/// unless they leave too little memory for the trace of a step.
void allocate(Session& session,
              const data::SplitView& rows,
              bool consecutive,
              std::size_t results,
              EvaluationMemory& memory) {
  const std::shared_ptr<backend::Memory>& all = session.backend().memory;
  memory.results = backend::Buffer(all, results);
  memory.rows = rows;
  memory.near = consecutive && all->is_host();
  if (memory.near || !consecutive || session.ranks() != nullptr ||
      &memory != &session.validation_memory())
    return;
  std::vector<TensorView*> tensors{&memory.rows.images, &memory.rows.labels};
  if (rows.weighted()) tensors.push_back(&memory.rows.weights);
  const MemoryUse use = session.memory();
  std::size_t bytes = use.arena_bytes + use.state_bytes;
  for (const TensorView* tensor : tensors) bytes += tensor->bytes();
  if (bytes > all->available_bytes()) return;
  for (TensorView* tensor : tensors) {
    const backend::Buffer& to = memory.uploaded.emplace_back(all, tensor->bytes());
    all->upload(tensor->data, to.data(), to.bytes());
    tensor->data = to.data();
  }
  memory.near = true;
}

}  // namespace

Evaluation evaluate(Session& session, const data::SplitView& rows) {
  session.gather_weights();
  const auto start = std::chrono::steady_clock::now();
  Evaluation result;
  const std::int64_t samples = rows.samples();
  const std::int64_t batch = std::min(session.evaluation_batch(), samples);
  Pass pass(session, samples);
  const std::int64_t batches = pass.batches();
  const std::int64_t values_of_label = rows.labels.shape.elements(1, rows.labels.shape.rank());
  const plan::Plan& full = session.plan(nn::Purpose::evaluate, batch);
  const std::vector<PredictedOutput> outputs = predicted(session, rows, full, batch);
  const std::vector<std::string> counters = session.step_spec().counters();
  const std::size_t row = 1 + counters.size();
  // Layout of the results after the ordinal: an even number of scalars, then predictions.
  const auto scalar = [&](std::size_t index) {
    return sizeof k_no_ordinal + index * row * sizeof(float);
  };
  const auto prediction = [&](const PredictedOutput& of, std::int64_t sample) {
    return scalar(static_cast<std::size_t>(batches + batches % 2)) +
           static_cast<std::size_t>(of.before * samples + sample * of.each) * sizeof(std::int64_t);
  };
  EvaluationMemory once;
  EvaluationMemory& memory =
      &rows == &session.validation_split() ? session.validation_memory() : once;
  if (memory.results.bytes() == 0) {
    allocate(session, rows, pass.is_consecutive(), prediction(outputs.back(), samples), memory);
  }

  backend::Memory& all = *session.backend().memory;
  comm::Communicator* ranks = session.ranks();
  // Calls body(i) for each batch `i` of this rank, with `pass` at it.
  const auto for_own = [&](const auto& body) {
    for (std::int64_t i = 0; i < batches; ++i) {
      if (ranks != nullptr && !pass.carries() && i % ranks->size() != ranks->rank()) continue;
      pass.begin(i);
      body(i);
    }
  };
  std::int64_t end = 0;  // of the samples of these batches
  for_own([&](std::int64_t i) {
    const std::int64_t first = pass.before(i), size = pass.before(i + 1) - first;
    end = first + size;
    plan::Plan& plan = session.plan(nn::Purpose::evaluate, size);
    const auto put = [&](const char* input, const TensorView& tensor) {
      if (!memory.near) return plan.write(input, pass.rows(tensor));
      const TensorView to = plan.input(input);
      all.copy(rows_from(tensor, first), to.data, to.bytes());
    };
    put("images", memory.rows.images);
    put("labels", memory.rows.labels);
    if (plan.has_input("sample_weights")) put("sample_weights", memory.rows.weights);
    all.copy(memory.results.data(), plan.input("ordinal").data, sizeof k_no_ordinal);
    pass.run(plan);
    const auto keep = [&](std::string_view fetch, std::size_t at) {
      const TensorView from = plan.fetch(fetch);
      all.copy(from.data, memory.results.data() + at, from.bytes());
    };
    std::size_t at = scalar(static_cast<std::size_t>(i));
    keep("loss", at);
    for (const std::string& counter : counters) keep("metric/" + counter, at += sizeof(float));
    for (const PredictedOutput& of : outputs) {
      if (of.each > 0) keep(of.fetch, prediction(of, first));
    }
  });
  std::vector<std::byte> results(prediction(outputs.back(), end));
  all.download(memory.results.data(), results.data(), results.size());
  for (const PredictedOutput& of : outputs) {
    const auto n = static_cast<std::size_t>(of.classes);
    result.outputs.push_back({session.step_spec().outputs[result.outputs.size()].key,
                              {of.classes, std::vector<std::int64_t>(n * n, 0)},
                              std::vector<std::int64_t>(static_cast<std::size_t>(end * of.each))});
  }
  double loss = 0;
  std::map<std::string, double> sums;
  for (const std::string& counter : counters) sums[counter] = 0;
  for_own([&](std::int64_t i) {
    const auto* value =
        reinterpret_cast<const float*>(results.data() + scalar(static_cast<std::size_t>(i)));
    loss += static_cast<double>(*value) * static_cast<double>(pass.samples().size());
    for (const std::string& counter : counters) sums[counter] += static_cast<double>(*++value);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const PredictedOutput& of = outputs[k];
      OutputPredictions& output = result.outputs[k];
      const auto* of_sample =
          reinterpret_cast<const std::int64_t*>(results.data() + prediction(of, pass.before(i)));
      for (const std::int32_t sample : pass.samples()) {
        std::copy_n(of_sample, of.each, output.predictions.begin() + sample * of.each);
        if (of.classes > 0) {
          count(output.confusion,
                of,
                rows.labels,
                sample * values_of_label + of.label,
                {of_sample, static_cast<std::size_t>(of.each)});
        }
        of_sample += of.each;
      }
    }
  });
  if (ranks != nullptr) add_results(*ranks, pass.carries(), loss, sums, result.outputs);
  result.metrics["loss"] = loss / static_cast<double>(samples);
  set_metric_values(sums, samples, result.metrics);
  result.seconds = seconds_since(start);
  return result;
}

std::vector<Tensor> predict(Session& session, const TensorView& images) {
  Pass pass(session, images.shape[0]);
  std::vector<Tensor> outputs;
  for (std::int64_t i = 0; i < pass.batches(); ++i) {
    plan::Plan& plan = session.plan(nn::Purpose::predict, pass.begin(i));
    plan.write("images", pass.rows(images));
    if (plan.has_input("ordinal")) plan.write("ordinal", &k_no_ordinal);
    pass.run(plan);
    for (std::size_t k = 0; k < session.step_spec().outputs.size(); ++k) {
      const std::string fetch = session.step_spec().outputs[k].named("outputs");
      const TensorView out = plan.fetch(fetch);
      if (i == 0) outputs.emplace_back(out.dtype, out.shape.with(0, images.shape[0]));
      pass.read(plan, fetch, data::sample_bytes(out), outputs[k].as<std::byte>());
    }
  }
  return outputs;
}

}  // namespace halfstep::train
