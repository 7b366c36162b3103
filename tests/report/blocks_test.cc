// Blocks of a training report from the results of training.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <ostream>
#include <string_view>

#include "backend/backend.h"
#include "backend/cost_model.h"
#include "report/train_report.h"

namespace halfstep::report {
namespace {

using train::Status;

train::EpochRecord epoch(std::int64_t number, double loss) {
  train::EpochRecord record;
  record.epoch = number;
  record.train = {{"loss", loss}, {"accuracy", 0.5}};
  record.learning_rate = 0.1;
  record.steps = 10;
  return record;
}

/// The violations of JSON read as a block.
template <class Block>
std::vector<Violation> wrong(const Json& json) {
  Block block;
  std::vector<Violation> found;
  read_json(json, field_ref(block), found);
  if (found.empty()) CHECK(to_json(block) == json);
  return found;
}

TEST_CASE("history: a column per metric and one value per epoch in each") {
  std::vector<train::EpochRecord> epochs{epoch(1, 2.0), epoch(2, 1.0)};
  const History history = history_block(epochs, {"accuracy"});
  const Json plain = to_json(history);
  CHECK(plain.at("loss") == Json::array({2.0, 1.0}));
  CHECK_FALSE(plain.contains("val_loss"));
  CHECK(plain.at("loss_scale") == Json::array({nullptr, nullptr}));
  CHECK(history.metric_names() == std::vector<std::string>{"loss", "accuracy"});

  // Validation that one epoch lacks leaves a null, not a shorter column.
  epochs[1].validation = {{"loss", 1.5}, {"accuracy", 0.75}};
  epochs[1].loss_scale = 1024;
  epochs[1].partial = true;
  const Json full = to_json(history_block(epochs, {"accuracy"}));
  CHECK(full.at("val_loss") == Json::array({nullptr, 1.5}));
  CHECK(full.at("val_accuracy") == Json::array({nullptr, 0.75}));
  CHECK(full.at("loss_scale") == Json::array({nullptr, 1024.0}));
  CHECK(full.at("partial") == Json::array({false, true}));
  for (const auto& [name, column] : full.items()) {
    CAPTURE(name);
    CHECK(column.size() == 2);
  }
  CHECK(wrong<History>(full).empty());
  const Json empty = to_json(history_block({}, {"accuracy"}));
  CHECK(empty.at("epoch").empty());
  CHECK(wrong<History>(empty).empty());
}

TEST_CASE("step history: a metric of several counters is computed for each interval") {
  train::StepHistory history{1, {}};
  history.begin(std::vector<std::string>{"recall/false_negatives", "recall/true_positives"});
  history.add({1, 1.0, 1, 0, 0.1, {}}, 8, std::vector{1.0, 3.0});
  history.add({2, 1.0, 1, 0, 0.1, {}}, 8, std::vector{0.0, 0.0});
  const StepColumns columns = step_columns(history);
  REQUIRE(columns.metric("recall") != nullptr);
  CHECK(*columns.metric("recall") == Column{0.75, 0.0});
  CHECK(*step_columns(history.coarsened(1)).metric("recall") == Column{0.75});
  CHECK(to_json(step_columns(read_step_history(columns))) == to_json(columns));
}

TEST_CASE("step history: a mean that was not finite does not come back as 0") {
  train::StepHistory history{1, {}};
  history.begin(std::vector<std::string>{"accuracy", "mean_squared_error"});
  history.add({1, 1.0, 1, 0, 0.1, {}}, 8, std::vector{6.0, std::nan("")});
  StepColumns columns = step_columns(history);
  columns.metrics[1].second[0] = std::nullopt;  // as a report has it
  const StepColumns back = step_columns(read_step_history(columns));
  CHECK(*back.metric("accuracy") == Column{0.75});
  REQUIRE(back.metric("mean_squared_error")->at(0));
  CHECK(std::isnan(*back.metric("mean_squared_error")->at(0)));
}

TEST_CASE("step history: means of metrics, null where no sample is known, and back") {
  train::StepHistory history{1, {}};
  history.points = {{1, 2.0, 1, 0, 0.1, {}}};
  history.begin(std::vector<std::string>{"accuracy"});
  history.add({2, 1.0, 1, 0, 0.1, {}}, 8, std::vector{6.0});
  const StepColumns columns = step_columns(history);
  REQUIRE(columns.metric("accuracy") != nullptr);
  CHECK(*columns.metric("accuracy") == Column{std::nullopt, 0.75});
  CHECK(*columns.metric("loss") == Column{2.0, 1.0});
  CHECK(columns.metric("mean_squared_error") == nullptr);
  CHECK(wrong<StepColumns>(to_json(columns)).empty());
  CHECK(to_json(step_columns(read_step_history(columns))) == to_json(columns));
  Json old = to_json(columns);  // of an earlier version
  old.erase("accuracy");
  CHECK(wrong<StepColumns>(old).empty());
}

TEST_CASE("classes: accuracy of each class, null for one without samples") {
  train::Confusion confusion;
  confusion.classes = 3;
  confusion.counts = {3, 1, 0, 0, 0, 0, 1, 0, 2};  // rows by label
  train::Evaluation evaluation;
  evaluation.outputs = {{"", confusion, {}}};
  const Json block = to_json(*classes_block(evaluation, {"cat", "dog"}));
  const Json& rows = block.at("per_class");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0] ==
        Json{{"class", 0}, {"name", "cat"}, {"count", 4}, {"correct", 3}, {"accuracy", 0.75}});
  CHECK(rows[1].at("count") == 0);
  CHECK(rows[1].at("accuracy").is_null());
  CHECK(rows[2].at("name").is_null());  // more classes than names
  CHECK(rows[2].at("accuracy") == number(2.0 / 3));
  CHECK(block.at("confusion") == Json::parse("[[3,1,0],[0,0,0],[1,0,2]]"));
  CHECK(wrong<Classes>(block).empty());
  data::Dataset dataset;
  dataset.outputs = {{.name = "pet", .class_names = {"cat", "dog"}}, {.name = "age"}};
  CHECK_FALSE(output_classes(evaluation, dataset).has_value());
  evaluation.outputs = {{"pet", confusion, {}}, {"age", {}, {}}};
  CHECK_FALSE(classes_block(evaluation, {}).has_value());
  const auto both = output_classes(evaluation, dataset);
  REQUIRE(both.has_value());
  CHECK(both->at(0).classes->per_class.size() == 3);
  CHECK(both->at(0).classes->per_class[1].name == "dog");
  CHECK_FALSE(both->at(1).classes.has_value());
  CHECK_FALSE(classes_block({}, {}).has_value());
}

