// Loss scales against the rules of the systems they are called after, as traces: which steps are
// finite goes in, scale and counter after each step come out.

#include "precision/loss_scale.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <ostream>
#include <random>
#include <string_view>

#include "config/load.h"
#include "graph/ops/ops.h"
#include "train/fixture.h"

namespace halfstep::train {
namespace {

/// Scale and counter of good steps.
struct Scale {
  float scale = 0;
  std::int32_t good = 0;

  bool operator==(const Scale&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Scale& s) {
  return out << s.scale << " after " << s.good << " good";
}

precision::LossScaling scaling(const std::string& settings) {
  TinyRun run;
  run.precision = "{policy: mixed_float16, loss_scale: {" + settings + "}}";
  return precision::resolve_loss_scaling(run.spec().precision.loss_scale, true);
}

/// The update as a plan of its own.
class Update {
 public:
  explicit Update(const precision::LossScaling& scaling) {
    graph::Graph graph;
    graph::Builder b(graph, graph::op_table());
    const graph::Value ok = b.placeholder("ok", DType::boolean, {});
    precision::update_scale(b, scaling, precision::declare_scale(b, scaling), ok);
    state_ = std::make_unique<plan::State>(graph, 0);
    plan_ = std::make_unique<plan::Plan>(plan::compile(graph, cpu()));
    arena_.reserve(plan_->arena_bytes());
    plan_->bind(*state_, arena_);
  }

  void set(Scale s) {
    *state_->tensor(precision::k_scale_variable).as<float>() = s.scale;
    *state_->tensor(precision::k_good_steps_variable).as<std::int32_t>() = s.good;
  }
  Scale get() const {
    return {*state_->tensor(precision::k_scale_variable).as<float>(),
            *state_->tensor(precision::k_good_steps_variable).as<std::int32_t>()};
  }
  Scale step(bool ok) {
    *plan_->input("ok").as<bool>() = ok;
    plan_->run();
    return get();
  }

