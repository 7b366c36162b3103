#include "study/compare.h"

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <vector>

#include "core/error.h"
#include "tiny.h"
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
  const train::Comparison c = compare(tiny_options(words, 2), tiny_data(), cpu(), silent);
  CHECK(c.status == train::Status::completed);
  CHECK(c.metric == "test_accuracy");
  CHECK(c.agreement_split == "test");
  CHECK(c.seeds == std::vector<std::int64_t>{11, 12});
  REQUIRE(c.runs.size() == 6);
  REQUIRE(c.pairs.size() == 4);
  for (const train::ComparedPair& pair : c.pairs) {
    CAPTURE(pair.policy);
    CAPTURE(pair.seed);
    CHECK(pair.init_hash_equal);
    CHECK(pair.batch_order_equal);
    CHECK(pair.metric_delta.has_value());
    CHECK(pair.disagreement.has_value());
  }
  // 128 training rows: five full batches and a tail, twice.
  for (const train::ComparedRun& run : c.runs) {
    CHECK(run.counters.applied == 12);
    REQUIRE(run.history.size() == 2);
    // The last step of an epoch is a tail, whose plan is another one.
    for (const train::EpochRecord& epoch : run.history) {
      CHECK(epoch.learning_rate == static_cast<double>(1e-3F));
    }
    CHECK(run.step_time.n > 0);
  }
  CHECK(c.runs[0].init_hash != c.runs[3].init_hash);
  CHECK(c.runs[0].final_hash != c.runs[1].final_hash);
  for (std::size_t i = 0; i < words.size(); ++i) {
    CAPTURE(words[i]);
    const train::TrainResult apart = alone(words[i], 12);
    CHECK(c.runs[3 + i].final_hash == apart.final_hash);
    CHECK(c.runs[3 + i].test == apart.test->metrics);
  }
  CHECK(c.find("rewrite:bfloat16")->equivalence.has_value());
  CHECK(c.find("mixed_bfloat16")->curve->steps == 12);
}

TEST_CASE("compare: a policy compared with itself agrees in everything") {
  CompareOptions options = tiny_options({"float32", "float32"}, 2);
  options.variants[1].name = "again";
  options.gates.push_back(parse_gate("again.equivalent == false || again.test_loss.delta > 0"));
  StudyObserver silent;
  const train::Comparison c = compare(options, tiny_data(), cpu(), silent);
  const train::ComparedPolicy* again = c.find("again");
  REQUIRE(again != nullptr);
  CHECK(again->metrics.at("test_loss").delta->value == 0);
  CHECK(again->metrics.at("val_loss").delta->value == 0);
  CHECK(again->disagreement->b + again->disagreement->c == 0);
  CHECK(again->curve->largest == 0);
  CHECK(again->equivalence->equivalent);
  REQUIRE(c.gates.size() == 1);
  CHECK(c.gates[0].holds == false);
}

TEST_CASE("compare: one seed has no intervals") {
  StudyObserver silent;
  const train::Comparison c =
      compare(tiny_options({"float32", "mixed_float16"}, 1), tiny_data(), cpu(), silent);
  const train::ComparedPolicy* half = c.find("mixed_float16");
  CHECK(half->metrics.at("test_accuracy").delta->n == 1);
  CHECK_FALSE(half->metrics.at("test_accuracy").delta->ci95.has_value());
  CHECK_FALSE(half->equivalence.has_value());
  CHECK_FALSE(c.notes.empty());
}

TEST_CASE("compare: a request to leave drops the seed under way and keeps those before") {
  struct Hear final : StudyObserver {
    void on_run(const train::ComparedRun&) override { ++runs; }
    int runs = 0;
  } hear;
  CompareOptions options = tiny_options({"float32", "mixed_bfloat16"}, 3);
  options.requests = [&] {
    return hear.runs >= 2 ? train::Request::interrupt : train::Request::none;
  };
  const train::Comparison c = compare(options, tiny_data(), cpu(), hear);
  CHECK(c.status == train::Status::interrupted);
  CHECK(c.runs.size() == 2);
  CHECK(c.seeds.size() == 3);

  options.requests = [] { return train::Request::preempt; };
  const train::Comparison none = compare(options, tiny_data(), cpu(), hear);
  CHECK(none.status == train::Status::preempted);
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
  config::RunSpec spec = tiny_spec();
  data::Dataset without;
  CHECK(metric_names(spec, tiny_data()).headline == "test_accuracy");
  CHECK(metric_names(spec, without).headline == "val_accuracy");
  spec.data.validation_split = 0;
  CHECK(metric_names(spec, without).headline == "train_accuracy");
  spec.metrics.clear();
  CHECK(metric_names(spec, without).all == std::vector<std::string>{"train_loss"});
  CHECK(metric_names(spec, without).headline == "train_loss");
}

}  // namespace
}  // namespace halfstep::study
