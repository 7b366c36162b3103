// The table of passes: every pass can be seen at work and, unless a step cannot do without it, left
// out.

#include "plan/pipeline.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "graph/ops/ops.h"
#include "graph/text.h"
#include "plan/plan.h"
#include "plan/steps.h"

namespace halfstep::plan {
namespace {

constexpr std::int64_t k_pipeline_batch = 32;

StepConfig cnn(std::string_view precision) {
  return StepConfig(fmt::format(R"(
data: {{name: synthetic_digits}}
model:
  input: [8, 8, 1]
  layers:
    - {{type: conv2d, filters: 8, kernel_size: 3, padding: same}}
    - {{type: batch_normalization}}
    - {{type: relu}}
    - {{type: conv2d, filters: 8, kernel_size: 3, padding: same, activation: relu}}
    - {{type: max_pooling2d}}
    - {{type: flatten}}
    - {{type: dense, units: 10}}
    - {{type: softmax, dtype: float32}}
precision: {{{}}}
loss: sparse_categorical_crossentropy
optimizer: {{type: sgd, learning_rate: 0.1, momentum: 0.9}}
)",
                                precision));
}

StepConfig mlp(std::string_view precision) {
  return StepConfig(fmt::format(R"(
data: {{name: synthetic_digits}}
model:
  input: [8, 8, 1]
  layers:
    - {{type: flatten}}
    - {{type: dense, units: 97, activation: relu}}
    - {{type: dense, units: 70, activation: relu}}
    - {{type: dense, units: 10}}
    - {{type: softmax, dtype: float32}}
precision: {{{}}}
loss: sparse_categorical_crossentropy
optimizer: {{type: sgd, learning_rate: 0.1, momentum: 0.9}}
)",
                                precision));
}

struct Case {
  std::string_view name;
  StepConfig config;
};

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const std::string_view precision : {"policy: float32",
                                           "policy: mixed_bfloat16, grad_dtype: float32",
                                           "policy: mixed_float16",
                                           "policy: float32, rewrite: auto, target: bfloat16"}) {
    cases.push_back({precision, cnn(precision)});
    cases.push_back({precision, mlp(precision)});
  }
  return cases;
}

std::string message_of(const std::set<std::string, std::less<>>& skip) {
  try {
    check_skippable(skip, {"--skip-pass", 0, 0, ""});
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("pipeline: the passes of the table make the step that nn::build_step makes") {
  for (const Case& c : cases()) {
    if (c.config.spec.precision.rewrite != config::Rewrite::none) continue;
    CAPTURE(c.name);
    const graph::Graph whole =
        nn::build_step(c.config.step_spec, c.config.data, k_pipeline_batch, nn::Purpose::train);
    CHECK(graph::print_graph(c.config.prepare(k_pipeline_batch).graph) ==
          graph::print_graph(whole));
  }
}

TEST_CASE("pipeline: the graph after every pass can be dumped, and its text reads back") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    std::vector<std::string_view> seen;
    Lowering lowering;
    int nodes = -1;
    lowering.passes.observer = [&](const PassRun& run) {
      CAPTURE(run.pass.name);
      seen.push_back(run.pass.name);
      if (nodes >= 0) CHECK(run.nodes_before == nodes);
      nodes = run.graph.size();
      if (!run.changed) CHECK(run.nodes_before == nodes);
      const std::string text = graph::print_graph(run.graph);
      CHECK(graph::print_graph(graph::parse_graph(text, "dump", graph::op_table())) == text);
    };
    lower(c.config.prepare(k_pipeline_batch, lowering.passes).graph, cpu_by_rule(), lowering);
    std::vector<std::string_view> names;
    for (const Pass& pass : passes()) names.push_back(pass.name);
    CHECK(seen == names);
  }
}

TEST_CASE("pipeline: without any pass that can be skipped the weights come out the same") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const Trained all = train(c.config, k_pipeline_batch, cpu_by_rule());
    for (const Pass& pass : passes()) {
      if (!pass.required.empty()) continue;
      CAPTURE(pass.name);
      PassOptions options;
      options.skip.emplace(pass.name);
      options.observer = [&](const PassRun& run) {
        CHECK(run.skipped == (run.pass.name == pass.name));
        if (run.skipped) CHECK_FALSE(run.changed);
      };
      const Trained without = train(c.config, k_pipeline_batch, cpu_by_rule(), options);
      if (pass.exact) {
        CHECK(different_elements(all, without) == 0);
      } else {
        CHECK(relative_distance(all, without) < 0.1);
      }
    }
  }
}

TEST_CASE("pipeline: a plan hides values when a pass that hides values changed its graph") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const graph::Graph step = c.config.prepare(k_pipeline_batch).graph;
    bool hidden = false;
    Lowering lowering;
    lowering.passes.observer = [&](const PassRun& run) {
      hidden = hidden || (run.changed && run.pass.hides_values);
    };
    CHECK(compile(step, cpu_by_rule(), lowering).hides_values() == hidden);
    CHECK(hidden);
    hidden = false;
    lowering.hides_values = false;
    CHECK_FALSE(compile(step, cpu_by_rule(), lowering).hides_values());
    CHECK_FALSE(hidden);
  }
}

TEST_CASE("pipeline: unknown passes and passes that a step needs cannot be skipped") {
  CHECK(message_of({"fuse_norms", "prune"}).empty());
  const std::string unknown = message_of({"fuse_norm"});
  CHECK(unknown.find("unknown pass 'fuse_norm'") != std::string::npos);
  CHECK(unknown.find("did you mean 'fuse_norms'? 'halfstep explain --passes' lists all ") !=
        std::string::npos);
  for (const Pass& pass : passes()) {
    const std::string message = message_of({std::string(pass.name)});
    CHECK(message.empty() == pass.required.empty());
    CHECK(message.find(pass.required) != std::string::npos);
  }
  CHECK(message_of({"differentiate"}).find("cannot be skipped") != std::string::npos);
}

}  // namespace halfstep::plan
