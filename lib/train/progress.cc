#include "train/progress.h"

#include <algorithm>

#include "core/error.h"
#include "core/json_fields.h"

namespace halfstep::train {
namespace {

constexpr int k_version = 1;

/// Counters stay small enough that sums with other counters fit in 64 bits. Members of later
/// versions are skipped, so that checkpoints are read both ways.
constexpr JsonFormat k_format{.nonfinite_strings = true,
                              .old_names = true,
                              .skip_unknown = true,
                              .max_integer = std::int64_t{1} << 53U};

[[noreturn]] void fail_state(const std::string& path, std::string_view why) {
  throw UserError(
      ErrorKind::data, {path, 0, 0, ""}, fmt::format("not the state of a run: {}", why));
}

/// The first contradiction between the counters of a progress; "" for a sound one.
std::string_view contradiction(const Progress& p) {
  const Counters& c = p.counters;
  // Checkpoints of earlier versions count the batch that a run diverged at as skipped, but not as
  // drawn.
  const std::int64_t at_hand = c.applied + c.skipped - c.ordinal;
  if (at_hand != 0 && at_hand != 1) return "'ordinal' is not applied + skipped";
  if (c.attempted != c.applied + c.skipped + c.retried) {
    return "'attempted' is not applied + skipped + retried";
  }
  if (c.samples_trained > c.samples_seen) return "'samples_trained' is above samples_seen";
  std::int64_t before = 0;
  for (const StepPoint& point : p.step_history.points) {
    if (point.step <= before) return "points of the step history are not in order";
    before = point.step;
  }
  const StepHistory& steps = p.step_history;
  const auto torn = [&](const auto& list) { return list.size() != steps.samples.size(); };
  const bool old = steps.samples.empty() && steps.metrics.empty();
  if ((!old && torn(steps.points)) ||
      std::ranges::any_of(steps.metrics, [&](const MetricSums& m) { return torn(m.sums); })) {
    return "columns of the step history differ in length";
  }
  return "";
}

}  // namespace

void Best::fields(Fields& f) {
  f("value", value, "infinite while no epoch had a finite value");
  f("epoch", epoch, "0: none yet");
  f("waited", waited, "epochs without improvement since");
}

void Progress::fields(Fields& f) {
  const FieldOptions added{.optional = true};
  std::optional<std::int64_t> status;
  if (finished) status = static_cast<std::int64_t>(*finished);
  f.constant("version", k_version, "");
  f("counters", counters, "");
  f("sums", sums, "over the epoch under way");
  f("history", history, "epochs");
  f("step_history", step_history, added);
  f("scale_events", scale_events, "changes of the loss scale");
  f("skips", skips, "attempts whose update was skipped");
  f("scale_events_left_out", scale_events_left_out, added);
  f("skips_left_out", skips_left_out, added);
  f("consecutive_skips", consecutive_skips, "");
  f("early_stopping", early_stopping, "");
  f("keep_best", keep_best, "");
  f("time_to_accuracy", time_to_accuracy, "");
  f("train_seconds", train_seconds, "s");
  f("wall_seconds", wall_seconds, "s");
  f("init_hash", init_hash, "of the first weights");
  f("finished", status, {.max = static_cast<double>(Status::diverged)});
  f("message", message, "why it finished");
  f("restored", restored, "whether the weights are the best epoch's");
  f("segments", segments, added);
  if (f.reads() && status) finished = static_cast<Status>(*status);
}

std::string to_json(const Progress& progress) {
  return halfstep::to_json(progress, k_format).dump(1) + "\n";
}

Progress progress_from_json(const std::string& text, const std::string& path) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version") != k_version) {
      throw UserError(ErrorKind::data, {path, 0, 0, ""}, "written by another version of halfstep");
    }
    Progress progress;
    std::vector<Violation> found;
    read_json(json, field_ref(progress), found, k_format);
    if (!found.empty()) {
      fail_state(path, fmt::format("{} {}", found.front().path, found.front().message));
    }
    if (const std::string_view why = contradiction(progress); !why.empty()) fail_state(path, why);
    return progress;
  } catch (const Json::exception& error) {
    fail_state(path, error.what());
  }
}

}  // namespace halfstep::train
