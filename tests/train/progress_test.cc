#include "train/progress.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <random>

#include "core/error.h"

namespace halfstep::train {
namespace {

constexpr double k_beyond_all = std::numeric_limits<double>::infinity();

/// Random values for every field; texts with quotes, line ends and other alphabets.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}

  /// A counter: sums of two stay within 2^53.
  std::int64_t integer() { return static_cast<std::int64_t>(random_() >> 14U); }
  bool flag() { return random_() % 2 == 0; }
  double real() {
    switch (random_() % 8) {
      case 0:
        return k_beyond_all;
      case 1:
        return -k_beyond_all;
      case 2:
        return 5e-324;
      case 3:
        return 0;
      default:
        return std::ldexp(static_cast<double>(random_()), static_cast<int>(random_() % 1900) - 980);
    }
  }
  std::string text() {
    constexpr std::string_view k_pieces[] = {"conv", "/", "\"", "\n", "ü", "\\", "層", " ", "\t"};
    std::string text;
    for (std::uint64_t n = random_() % 6; n > 0; --n) text += k_pieces[random_() % 9];
    return text;
  }
  Metrics metrics() {
    Metrics metrics;
    for (std::uint64_t n = random_() % 4; n > 0; --n) metrics[text()] = real();
    return metrics;
  }
  std::optional<FirstNonfinite> first() {
    if (flag()) return std::nullopt;
    return FirstNonfinite{text(),
                          text(),
                          text(),
                          text(),
                          text(),
                          flag() ? "inf" : "nan",
                          1 + integer(),
                          real(),
                          flag()};
  }
  EpochRecord epoch() {
    EpochRecord e;
    e.epoch = integer();
    e.partial = flag();
    e.train = metrics();
    e.validation = metrics();
    e.learning_rate = real();
    if (flag()) e.loss_scale = real();
    e.skipped_steps = integer();
    e.steps = integer();
    e.train_seconds = real();
    e.eval_seconds = real();
    return e;
  }
  template <class F>
  auto list(F make) {
    std::vector<decltype(make())> values;
    for (std::uint64_t n = random_() % 4; n > 0; --n) values.push_back(make());
    return values;
  }
  Progress progress() {
    Progress p;
    const std::int64_t applied = integer(), skipped = integer(), retried = integer();
    const std::int64_t trained = integer(), ordinal = applied + skipped;
    p.counters = {
        ordinal + retried, applied, ordinal, skipped, retried, trained + integer(), trained};
    p.sums = {real(), integer(), metrics(), integer(), integer(), integer(), real(), real()};
    p.history = list([&] { return epoch(); });
    p.scale_events = list([&] {
      return ScaleEvent{integer(), 1 + integer(), integer(), real(), real(), first()};
    });
    p.skips = list([&] { return SkippedStep{1 + integer(), integer(), flag(), first()}; });
    p.step_history.interval = 1 + integer();
    p.step_history.points = list([&] {
      std::optional<double> scale;
      if (flag()) scale = real();
      return StepPoint{1 + integer(), real(), integer(), integer(), real(), scale};
    });
    p.step_history.metrics = {{text(), {}}, {text(), {}}};
    for (std::size_t i = 0; i < p.step_history.points.size(); ++i) {
      p.step_history.samples.push_back(integer());
      for (MetricSums& metric : p.step_history.metrics) metric.sums.push_back(real());
    }
    std::sort(p.step_history.points.begin(),
              p.step_history.points.end(),
              [](const StepPoint& a, const StepPoint& b) { return a.step < b.step; });
    p.scale_events_left_out = integer();
    p.skips_left_out = integer();
    p.consecutive_skips = integer();
    p.early_stopping = {real(), integer(), integer()};
    p.keep_best = {real(), integer(), integer()};
    if (flag()) {
      p.time_to_accuracy =
          TimeToAccuracy{text(), real(), flag(), integer(), integer(), real(), real()};
    }
    p.train_seconds = real();
    p.wall_seconds = real();
    p.init_hash = text();
    if (flag()) p.finished = static_cast<Status>(random_() % 6);
    p.message = text();
    p.restored = flag();
    return p;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("progress: every field comes back from JSON as it was") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    const Progress progress = Draw(seed).progress();
    const Progress back = progress_from_json(to_json(progress), "state.json");
    CHECK(back == progress);
    CHECK(to_json(back) == to_json(progress));
  }
}

TEST_CASE("progress: NaN comes back as NaN") {
  Progress progress;
  progress.history.emplace_back();
  progress.history[0].train["loss"] = std::nan("");
  const Progress back = progress_from_json(to_json(progress), "state.json");
  CHECK(std::isnan(back.history.at(0).train.at("loss")));
}

TEST_CASE("progress: a checkpoint without a step history is read, one with a torn one is not") {
  Progress progress;
  progress.step_history.points = {{1, 2.5, 1, 0, 0.1, {}}, {2, 2.25, 1, 0, 0.1, 1024.0}};
  const std::string good = to_json(progress);
  std::string old = good;
  const auto rename = [](std::string& text, std::string_view key) {
    const std::size_t at = text.find(key);
    REQUIRE(at != std::string::npos);
    text.replace(at, key.size(), "\"other\"");
  };
  for (const std::string_view key : {"\"samples\"", "\"metrics\""}) {
    std::string without = good;
    const std::size_t at = without.find(key, without.find("\"step_history\""));
    without.replace(at, key.size(), "\"other\"");
    CHECK_NOTHROW(progress_from_json(without, "state.json"));
  }
  rename(old, "\"step_history\"");
  CHECK(progress_from_json(old, "state.json").step_history == StepHistory{});
  for (const std::string_view number : {"2.25", "1024.0"}) {
    std::string torn = good;
    torn.replace(torn.find(number), number.size(), "[]");
    CHECK_THROWS_AS(progress_from_json(torn, "state.json"), UserError);
  }
  progress.step_history.samples = {8};
  CHECK_THROWS_AS(progress_from_json(to_json(progress), "state.json"), UserError);
  progress.step_history.samples = {8, 8};
  progress.step_history.metrics = {{"accuracy", {1, 2, 3}}};
  CHECK_THROWS_AS(progress_from_json(to_json(progress), "state.json"), UserError);
  progress.step_history.metrics = {};
  progress.step_history.points[1].step = 1;
  CHECK_THROWS_AS(progress_from_json(to_json(progress), "state.json"), UserError);
}

TEST_CASE("progress: lists of any length keep their ends and count what is between") {
  std::vector<int> list;
  std::int64_t left_out = 0;
  for (int i = 0; i < 2500; ++i) append_bounded(list, i, left_out);
  REQUIRE(list.size() == 2000);
  CHECK(left_out == 500);
  CHECK(list[999] == 999);
  CHECK(list[1000] == 1500);
  CHECK(list.back() == 2499);
}

TEST_CASE("progress: counters that cannot be are refused, and named") {
  Progress progress;
  progress.counters = {5, 3, 4, 1, 1, 40, 30};
  progress.history.emplace_back();
  progress.finished = Status::diverged;
  const std::string good = to_json(progress);
  struct Case {
    std::string_view key;
    std::string_view value;
    std::string_view named;
  };
  constexpr Case k_cases[] = {
      {"ordinal", "-1", "counters.ordinal is -1, must be at least 0"},
      {"ordinal",
       "9223372036854775807",
       "counters.ordinal is 9223372036854775807, must be at most"},
      {"ordinal", "5", "'ordinal' is not applied + skipped"},
      {"attempted", "4", "'attempted' is not"},
      {"applied", "3.5", "counters.applied is 3.5, must be integer"},
      {"applied", "1e300", "counters.applied is 1e+300, must be integer"},
      {"applied", "true", "counters.applied is true, must be integer"},
      {"samples_trained", "41", "'samples_trained' is above"},
      {"epoch", "-3", "history[0].epoch is -3, must be at least 0"},
      {"consecutive_skips", "-1", "consecutive_skips is -1, must be"},
      {"waited", "-1", "early_stopping.waited is -1, must be"},
      {"finished", "6", "finished is 6, must be at most 5"},
      {"finished", "-1", "finished is -1, must be at least 0"},
      {"train_seconds", "\"soon\"", "train_seconds is \"soon\", must be number"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.key);
    CAPTURE(c.value);
    std::string text = good;
    const std::string key = fmt::format("\"{}\": ", c.key);
    const std::size_t at = text.find(key) + key.size();
    text.replace(at, text.find_first_of(",\n", at) - at, c.value);
    try {
      progress_from_json(text, "state.json");
      FAIL_CHECK("read");
    } catch (const UserError& error) {
      CHECK(std::string_view(error.what()).find(c.named) != std::string_view::npos);
    }
  }
}

TEST_CASE("progress: texts that are none are refused with their path") {
  const std::string good = to_json(Draw(1).progress());
  std::vector<std::string> bad{"", "{}", "[]", "null", "not json", good + good};
  for (std::size_t cut = 0; cut < good.size() - 2; cut += 97) bad.push_back(good.substr(0, cut));
  std::string other = good;
  other.replace(other.find("\"version\": "), 12, "\"version\": 9");
  bad.push_back(other);
  std::string wrong = good;
  wrong.replace(wrong.find("\"applied\": "), 11, "\"applied\": \"many\", \"was\": ");
  bad.push_back(wrong);
  for (const std::string& text : bad) {
    CAPTURE(text);
    try {
      progress_from_json(text, "run/state.json");
      FAIL_CHECK("read");
    } catch (const UserError& error) {
      CHECK(error.kind() == ErrorKind::data);
      CHECK(error.problems().at(0).where.file == "run/state.json");
    }
  }
}

}  // namespace halfstep::train
