#include "nn/reference.h"

#include <doctest/doctest.h>

#include <ostream>

#include "config/describe.h"
#include "config/load.h"
#include "nn/initializer.h"
#include "nn/metric.h"
#include "nn/optim/schedule.h"

namespace halfstep::nn {
namespace {

using Slots = std::vector<std::string>;

const VariableDesc& variable(const LayerExample& example, std::string_view name) {
  for (const VariableDesc& v : example.variables) {
    if (v.name == name) return v;
  }
  FAIL("no variable ", std::string(name));
  return example.variables.front();
}

const OptimizerDef& optimizer(std::string_view type) {
  for (const OptimizerDef* def : optimizer_table()) {
    if (def->type == type) return *def;
  }
  FAIL("no optimizer ", std::string(type));
  return *optimizer_table().front();
}

}  // namespace

TEST_CASE("reference: a layer's example tells shapes and variables as they were built") {
  const LayerExample conv = layer_example(*find_layer("conv2d"));
  CHECK(conv.text == "{type: conv2d, filters: 4, kernel_size: 3, padding: same}");
  CHECK(conv.input == Shape{6, 6, 2});
  CHECK(conv.output == Shape{6, 6, 4});
  CHECK(variable(conv, "kernel").shape == Shape{3, 3, 2, 4});
  CHECK_FALSE(variable(conv, "kernel").float32);
  const LayerExample norm = layer_example(*find_layer("batch_normalization"));
  CHECK(variable(norm, "gamma").float32);
  CHECK(variable(norm, "gamma").trainable);
  CHECK_FALSE(variable(norm, "moving_mean").trainable);
  CHECK(layer_example(*find_layer("concatenate")).output == Shape{8});
}

TEST_CASE("reference: every layer's example can be told") {
  for (const LayerDef* def : layer_table()) {
    CAPTURE(def->type);
    CHECK(layer_example(*def).output.elements() > 0);
  }
}

TEST_CASE("reference: optimizers tell the variables that they keep for each weight") {
  CHECK(optimizer_slots(optimizer("sgd")).empty());
  CHECK(optimizer_slots(optimizer("adam")) == Slots{"m", "v"});
  CHECK(optimizer_slots(optimizer("adagrad")) == Slots{"accumulator"});
}

TEST_CASE("reference: losses, optimizers, initializers and metrics say what they compute") {
  for (const LossDef* def : loss_table()) {
    CAPTURE(def->type);
    CHECK(def->doc.ends_with('.'));
    CHECK_FALSE(labels_doc(*def).empty());
  }
  for (const OptimizerDef* def : optimizer_table()) CHECK(def->doc.ends_with('.'));
  for (const std::string_view name : initializer_names()) {
    CAPTURE(name);
    CHECK(initializer_doc(name).ends_with('.'));
  }
  for (const MetricDef& def : metric_table()) {
    CAPTURE(def.name);
    CHECK(def.doc.ends_with('.'));
    CHECK(find_metric(def.name) == &def);
  }
  CHECK(find_metric("top_12_accuracy") == find_metric("top_5_accuracy"));
  CHECK(find_metric("top_0_accuracy") == nullptr);
}

TEST_CASE("reference: the example of every schedule is one that can be read") {
  for (const ScheduleDef& def : schedule_table()) {
    CAPTURE(def.type);
    CHECK(def.doc.ends_with('.'));
    Diagnostics diagnostics;
    const config::Node node = config::load_value(std::string(def.example), "example", diagnostics);
    read_schedule(node, 0, diagnostics);
    CHECK(diagnostics.empty());
    CHECK(node.find("type")->text == def.type);
  }
}

}  // namespace halfstep::nn
