#include "train/progress.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/error.h"

namespace halfstep::train {
namespace {

using Json = nlohmann::json;

/// Thrown for JSON that is no valid Progress.
struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// JSON has no infinities or NaN: a number that is not finite is written as a string.
Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto word = json.get<std::string>();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  throw Malformed(fmt::format("'{}' is no number", word));
}

/// A counter: whole, not negative, and small enough that sums of counters fit in 64 bits.
std::int64_t whole_number(const Json& value, std::string_view name) {
  constexpr std::uint64_t k_most = std::uint64_t{1} << 53U;
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > k_most) {
    throw Malformed(fmt::format(
        "'{}' must be a whole number from 0 to {}, got {}", name, k_most, value.dump()));
  }
  return value.get<std::int64_t>();
}

/// A counter that is a member of an object.
std::int64_t count(const Json& json, const char* name) { return whole_number(json.at(name), name); }

std::optional<Status> read_status(const Json& json) {
  if (json.at("finished").is_null()) return std::nullopt;
  const std::int64_t value = count(json, "finished");
  if (value > static_cast<std::int64_t>(Status::diverged)) {
    throw Malformed(fmt::format("'finished' is {}, which is no status", value));
  }
  return static_cast<Status>(value);
}

Json write(const Metrics& metrics) {
  Json json = Json::object();
  for (const auto& [name, value] : metrics) json[name] = number(value);
  return json;
}

Metrics read_metrics(const Json& json) {
  Metrics metrics;
  for (const auto& [name, value] : json.items()) metrics[name] = number(value);
  return metrics;
}

Json write(const std::optional<FirstNonfinite>& first) {
  if (!first) return nullptr;
  return {{"tensor", first->tensor},
          {"op", first->op},
          {"layer", first->layer},
          {"phase", first->phase},
          {"dtype", first->dtype},
          {"kind", first->kind},
          {"count", first->count},
          {"finite_absmax", number(first->finite_absmax)},
          {"loss_finite", first->loss_finite}};
}

std::optional<FirstNonfinite> read_first(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return FirstNonfinite{json.at("tensor"),
                        json.at("op"),
                        json.at("layer"),
                        json.at("phase"),
                        json.at("dtype"),
                        json.at("kind"),
                        count(json, "count"),
                        number(json.at("finite_absmax")),
                        json.at("loss_finite")};
}

Json write(const Counters& c) {
  return {{"attempted", c.attempted},
          {"applied", c.applied},
          {"ordinal", c.ordinal},
          {"skipped", c.skipped},
          {"retried", c.retried},
          {"samples_seen", c.samples_seen},
          {"samples_trained", c.samples_trained}};
}

Counters read_counters(const Json& json) {
  const Counters c{count(json, "attempted"),
                   count(json, "applied"),
                   count(json, "ordinal"),
                   count(json, "skipped"),
                   count(json, "retried"),
                   count(json, "samples_seen"),
                   count(json, "samples_trained")};
  // The batch at which a run diverged counts as skipped, but `ordinal` is not advanced past it.
  const std::int64_t at_hand = c.applied + c.skipped - c.ordinal;
  if (at_hand != 0 && at_hand != 1) throw Malformed("'ordinal' is not applied + skipped");
  if (c.attempted != c.applied + c.skipped + c.retried)
    throw Malformed("'attempted' is not applied + skipped + retried");
  if (c.samples_trained > c.samples_seen)
    throw Malformed("'samples_trained' is above samples_seen");
  return c;
}

Json write(const EpochSums& s) {
  return {{"loss", number(s.loss)},
          {"loss_samples", s.loss_samples},
          {"metrics", write(s.metrics)},
          {"samples", s.samples},
          {"steps", s.steps},
          {"skipped", s.skipped},
          {"seconds", number(s.seconds)},
          {"learning_rate", number(s.learning_rate)}};
}

EpochSums read_sums(const Json& json) {
  return {number(json.at("loss")),
          count(json, "loss_samples"),
          read_metrics(json.at("metrics")),
          count(json, "samples"),
          count(json, "steps"),
          count(json, "skipped"),
          number(json.at("seconds")),
          number(json.at("learning_rate"))};
}

