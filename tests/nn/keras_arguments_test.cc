// The arguments of Keras's layers, which generate_keras_arguments.py has listed, are fields of ours
// or refused with a reason.

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "config/describe.h"
#include "config/load.h"
#include "nn/layers/table.h"
#include "nn/losses/loss.h"
#include "nn/model_text.h"
#include "nn/optim/optimizer.h"
#include "nn/optim/schedule.h"
#include "support/paths.h"

namespace halfstep::nn {
namespace {

TEST_CASE("layers: each argument of Keras is a field, or refused with a reason") {
  std::ifstream file(test::source_dir() / "tests/nn/data/keras_arguments.json");
  const nlohmann::json layers = nlohmann::json::parse(file)["layers"];
  const std::map<std::string_view, std::string_view> other_names{
      {"leaky_relu", "leaky_re_lu"}, {"prelu", "p_re_lu"}, {"relu", "re_lu"}};
  std::size_t compared = 0;
  for (const LayerDef* def : layer_table()) {
    const auto other = other_names.find(def->type);
    const std::string name(other == other_names.end() ? def->type : other->second);
    if (!layers.contains(name)) continue;
    ++compared;
    std::set<std::string> fields;
    for (const config::FieldDoc& field : config::describe_fields(def->fields)) {
      fields.insert(field.name);
    }
    for (const std::string argument : layers[name]) {
      CAPTURE(def->type);
      CAPTURE(argument);
      CHECK((fields.contains(argument) || !missing_argument(argument).empty()));
    }
  }
  CHECK(compared > 60);
}

TEST_CASE("layers: an argument of Keras that is not there is refused where it stands") {
  const auto problems = [](std::string_view layer) {
    return test::read_model_text("{input: [5, 3], layers: [" + std::string(layer) + "]}").problems;
  };
  CHECK(fmt::format("{}",
                    fmt::join(problems("{type: multi_head_attention, num_heads: 2, key_dim: 3, "
                                       "attention_axes: [1]}"),
                              "\n")) ==
        "5:88: Keras's argument 'attention_axes' is not supported: steps attend to steps, along "
        "axis 1 (remove it)");
  CHECK(fmt::format("{}",
                    fmt::join(problems("{type: lstm, units: 4, recurrent_constraint: max_norm, "
                                       "unroll: true}"),
                              "\n")) ==
        "5:56: Keras's argument 'recurrent_constraint' is not supported: weights are not "
        "constrained (remove it)\n"
        "5:88: Keras's argument 'unroll' is not supported: all steps are one op (remove it)");
  // Also in a layer around it, and not where halfstep has the argument.
  CHECK(problems("{type: bidirectional, layer: {type: gru, units: 4, unroll: false}}").size() == 1);
  CHECK(problems("{type: dropout, rate: 0.5, noise_shape: [1, 3]}").empty());
}

TEST_CASE("optimizers: an argument of Keras that is not there is refused with a reason") {
  const auto problems = [](const std::string& type, std::string_view arguments) {
    Diagnostics diagnostics;
    const config::Typed typed{
        type, config::load_text(std::string(arguments), "o", diagnostics), {"o", 1, 1, ""}};
    make_optimizer(typed, diagnostics);
    return diagnostics.problems();
  };
  const std::vector<Problem> found = problems("sgd", "{use_ema: true, momentum: 0.9}");
  REQUIRE(found.size() == 1);
  CHECK(found[0].where.column == 2);
  CHECK(found[0].message ==
        "Keras's argument 'use_ema' is not supported: weights are not averaged");
  CHECK(problems("adam", "{use_ema: true, gradient_accumulation_steps: 2}").size() == 2);
}

TEST_CASE("optimizers: each decays weights, by its own argument or that of all") {
  for (const OptimizerDef* def : optimizer_table()) {
    CAPTURE(def->type);
    const bool own = def->type == "adamw" || def->type == "muon";
    for (const std::string_view decay : {"0.1", "null", "-1"}) {
      CAPTURE(decay);
      Diagnostics diagnostics;
      const config::Typed typed{
          std::string(def->type),
          config::load_text(fmt::format("{{weight_decay: {}}}", decay), "o", diagnostics),
          {"o", 1, 1, ""}};
      const ConfiguredOptimizer made = make_optimizer(typed, diagnostics);
      CHECK(diagnostics.problems().size() == (decay == "-1" || (own && decay == "null") ? 1 : 0));
      CHECK(made.spec.weight_decay.has_value() == (!own && decay == "0.1"));
    }
  }
}

TEST_CASE("losses: an argument of Keras that is not there is refused with a reason") {
  for (const LossDef* def : loss_table()) {
    CAPTURE(def->type);
    Diagnostics diagnostics;
    const config::Typed typed{std::string(def->type),
                              config::load_text("{axis: 1, reduction: sum}", "l", diagnostics),
                              {"l", 1, 1, ""}};
    make_loss(typed, diagnostics);
    REQUIRE(diagnostics.problems().size() == 2);
    CHECK(diagnostics.problems()[0].where.column == 2);
    CHECK(diagnostics.problems()[0].message ==
          "Keras's argument 'axis' is not supported: classes are the last axis");
  }
}

TEST_CASE("schedules: an argument of Keras that is not there is refused with a reason") {
  Diagnostics diagnostics;
  const config::Node node = config::load_text(
      "{type: cosine_decay, initial_learning_rate: 0, decay_steps: 9, warmup_target: 0.1}",
      "s",
      diagnostics);
  read_schedule(node, 0.1, diagnostics);
  REQUIRE(diagnostics.problems().size() == 1);
  CHECK(diagnostics.problems()[0].message ==
        "Keras's argument 'warmup_target' is not supported: the rate at the end of the warm-up is "
        "initial_learning_rate, that at its start warmup_start");
}

}  // namespace
}  // namespace halfstep::nn
