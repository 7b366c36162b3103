// Random damage to the state of a run.

#include "support/damage.h"

#include "train/progress.h"

namespace halfstep::train {
namespace {

using namespace std::string_view_literals;

TEST_CASE("damage: state.json") {
  Progress progress;
  progress.counters = {7, 5, 6, 1, 1, 60, 50};
  progress.sums.metrics = {{"accuracy", 3.5}};
  progress.history.emplace_back();
  progress.history[0].epoch = 1;
  progress.history[0].train = {{"loss", 0.25}};
  progress.scale_events.push_back(
      {1,
       2,
       3,
       32768,
       16384,
       FirstNonfinite{"conv/y", "Conv2D", "conv", "forward", "float16", "inf", 4}});
  progress.skips.push_back({2, 3, false, std::nullopt});
  progress.time_to_accuracy = TimeToAccuracy{"val_accuracy", 0.9, true, 4, 1, 1.5, 2.5};
  progress.finished = Status::completed;
  constexpr std::array k_tokens{"{"sv,
                                "}"sv,
                                "["sv,
                                "]"sv,
                                "\""sv,
                                ","sv,
                                "-1"sv,
                                "1e999"sv,
                                "null"sv,
                                "1.5"sv,
                                "true"sv,
                                "\"inf\""sv,
                                "9223372036854775807"sv,
                                "1e300"sv,
                                "{}"sv,
                                "[]"sv};
  CHECK_NOTHROW(progress_from_json(to_json(progress), "state.json"));
  const test::DamageOutcome outcome =
      test::read_damaged(to_json(progress), k_tokens, 3000, [](const std::string& text) {
        const Progress read = progress_from_json(text, "state.json");
        CHECK(read.counters.ordinal >= 0);
        CHECK(to_json(progress_from_json(to_json(read), "state.json")) == to_json(read));
      });
  CHECK(outcome.read > 0);
  CHECK(outcome.refused > 0);
}

}  // namespace
}  // namespace halfstep::train
