#pragma once
// A run ready to execute: data split, model read, graphs compiled, variables allocated. Training,
// evaluation, prediction and benchmarks all use a Session.

#include <map>
#include <memory>
#include <set>
#include <string>

#include "backend/backend.h"
#include "config/run_spec.h"
#include "data/dataset.h"
#include "nn/step_graph.h"
#include "plan/pipeline.h"
#include "plan/plan.h"
#include "plan/prepare_graph.h"
#include "plan/state.h"
#include "train/result.h"

namespace halfstep::train {

using plan::Prepared;
using plan::RewriteDecision;
using plan::RewriteSummary;

/// Memory of the backend for evaluations of the same samples; empty before the first one.
struct EvaluationMemory {
  backend::Buffer results;  ///< an ordinal of 0, loss and counters of each batch, all predictions
  data::SplitView rows;     ///< the samples
  bool near = false;        ///< whether the samples are in the memory of `results`
  std::vector<backend::Buffer> uploaded;
};

class Session {
 public:
  /// Reads the model for this data, allocates the variables that `purpose` needs and compiles its
  /// plans, without the passes named in `skipped_passes`. The data set must outlive the session.
  /// Errors: UserError(config) with all problems of the model and its precision; UserError(data)
  /// for labels that are no valid class of the output; UserError(memory) when the plans exceed the
  /// available memory.
  Session(const config::RunSpec& spec,
          const data::Dataset& dataset,
          const backend::Backend& backend,
          nn::Purpose purpose = nn::Purpose::train,
          std::set<std::string, std::less<>> skipped_passes = {});

  const config::RunSpec& spec() const { return spec_; }
  const nn::StepSpec& step_spec() const { return step_spec_; }
  const nn::DataShape& data_shape() const { return data_shape_; }
  const backend::Backend& backend() const { return backend_; }
  const data::Dataset& dataset() const { return dataset_; }
  plan::State& state() { return *state_; }
  const plan::State& state() const { return *state_; }

  /// The samples for training, validation (the last fraction of the training samples) and test.
  const data::SplitView& train_split() const { return train_split_; }
  const data::SplitView& validation_split() const { return validation_split_; }
  const data::SplitView& test_split() const { return test_split_; }

  /// The ranks of the run; nullptr: it has one process.
  comm::Communicator* ranks() const { return backend_.capabilities.ranks.get(); }

  /// Whether the ranks divide masters and slots, of which state() has this rank's part.
  bool is_divided() const { return step_spec_.model.shard.divides(); }

  /// The plan for a purpose and batch size, of training that of all ranks together, for this rank's
  /// share of the batch; compiled at the first call.
  plan::Plan& plan(nn::Purpose purpose, std::int64_t batch);
  /// All-gathers the weights whose masters the ranks divide. A step updates this rank's slices of
  /// the masters, and only the next step gathers the weights from them: all ranks call this at the
  /// same point, before anything but a step reads weights. Nothing is done where is_divided() is
  /// false. Errors: comm::RankLost.
  void gather_weights();
  /// A plan of the step whose inputs are in the training plan of this batch size, compiled so that
  /// trace() sees every value of the graph; of several ranks it traces this one, without sums over
  /// them. nullptr when memory does not suffice.
  plan::Plan* trace_plan(std::int64_t batch);
  /// How the session's graphs are lowered.
  plan::Lowering lowering() const;
  /// The graph of the session's purpose and the result of the precision passes.
  const Prepared& prepared() const { return prepared_; }

  /// The memory for evaluations of the validation samples, which follow each epoch.
  EvaluationMemory& validation_memory() { return validation_memory_; }
  /// The batch size of evaluations: validation_batch_size, by default batch_size.
  std::int64_t evaluation_batch() const;
  /// XXH3-128 over dtype, shape and bytes of the training samples and their labels.
  std::string training_data_hash() const;
  MemoryUse memory() const;
  /// Precision warnings and those of the config.
  const std::vector<config::Warning>& warnings() const { return warnings_; }

 private:
  std::int64_t main_batch() const;
  Prepared prepare(nn::Purpose purpose, const BatchShare& batch) const;
  /// This rank's share of a batch: of a training step; other purposes have no ranks.
  BatchShare share(nn::Purpose purpose, std::int64_t batch) const;
  graph::Graph graph_for(nn::Purpose purpose, std::int64_t batch) const;
  void split_data();
  /// Errors: UserError(data) for a class number outside of the model's output.
  void check_labels() const;
  /// Errors: UserError where a layer takes samples as indices and they are none.
  void check_indices() const;
  /// Errors: UserError(config) for a stateful layer where the last batch of an epoch is smaller.
  void check_states() const;
  /// `batch`: of the training plan that needs the memory, 0 for other purposes. Errors:
  /// UserError(memory), naming a batch size that would fit.
  void check_memory(std::size_t needed, std::int64_t batch = 0) const;

  config::RunSpec spec_;
  const data::Dataset& dataset_;
  backend::Backend backend_;
  nn::Purpose purpose_;
  std::set<std::string, std::less<>> skipped_passes_;
  nn::StepSpec step_spec_;
  nn::DataShape data_shape_;
  data::SplitView train_split_, validation_split_, test_split_;
  std::unique_ptr<plan::State> state_;
  plan::Arena arena_;
  std::map<std::pair<nn::Purpose, std::int64_t>, std::unique_ptr<plan::Plan>> plans_;
  plan::Arena trace_arena_;
  std::map<std::int64_t, std::unique_ptr<plan::Plan>> trace_plans_;
  std::unique_ptr<plan::Plan> gather_plan_;
  EvaluationMemory validation_memory_;
  Prepared prepared_;
  std::vector<config::Warning> warnings_;
};

/// Loss, metrics, predictions and confusion matrix over all samples, in order, without dropout or
/// augmentation. Sums are accumulated in double. On a device the host waits once, for the results;
/// validation samples stay there where they fit. The ranks of a run share the batches, and each has
/// the results but the predictions, which are those of its own batches. A model that carries states
/// begins with 0 and carries them from batch to batch, with data.streams along streams of samples;
/// each rank computes all batches then. The states of training stay as they are.
Evaluation evaluate(Session& session, const data::SplitView& rows);

/// The model's float32 outputs for every image, each [samples, ...], in batches as those of
/// evaluate(); no labels are used.
std::vector<Tensor> predict(Session& session, const TensorView& images);

}  // namespace halfstep::train