TEST_CASE("step time: without a counted step every time is null; the peak must be this machine's") {
  const Json none = to_json(train::summarize({}, 0.012, 20));
  CHECK(none.at("median").is_null());
  CHECK(none.at("median_ci95").is_null());
  CHECK(none.at("histogram").is_null());
  CHECK(none.at("first_step") == 12.0);
  train::StepSample step;
  step.total = 2e-3;
  step.data_wait = 1e-3;
  step.counted = true;
  const train::StepTimeSummary summary = train::summarize(std::vector(3, step), 0.012, 0);
  const Json some = to_json(summary);
  CHECK(some.at("median_ci95") == Json::array({2.0, 2.0}));
  CHECK(some.at("breakdown_median").at("data_wait") == 1.0);
  CHECK(some.at("breakdown_median").at("forward").is_null());  // no part was timed
  for (const Json& block : {none, some}) CHECK(wrong<StepTime>(block).empty());
  backend::Backend cpu = backend::cpu_backend(2, backend::Isa::avx2);
  const Throughput unknown = throughput_block(summary, 4e9, cpu);
  CHECK(unknown.achieved_tflops == 2.0);  // 4 GFLOP in 2 ms
  CHECK_FALSE(throughput_block({}, 4e9, cpu).achieved_tflops.has_value());
  CHECK_FALSE(unknown.peak_tflops.has_value());  // no table of measurements
  CHECK_FALSE(unknown.mfu.has_value());

  const auto measured_on = [&](const std::string& processor, double peak = 5e12) {
    cpu.capabilities.costs = std::make_shared<backend::CostModel>(
        "measured",
        std::vector<backend::CostModel::Sample>(),
        std::vector<backend::CostModel::Peak>{{1, 3e12, processor}, {2, peak, processor}});
    return throughput_block(summary, 4e9, cpu);
  };
  const Throughput known = measured_on(processor_name(cpu.capabilities));
  CHECK(known.peak_tflops == 5.0);
  CHECK(known.mfu == 0.4);
  CHECK(known.peak_source.find(", 2 threads, by tune") != std::string::npos);
  CHECK_FALSE(measured_on("avx2 of another machine").mfu.has_value());
  CHECK_FALSE(measured_on(processor_name(cpu.capabilities), 1.9e12).peak_tflops.has_value());
  cpu.capabilities.threads = 3;
  CHECK_FALSE(measured_on(processor_name(cpu.capabilities)).mfu.has_value());
}

TEST_CASE("exit codes: each end of a run has its own") {
  struct Row {
    Status status;
    bool missed;
    int code;
  };
  constexpr std::array k_rows{Row{Status::completed, false, 0},
                              Row{Status::completed, true, 5},
                              Row{Status::target_reached, false, 0},
                              Row{Status::stopped_early, false, 0},
                              Row{Status::stopped_early, true, 5},
                              Row{Status::interrupted, true, 130},
                              Row{Status::preempted, true, 75},
                              Row{Status::diverged, true, 4}};
  for (const Row& row : k_rows) {
    CAPTURE(name(row.status));
    config::RunSpec spec;
    train::TrainResult result;
    result.status = row.status;
    if (row.missed) {
      spec.training.target = "accuracy=1";
      result.time_to_accuracy.emplace();
    }
    CHECK(exit_code(spec, result) == row.code);
  }
}

}  // namespace
}  // namespace halfstep::report