 private:
  std::unique_ptr<plan::State> state_;
  std::unique_ptr<plan::Plan> plan_;
  plan::Arena arena_;
};

// The behaviour of each system, one step at a time, factor 2, interval n.

/// Source: TensorFlow, DynamicLossScale.update.
void tensorflow(Scale& s, bool ok, std::int32_t n) {
  if (!ok) {
    s = {std::max(s.scale / 2, 1.0F), 0};
  } else if (s.good + 1 >= n) {
    if (std::isfinite(s.scale * 2)) s.scale *= 2;
    s.good = 0;
  } else {
    ++s.good;
  }
}

/// Source: Keras 3, LossScaleOptimizer.
void keras(Scale& s, bool ok, std::int32_t n) {
  if (!ok) {
    s = {s.scale / 2, 0};
  } else if (s.good == n - 1) {
    s = {s.scale * 2, 0};
  } else {
    ++s.good;
  }
}

/// Source: PyTorch, amp_update_scale.
void torch(Scale& s, bool ok, std::int32_t n) {
  if (!ok) {
    s = {s.scale * 0.5F, 0};
  } else if (s.good + 1 == n) {
    if (std::isfinite(s.scale * 2)) s.scale *= 2;
    s.good = 0;
  } else {
    ++s.good;
  }
}

struct System {
  std::string_view name;
  std::string_view settings;
  void (*step)(Scale&, bool, std::int32_t);
  float initial;
};

constexpr std::array k_systems{
    System{"default", "", tensorflow, 32768},
    System{"tf1", "compat: tf1", tensorflow, 32768},
    System{"tf2", "compat: tf2", tensorflow, 32768},
    System{"keras3", "compat: keras3", keras, 32768},
    System{"torch", "compat: torch", torch, 65536},
};

std::string with_interval(const System& system, std::int32_t n) {
  return fmt::format(
      "{}{}growth_steps: {}", system.settings, system.settings.empty() ? "" : ", ", n);
}

}  // namespace

TEST_CASE("loss scale: every compat mode follows its system") {
  std::mt19937 random(3);
  for (const System& system : k_systems) {
    for (const std::int32_t n : {1, 2, 3, 7}) {
      CAPTURE(system.name);
      CAPTURE(n);
      Update update(scaling(with_interval(system, n)));
      REQUIRE(update.get() == Scale{system.initial, 0});
      Scale expected = update.get();
      for (int step = 0; step < 300; ++step) {
        const bool ok = random() % 4 != 0;
        system.step(expected, ok, n);
        REQUIRE(update.step(ok) == expected);
      }
    }
  }
}

TEST_CASE("loss scale: floors, overflow of growth and counters past the interval") {
  struct Row {
    std::string_view what;
    Scale start;
    std::string_view steps;  ///< g: good, b: bad
  };
  constexpr float k_large = 0x1p127F;
  constexpr std::array rows{
      Row{"seventeen bad steps", {32768, 0}, "bbbbbbbbbbbbbbbbb"},
      Row{"an initial scale below the floor", {0.125F, 0}, "gggbgggb"},
      Row{"growth out of float32", {k_large, 0}, "gggggggg"},
      Row{"and back", {k_large, 2}, "gbgggb"},
      Row{"a counter above the interval", {1024, 5}, "ggggggbgggg"},
  };
  for (const System& system : k_systems) {
    for (const Row& row : rows) {
      CAPTURE(system.name);
      CAPTURE(row.what);
      Update update(scaling(with_interval(system, 3)));
      update.set(row.start);
      Scale expected = row.start;
      for (const char step : row.steps) {
        system.step(expected, step == 'g', 3);
        CHECK(update.step(step == 'g') == expected);
      }
    }
  }
  // The results of the rules in numbers.
  Scale falls{32768, 0}, sinks{32768, 0}, bursts{k_large, 2};
  for (int i = 0; i < 17; ++i) tensorflow(falls, false, 3);
  for (int i = 0; i < 17; ++i) keras(sinks, false, 3);
  keras(bursts, true, 3);
  CHECK(falls.scale == 1);
  CHECK(sinks.scale == 0.25F);
  CHECK(bursts.scale == std::numeric_limits<float>::infinity());
}

TEST_CASE("loss scale: single settings win over the compat mode") {
  struct Row {
    std::string_view settings;
    std::string_view steps;
    std::vector<Scale> after;
  };
  const std::array rows{
      Row{"compat: keras3, min: 16, initial: 64", "bbbb", {{32, 0}, {16, 0}, {16, 0}, {16, 0}}},
      Row{"min: 0, initial: 2", "bbb", {{1, 0}, {0.5F, 0}, {0.25F, 0}}},
      Row{"max: 128, initial: 64, growth_steps: 1", "ggg", {{128, 0}, {128, 0}, {128, 0}}},
      Row{"max: 100, initial: 64, growth_steps: 1", "gg", {{64, 0}, {64, 0}}},
      Row{"growth_factor: 4, backoff_factor: 0.25, initial: 64, growth_steps: 2",
          "ggbgg",
          {{64, 1}, {256, 0}, {64, 0}, {64, 1}, {256, 0}}},
      Row{"hysteresis: 2, initial: 64, growth_steps: 3",
          "bgbgbb",
          {{64, 0}, {64, 1}, {32, 0}, {32, 1}, {32, 0}, {16, 0}}},
      Row{"compat: torch, initial: 8", "b", {{4, 0}}},
      Row{"compat: torch, initial: 32768", "b", {{16384, 0}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.settings);
    Update update(scaling(std::string(row.settings)));
    for (std::size_t i = 0; i < row.steps.size(); ++i) {
      CAPTURE(i);
      CHECK(update.step(row.steps[i] == 'g') == row.after[i]);
    }
  }
}

TEST_CASE("loss scale: compat modes choose counter and check") {
  using config::ScaleCheck, config::StepCounter;
  struct Row {
    std::string_view settings;
    StepCounter counter;
    ScaleCheck check;
  };
  for (const Row& row : {
           Row{"", StepCounter::applied, ScaleCheck::unscaled},
           Row{"compat: tf1", StepCounter::applied, ScaleCheck::unscaled},
           Row{"compat: tf2", StepCounter::attempted, ScaleCheck::unscaled},
           Row{"compat: keras3", StepCounter::applied, ScaleCheck::scaled},
           Row{"compat: torch", StepCounter::applied, ScaleCheck::scaled},
           Row{"compat: tf2, step_counter: applied", StepCounter::applied, ScaleCheck::unscaled},
           Row{"compat: torch, check: unscaled", StepCounter::applied, ScaleCheck::unscaled},
       }) {
    CAPTURE(row.settings);
    const precision::LossScaling resolved = scaling(std::string(row.settings));
    CHECK(resolved.step_counter == row.counter);
    CHECK(resolved.check == row.check);
  }
}

}  // namespace halfstep::train