Json write(const EpochRecord& e) {
  return {{"epoch", e.epoch},
          {"partial", e.partial},
          {"train", write(e.train)},
          {"validation", write(e.validation)},
          {"learning_rate", number(e.learning_rate)},
          {"loss_scale", e.loss_scale ? number(*e.loss_scale) : Json(nullptr)},
          {"skipped_steps", e.skipped_steps},
          {"steps", e.steps},
          {"train_seconds", number(e.train_seconds)},
          {"eval_seconds", number(e.eval_seconds)}};
}

EpochRecord read_epoch(const Json& json) {
  EpochRecord e;
  e.epoch = count(json, "epoch");
  e.partial = json.at("partial");
  e.train = read_metrics(json.at("train"));
  e.validation = read_metrics(json.at("validation"));
  e.learning_rate = number(json.at("learning_rate"));
  if (!json.at("loss_scale").is_null()) e.loss_scale = number(json.at("loss_scale"));
  e.skipped_steps = count(json, "skipped_steps");
  e.steps = count(json, "steps");
  e.train_seconds = number(json.at("train_seconds"));
  e.eval_seconds = number(json.at("eval_seconds"));
  return e;
}

Json write(const ScaleEvent& e) {
  return {{"step", e.step},
          {"attempt", e.attempt},
          {"ordinal", e.ordinal},
          {"from", number(e.from)},
          {"to", number(e.to)},
          {"first_nonfinite", write(e.first_nonfinite)}};
}

ScaleEvent read_event(const Json& json) {
  return {count(json, "step"),
          count(json, "attempt"),
          count(json, "ordinal"),
          number(json.at("from")),
          number(json.at("to")),
          read_first(json.at("first_nonfinite"))};
}

Json write(const SkippedStep& s) {
  return {{"attempt", s.attempt},
          {"ordinal", s.ordinal},
          {"retried", s.retried},
          {"first_nonfinite", write(s.first_nonfinite)}};
}

SkippedStep read_skip(const Json& json) {
  return {count(json, "attempt"),
          count(json, "ordinal"),
          json.at("retried"),
          read_first(json.at("first_nonfinite"))};
}

/// Points as arrays of numbers: a thousand objects would repeat the member names a thousand times.
Json write(const StepHistory& history) {
  Json points = Json::array();
  for (const StepPoint& p : history.points) {
    points.push_back({p.step,
                      number(p.loss_sum),
                      p.losses,
                      p.skipped,
                      number(p.learning_rate),
                      p.loss_scale ? number(*p.loss_scale) : Json(nullptr)});
  }
  return {{"interval", history.interval}, {"points", std::move(points)}};
}

StepHistory read_step_history(const Json& json) {
  StepHistory history{count(json, "interval"), {}};
  if (history.interval < 1) throw Malformed("'interval' of the step history is 0");
  for (const Json& values : json.at("points")) {
    StepPoint point{whole_number(values.at(0), "step of a point"),
                    number(values.at(1)),
                    whole_number(values.at(2), "losses of a point"),
                    whole_number(values.at(3), "skipped batches of a point"),
                    number(values.at(4)),
                    std::nullopt};
    if (!values.at(5).is_null()) point.loss_scale = number(values.at(5));
    if (point.step <= (history.points.empty() ? 0 : history.points.back().step)) {
      throw Malformed("points of the step history are not in order");
    }
    history.points.push_back(point);
  }
  if (history.points.size() > StepHistory::k_most_points) {
    throw Malformed("the step history has too many points");
  }
  return history;
}

Json write(const Best& b) {
  return {{"value", number(b.value)}, {"epoch", b.epoch}, {"waited", b.waited}};
}

Best read_best(const Json& json) {
  return {number(json.at("value")), count(json, "epoch"), count(json, "waited")};
}

Json write(const std::optional<TimeToAccuracy>& t) {
  if (!t) return nullptr;
  return {{"metric", t->metric},
          {"target", number(t->target)},
          {"reached", t->reached},
          {"step", t->step},
          {"epoch", t->epoch},
          {"train_seconds", number(t->train_seconds)},
          {"wall_seconds", number(t->wall_seconds)}};
}

