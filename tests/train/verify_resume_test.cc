#include "train/verify_resume.h"

#include <doctest/doctest.h>

#include <ostream>
#include <string_view>

#include "core/error.h"
#include "train/fixture.h"

namespace halfstep::train {

TEST_CASE(
    "verify_resume: every policy goes on bit by bit, in the middle and at the end of epochs") {
  for (std::string_view policy : {"float32", "mixed_float16", "mixed_bfloat16"}) {
    for (const std::int64_t at : {1, 4, 6}) {
      CAPTURE(policy);
      CAPTURE(at);
      TinyRun tiny;
      tiny.precision = fmt::format("{{policy: {}, loss_scale: {{growth_steps: 3}}}}", policy);
      const test::TemporaryDirectory directory;
      const ResumeCheck check =
          verify_resume(tiny.spec(), digits(), cpu(), at, directory.path().string());
      CHECK(check.equal());
      CHECK(check.steps == 2 * at);
      CHECK(check.whole_hash == check.resumed_hash);
      CHECK_FALSE(check.whole_hash.empty());
    }
  }
}

TEST_CASE("verify_resume: attempts that are retried are no batches") {
  TinyRun tiny;
  tiny.precision =
      "{policy: mixed_float16, loss_scale: {initial: 1099511627776, on_overflow: retry}}";
  const test::TemporaryDirectory directory;
  const ResumeCheck check =
      verify_resume(tiny.spec(), digits(), cpu(), 3, directory.path().string());
  CHECK(check.equal());
  CHECK(check.at_step == 3);
  CHECK(check.steps == 6);
}

TEST_CASE("verify_resume: a run that ends before the step is refused") {
  const data::Dataset bad = digits_with_nan();
  TinyRun tiny;
  tiny.data = "{name: synthetic_digits, shuffle: false}";
  tiny.training = "{epochs: 1, batch_size: 20}";
  const test::TemporaryDirectory directory;
  CHECK_THROWS_WITH_AS(verify_resume(tiny.spec(), bad, cpu(), 3, directory.path().string()),
                       doctest::Contains("the run ends before 3 batches"),
                       UserError);
}

TEST_CASE("verify_resume: a step behind the end of the run is refused") {
  const test::TemporaryDirectory directory;
  TinyRun tiny;
  CHECK_THROWS_AS(verify_resume(tiny.spec(), digits(), cpu(), 12, directory.path().string()),
                  UserError);
  config::RunSpec shorter = tiny.spec();
  shorter.training.max_steps = 5;
  CHECK(verify_resume(shorter, digits(), cpu(), 4, directory.path().string()).steps == 5);
  CHECK_THROWS_AS(verify_resume(shorter, digits(), cpu(), 5, directory.path().string()), UserError);
}

}  // namespace halfstep::train
