#pragma once
// A run made ready: data split, model read, graphs compiled, variables allocated. Training,
// evaluation, prediction and benchmarks all drive a Session.

#include <map>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "config/run_spec.h"
#include "data/dataset.h"
#include "nn/step_graph.h"
#include "plan/plan.h"
#include "plan/state.h"
#include "train/prepare_graph.h"
#include "train/result.h"

namespace halfstep::train {

class Session {
 public:
  /// Reads the model for this data, allocates the variables that `purpose` needs and compiles its
  /// plans. The data set must outlive the session.
  /// Errors: UserError(config) for everything wrong in the model and its precision;
  /// UserError(data) for labels that it has no output for;
  /// UserError(memory) when the plans do not fit into the memory that is left.
  Session(const config::RunSpec& spec,
          const data::Dataset& dataset,
          const backend::Backend& backend,
          nn::Purpose purpose = nn::Purpose::train);

  const config::RunSpec& spec() const { return spec_; }
  const nn::Blueprint& blueprint() const { return blueprint_; }
  const nn::DataShape& data_shape() const { return data_shape_; }
  const backend::Backend& backend() const { return backend_; }
  const data::Dataset& dataset() const { return dataset_; }
  plan::State& state() { return *state_; }
  const plan::State& state() const { return *state_; }

  /// The rows trained on, validated on (the last fraction of the training rows) and tested on.
  const data::SplitView& train_rows() const { return train_rows_; }
  const data::SplitView& validation_rows() const { return validation_rows_; }
  const data::SplitView& test_rows() const { return test_rows_; }

  /// The plan for a purpose and batch size; compiled at the first call.
  plan::Plan& plan(nn::Purpose purpose, std::int64_t batch);
  /// The step whose inputs stand in the training plan of this batch size, ready to be traced with
  /// every value of the graph in sight. nullptr when there is not the memory for it.
  plan::Plan* trace_plan(std::int64_t batch);
  /// The graph of the session's purpose and what the precision passes did to it.
  const Prepared& prepared() const { return prepared_; }

  std::int64_t evaluation_batch() const;
  /// XXH3-128 over dtype, shape and bytes of the training samples and their labels.
  std::string training_data_hash() const;
  MemoryUse memory() const;
  /// Precision warnings and those of the config.
  const std::vector<config::Warning>& warnings() const { return warnings_; }

 private:
  std::int64_t main_batch() const;
  graph::Graph graph_for(nn::Purpose purpose, std::int64_t batch) const;
  plan::Lowering lowering() const;
  void split_data();
  /// Errors: UserError(data) for a class number that the model has no output for.
  void check_labels() const;
  /// `batch`: of the training plan that is to have the memory, 0 when it is for something else.
  /// Errors: UserError(memory), naming a batch that would fit.
  void check_memory(std::size_t needed, std::int64_t batch = 0) const;

  config::RunSpec spec_;
  const data::Dataset& dataset_;
  backend::Backend backend_;
  nn::Purpose purpose_;
  nn::Blueprint blueprint_;
  nn::DataShape data_shape_;
  data::SplitView train_rows_, validation_rows_, test_rows_;
  std::unique_ptr<plan::State> state_;
  plan::Arena arena_;
  std::map<std::pair<nn::Purpose, std::int64_t>, std::unique_ptr<plan::Plan>> plans_;
  plan::Arena trace_arena_;
  std::map<std::int64_t, std::unique_ptr<plan::Plan>> trace_plans_;
  Prepared prepared_;
  std::vector<config::Warning> warnings_;
};

}  // namespace halfstep::train
