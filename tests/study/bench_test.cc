#include "study/bench.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "data/value_checks.h"
#include "fixture.h"
#include "study/random_data.h"

namespace halfstep::study {
namespace {

TEST_CASE("bench: every repeat counts the steps asked for") {
  BenchOptions options;
  options.variants.push_back(tiny_variant("float32"));
  options.variants.push_back(tiny_variant("mixed_bfloat16"));
  options.warmup = 3;
  options.steps = 17;
  options.repeats = 3;
  options.profile = true;
  StudyObserver silent;
  const report::BenchReport result = bench(options, tiny_data(), cpu(), silent);
  CHECK(result.status == "completed");
  REQUIRE(result.policies.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const report::Measured& measured = result.policies[i].measured;
    CAPTURE(result.policies[i].policy);
    REQUIRE(measured.repeats.size() == 3);
    for (const report::StepTime& repeat : measured.repeats) CHECK(repeat.n == 17);
    CHECK(measured.step_time.n == 51);
    CHECK(measured.step_time.warmup_steps == 3);
    CHECK(*measured.step_time.median > 0);
    CHECK(measured.repeat_median->n == 3);
    CHECK(measured.repeat_median->ci95.has_value());
    CHECK(measured.throughput.flops_per_step > 0);
    REQUIRE(result.ops_of(i) != nullptr);
    const report::Profile* profile = result.profile_of(i);
    REQUIRE(profile != nullptr);
    CHECK(profile->steps == 17);
    CHECK_FALSE(profile->ops.empty());
    CHECK(profile->total_ms > 0);
    std::set<std::string> layers;
    for (const report::ProfiledOp& op : profile->ops) {
      layers.insert(op.layer);
      CHECK_FALSE(op.kernel.empty());
    }
    CHECK(layers.count("hidden") == 1);
  }
  CHECK(report::to_json(result.measured) == report::to_json(result.policies[0].measured));
  // Adam reads the gradient and reads and writes weights and two moments, all float32.
  const auto& ops = result.profile_of(0)->ops;
  const auto update = std::find_if(ops.begin(), ops.end(), [](const report::ProfiledOp& op) {
    return op.name == "optimizer/hidden/kernel/ResourceApplyAdam";
  });
  REQUIRE(update != ops.end());
  REQUIRE(update->achieved_gbs.has_value());
  constexpr double k_weights = 784 * 16;
  const double bytes = *update->achieved_gbs * update->ms * 1e6;
  CHECK(bytes >= 7 * 4 * k_weights - 1);
  CHECK(bytes <= 7 * 4 * k_weights + 64);  // and a few scalars
  CHECK_FALSE(result.policies[0].speedup.has_value());
  CHECK(result.policies[1].speedup.has_value());
}

TEST_CASE("bench: a request to leave keeps the repeats that are complete") {
  struct Hear final : StudyObserver {
    void on_progress(const StudyProgress& p) override { progress = p; }
    StudyProgress progress;
  } hear;
  BenchOptions options;
  options.variants.push_back(tiny_variant("float32"));
  options.warmup = 0;
  options.steps = 5;
  options.repeats = 4;
  options.requests = [&] {
    return hear.progress.round == 2 ? train::Request::interrupt : train::Request::none;
  };
  const report::BenchReport result = bench(options, tiny_data(), cpu(), hear);
  CHECK(result.status == "interrupted");
  CHECK(result.policies[0].measured.repeats.size() == 1);
  CHECK(result.policies[0].measured.step_time.n == 5);
  for (const char* note : {"ended early: 1 of 4 repeats are complete",
                           "fewer than 3 repeats: too few for a conclusion"}) {
    CAPTURE(note);
    CHECK(contains(result.notes, note));
  }
}

TEST_CASE("bench: random data has the shape asked for and is the same for the same seed") {
  data::Dataset description;
  description.sample_shape = {4, 3, 2};
  description.classes = 7;
  description.train.images = Tensor(DType::uint8, {0, 4, 3, 2});
  description.train.labels = Tensor(DType::int32, {0});
  const data::Dataset a = random_samples(description, 50, 1);
  const data::Dataset b = random_samples(description, 50, 1);
  const data::Dataset other = random_samples(description, 50, 2);
  CHECK(a.train.images.shape() == Shape{50, 4, 3, 2});
  CHECK(a.sample_shape == Shape{4, 3, 2});
  CHECK(a.test.samples() == 0);
  CHECK_NOTHROW(data::check_labels(data::view(a.train), 7, "random"));
  CHECK(data::content_hash(a) == data::content_hash(b));
  CHECK(data::content_hash(a) != data::content_hash(other));
}

TEST_CASE("bench: random samples of several inputs have indices where the model takes them") {
  data::Dataset description;
  description.sample_shape = {6};
  description.inputs = {{"table", {2}}, {"words", {3}, 5}, {"number", {1}}};
  description.train.images = Tensor(DType::float32, {0, 6});
  description.train.labels = Tensor(DType::int32, {0});
  const data::Dataset random = random_samples(description, 40, 1);
  CHECK_NOTHROW(data::check_indices(data::view(random.train).images, 2, 3, 5, "random"));
  CHECK_THROWS(data::check_indices(data::view(random.train).images, 2, 3, 4, "random"));
  CHECK_THROWS(data::check_indices(data::view(random.train).images, 1, 1, 5, "random"));
  CHECK_THROWS(data::check_indices(data::view(random.train).images, 5, 1, 5, "random"));
}

}  // namespace
}  // namespace halfstep::study
