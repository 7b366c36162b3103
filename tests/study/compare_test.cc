#include "study/compare.h"

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <vector>

#include "core/error.h"
#include "fixture.h"
#include "train/trainer.h"

namespace halfstep::study {
namespace {

CompareOptions tiny_options(const std::vector<std::string>& words, std::int64_t seeds) {
  CompareOptions options;
  for (const std::string& word : words) {
    options.variants.push_back(tiny_variant(word));
  }
  options.seeds = seeds;
  return options;
}

/// Trains one policy alone, without taking turns.
train::TrainResult alone(const std::string& word, std::int64_t seed) {
  config::RunSpec spec = tiny_variant(word).spec;
  spec.seed = seed;
  train::Session session(spec, tiny_data(), cpu());
  train::TrainObserver silent;
  train::Trainer trainer(session, {}, silent);
  while (trainer.advance(1000)) {
  }
  return trainer.finish();
}

TEST_CASE("compare: policies of a seed share weights and batches, and slices change nothing") {
  const std::vector<std::string> words{"float32", "mixed_bfloat16", "rewrite:bfloat16"};
  StudyObserver silent;
  const report::CompareReport c = compare(tiny_options(words, 2), tiny_data(), cpu(), silent);
  CHECK(c.status == "completed");
  CHECK(c.metric == "test_accuracy");
  CHECK(c.seeds == std::vector<std::int64_t>{11, 12});
  REQUIRE(c.runs.size() == 6);
  REQUIRE(c.pairs.size() == 4);
  for (const report::PairBlock& pair : c.pairs) {
    CAPTURE(pair.policy);
    CAPTURE(pair.seed);
    CHECK(pair.init_hash_equal);
    CHECK(pair.batch_order_equal);
    CHECK(pair.accuracy_delta.has_value());
    CHECK(pair.mcnemar.has_value());
  }
  // 128 training rows: five full batches and a tail, twice.
  for (const report::ComparedRunBlock& run : c.runs) {
    CHECK(run.steps.applied == 12);
    // The last step of an epoch is a tail, whose plan is another one.
    CHECK(run.history.learning_rate == report::Column(2, static_cast<double>(1e-3F)));
    CHECK(run.step_time.n > 0);
  }
  CHECK(c.runs[0].init_hash != c.runs[3].init_hash);
  CHECK(c.runs[0].final_hash != c.runs[1].final_hash);
  for (std::size_t i = 0; i < words.size(); ++i) {
    CAPTURE(words[i]);
    const train::TrainResult apart = alone(words[i], 12);
    CHECK(c.runs[3 + i].final_hash == apart.final_hash);
    CHECK(c.runs[3 + i].test == report::metrics_block(apart.test->metrics));
  }
  CHECK(policy_named(c.policies, "rewrite:bfloat16")->tost.has_value());
  const report::PolicyBlock* half = policy_named(c.policies, "mixed_bfloat16");
  CHECK(half->loss_curve->steps == 12);
  CHECK(half->mcnemar->split == "test");
  CHECK(half->accuracy->metric == "test_accuracy");
  CHECK(half->precision->requested == "mixed_bfloat16");
  CHECK(half->flops_per_step > 0);
}

TEST_CASE("compare: a policy compared with itself agrees in everything") {
  CompareOptions options = tiny_options({"float32", "float32"}, 2);
  options.variants[1].name = "again";
  options.gates.push_back(parse_gate("again.equivalent == false || again.test_loss.delta > 0"));
  StudyObserver silent;
  const report::CompareReport c = compare(options, tiny_data(), cpu(), silent);
  const report::PolicyBlock* again = policy_named(c.policies, "again");
  REQUIRE(again != nullptr);
  CHECK(again->metrics.at("test_loss").delta->value == 0);
  CHECK(again->metrics.at("val_loss").delta->value == 0);
  CHECK(again->mcnemar->b + again->mcnemar->c == 0);
  CHECK(again->loss_curve->largest == 0);
  CHECK(again->tost->equivalent);
  REQUIRE(c.gates.size() == 1);
  CHECK(c.gates[0].holds == false);
}

TEST_CASE("compare: one seed has no intervals") {
  StudyObserver silent;
  const report::CompareReport c =
      compare(tiny_options({"float32", "mixed_float16"}, 1), tiny_data(), cpu(), silent);
  const report::PolicyBlock* half = policy_named(c.policies, "mixed_float16");
  CHECK(half->metrics.at("test_accuracy").delta->n == 1);
  CHECK_FALSE(half->metrics.at("test_accuracy").delta->ci95.has_value());
  CHECK_FALSE(half->tost.has_value());
  CHECK_FALSE(c.notes.empty());
}

TEST_CASE("compare: a request to leave drops the seed under way and keeps those before") {
  struct Hear final : StudyObserver {
    void on_run(const report::ComparedRunBlock&) override { ++runs; }
    int runs = 0;
  } hear;
  CompareOptions options = tiny_options({"float32", "mixed_bfloat16"}, 3);
  options.requests = [&] {
    return hear.runs >= 2 ? train::Request::interrupt : train::Request::none;
  };
  const report::CompareReport c = compare(options, tiny_data(), cpu(), hear);
  CHECK(c.status == "interrupted");
  CHECK(c.runs.size() == 2);
  CHECK(c.seeds.size() == 3);

  options.requests = [] { return train::Request::preempt; };
  const report::CompareReport none = compare(options, tiny_data(), cpu(), hear);
  CHECK(none.status == "preempted");
  CHECK(none.runs.empty());
  CHECK(none.policies.size() == 2);
}

TEST_CASE("compare: gates that do not fit are refused before anything is trained") {
  struct Deaf final : StudyObserver {
    void on_session(const std::string&, train::Session&) override { ++sessions; }
    int sessions = 0;
  } deaf;
  CompareOptions options = tiny_options({"float32", "mixed_bfloat16"}, 1);
  options.gates.push_back(parse_gate("mixed_bfloat16.val_acuracy.mean < 1"));
  CHECK_THROWS_AS(compare(options, tiny_data(), cpu(), deaf), UserError);
  CHECK(deaf.sessions == 0);
}

TEST_CASE("compare: the metric is the test accuracy, else that of validation, else of training") {
  CompareOptions options = tiny_options({"float32", "mixed_float16"}, 1);
  config::RunSpec& spec = options.variants.front().spec;
  data::Dataset without;
  CHECK(plan_of(options, tiny_data()).headline == "test_accuracy");
  CHECK(plan_of(options, tiny_data()).policies ==
        std::vector<std::string>{"float32", "mixed_float16"});
  CHECK(plan_of(options, without).headline == "val_accuracy");
  spec.data.validation_split = 0;
  CHECK(plan_of(options, without).headline == "train_accuracy");
  spec.metrics.clear();
  CHECK(plan_of(options, without).metrics == std::vector<std::string>{"train_loss"});
  CHECK(plan_of(options, without).headline == "train_loss");
}

}  // namespace
}  // namespace halfstep::study