std::optional<TimeToAccuracy> read_time_to_accuracy(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return TimeToAccuracy{json.at("metric"),
                        number(json.at("target")),
                        json.at("reached"),
                        count(json, "step"),
                        count(json, "epoch"),
                        number(json.at("train_seconds")),
                        number(json.at("wall_seconds"))};
}

Json write(const Segment& segment) {
  return {{"first_ordinal", segment.first_ordinal},
          {"started_at", segment.started_at},
          {"host", segment.host},
          {"device", segment.device},
          {"isa", segment.isa},
          {"threads", segment.threads},
          {"policy", segment.policy},
          {"config_hash", segment.config_hash},
          {"data_hash", segment.data_hash},
          {"changed", segment.changed}};
}

Segment read_segment(const Json& json) {
  return {json.at("first_ordinal"),
          json.at("started_at"),
          json.at("host"),
          json.at("device"),
          json.at("isa"),
          json.at("threads"),
          json.at("policy"),
          json.at("config_hash"),
          json.at("data_hash"),
          json.at("changed")};
}

template <class T>
Json write_list(const std::vector<T>& values) {
  Json json = Json::array();
  for (const T& value : values) json.push_back(write(value));
  return json;
}

template <class T>
std::vector<T> read_list(const Json& json, T (*read)(const Json&)) {
  std::vector<T> values;
  for (const Json& value : json) values.push_back(read(value));
  return values;
}

constexpr int k_version = 1;

[[noreturn]] void fail_state(const std::string& path, std::string_view why) {
  throw UserError(
      ErrorKind::data, {path, 0, 0, ""}, fmt::format("not the state of a run: {}", why));
}

}  // namespace

std::string to_json(const Progress& p) {
  const Json json{{"version", k_version},
                  {"counters", write(p.counters)},
                  {"sums", write(p.sums)},
                  {"history", write_list(p.history)},
                  {"step_history", write(p.step_history)},
                  {"scale_events", write_list(p.scale_events)},
                  {"skips", write_list(p.skips)},
                  {"scale_events_left_out", p.scale_events_left_out},
                  {"skips_left_out", p.skips_left_out},
                  {"consecutive_skips", p.consecutive_skips},
                  {"early_stopping", write(p.early_stopping)},
                  {"keep_best", write(p.keep_best)},
                  {"time_to_accuracy", write(p.time_to_accuracy)},
                  {"train_seconds", number(p.train_seconds)},
                  {"wall_seconds", number(p.wall_seconds)},
                  {"init_hash", p.init_hash},
                  {"finished", p.finished ? Json(static_cast<int>(*p.finished)) : Json(nullptr)},
                  {"message", p.message},
                  {"restored", p.restored},
                  {"segments", write_list(p.segments)}};
  return json.dump(1) + "\n";
}

Progress progress_from_json(const std::string& text, const std::string& path) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version") != k_version) {
      throw UserError(ErrorKind::data, {path, 0, 0, ""}, "written by another version of halfstep");
    }
    Progress p;
    p.counters = read_counters(json.at("counters"));
    p.sums = read_sums(json.at("sums"));
    p.history = read_list(json.at("history"), read_epoch);
    p.scale_events = read_list(json.at("scale_events"), read_event);
    p.skips = read_list(json.at("skips"), read_skip);
    if (json.contains("step_history")) {
      p.step_history = read_step_history(json.at("step_history"));
      p.scale_events_left_out = count(json, "scale_events_left_out");
      p.skips_left_out = count(json, "skips_left_out");
    }
    p.consecutive_skips = count(json, "consecutive_skips");
    p.early_stopping = read_best(json.at("early_stopping"));
    p.keep_best = read_best(json.at("keep_best"));
    p.time_to_accuracy = read_time_to_accuracy(json.at("time_to_accuracy"));
    p.train_seconds = number(json.at("train_seconds"));
    p.wall_seconds = number(json.at("wall_seconds"));
    p.init_hash = json.at("init_hash");
    p.finished = read_status(json);
    p.message = json.at("message");
    p.restored = json.at("restored");
    if (json.contains("segments")) p.segments = read_list(json.at("segments"), read_segment);
    return p;
  } catch (const nlohmann::json::exception& error) {
    fail_state(path, error.what());
  } catch (const Malformed& error) {
    fail_state(path, error.what());
  }
}

}  // namespace halfstep::train
