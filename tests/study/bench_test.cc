#include "study/bench.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "study/random_data.h"
#include "tiny.h"

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
  const train::BenchResult result = bench(options, tiny_data(), cpu(), silent);
  CHECK(result.status == train::Status::completed);
  REQUIRE(result.policies.size() == 2);
  for (const train::BenchedPolicy& policy : result.policies) {
    CAPTURE(policy.policy);
    REQUIRE(policy.repeats.size() == 3);
    for (const train::StepTimeSummary& repeat : policy.repeats) CHECK(repeat.n == 17);
    CHECK(policy.step_time.n == 51);
    CHECK(policy.step_time.warmup_steps == 3);
    CHECK(policy.step_time.median > 0);
    CHECK(policy.repeat_median.n == 3);
    CHECK(policy.repeat_median.ci95.has_value());
    CHECK(policy.profiled_steps == 17);
    CHECK_FALSE(policy.profile.empty());
    double total = 0;
    std::set<std::string> layers;
    for (const train::OpTime& op : policy.profile) {
      total += op.milliseconds;
      layers.insert(op.layer);
      CHECK_FALSE(op.kernel.empty());
    }
    CHECK(total > 0);
    CHECK(layers.count("hidden") == 1);
  }
  // Adam reads the gradient and reads and writes weights and two moments, all float32.
  const auto& profile = result.policies[0].profile;
  const auto update = std::find_if(profile.begin(), profile.end(), [](const train::OpTime& op) {
    return op.name == "optimizer/hidden/kernel/ResourceApplyAdam";
  });
  REQUIRE(update != profile.end());
  constexpr double k_weights = 784 * 16;
  CHECK(update->bytes >= 7 * 4 * k_weights);
  CHECK(update->bytes <= 7 * 4 * k_weights + 64);  // and a few scalars
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
  const train::BenchResult result = bench(options, tiny_data(), cpu(), hear);
  CHECK(result.status == train::Status::interrupted);
  CHECK(result.policies[0].repeats.size() == 1);
  CHECK(result.policies[0].step_time.n == 5);
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

}  // namespace
}  // namespace halfstep::study
