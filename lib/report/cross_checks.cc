#include "report/cross_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>

#include "report/cross_check_parts.h"

namespace halfstep::report {
namespace {

using Found = std::vector<Violation>;

/// The codes a status may end in; -1 stands for null. A study keeps nothing that it could be
/// resumed from, and finished runs may be put side by side although one of them diverged.
struct StatusCodes {
  std::string_view status;
  std::array<int, 2> run;
  std::array<int, 3> study;
};

constexpr int k_no = -2;
constexpr std::array k_status_codes{StatusCodes{"running", {-1, -1}, {k_no, k_no, k_no}},
                                    StatusCodes{"completed", {0, 5}, {0, 5, k_no}},
                                    StatusCodes{"target_reached", {0, 0}, {k_no, k_no, k_no}},
                                    StatusCodes{"stopped_early", {0, 5}, {k_no, k_no, k_no}},
                                    StatusCodes{"interrupted", {130, 130}, {130, k_no, k_no}},
                                    StatusCodes{"preempted", {75, 75}, {143, k_no, k_no}},
                                    StatusCodes{"diverged", {4, 4}, {0, 4, 5}}};

void check_exit_code(const Json& report, Found& found) {
  if (!report.contains("status") || !report.contains("exit_code")) return;
  const bool study = report.at("kind") == "compare" || report.at("kind") == "bench";
  const int code = report.at("exit_code").is_null() ? -1 : report.at("exit_code").get<int>();
  for (const StatusCodes& row : k_status_codes) {
    if (report.at("status") != row.status) continue;
    const std::span<const int> codes = study ? std::span<const int>(row.study) : row.run;
    if (std::find(codes.begin(), codes.end(), code) == codes.end()) {
      found.push_back({"exit_code",
                       fmt::format("is {}, which does not fit the status {}",
                                   report.at("exit_code").dump(),
                                   report.at("status").dump())});
    }
  }
}

/// Finds what each of some paths such as "history.loss[2]" leads to, in one walk over the report.
class PathFinder {
 public:
  /// Paths are the keys of `paths`.
  explicit PathFinder(const Json& paths) {
    for (const auto& [path, kind] : paths.items()) found_.emplace(path, nullptr);
  }

  void walk(const Json& json) {
    // Keys may hold dots and brackets themselves; of two ways to write a path, the first counts.
    const auto it = found_.find(path_);
    if (it != found_.end() && it->second == nullptr) it->second = &json;
    const std::size_t size = path_.size();
    if (json.is_object()) {
      for (const auto& [key, value] : json.items()) {
        path_ += (path_.empty() ? "" : ".") + key;
        walk(value);
        path_.resize(size);
      }
    } else if (json.is_array()) {
      for (std::size_t i = 0; i < json.size(); ++i) {
        path_ += fmt::format("[{}]", i);
        walk(json[i]);
        path_.resize(size);
      }
    }
  }

  /// nullptr when the path leads nowhere.
  const Json* at(const std::string& path) const { return found_.at(path); }

 private:
  std::unordered_map<std::string, const Json*> found_;
  std::string path_;
};

void check_nonfinite(const Json& report, Found& found) {
  if (!report.contains("nonfinite") || report.at("nonfinite").empty()) return;
  PathFinder finder(report.at("nonfinite"));
  finder.walk(report);
  for (const auto& [path, kind] : report.at("nonfinite").items()) {
    const Json* target = finder.at(path);
    const std::string place = "nonfinite." + path;
    if (target == nullptr) {
      found.push_back({place, "leads nowhere in this report"});
    } else if (!target->is_null()) {
      found.push_back({place, fmt::format("is {} there and must be null", shown(*target))});
    }
  }
}

void check_counters(const Json& report, Found& found) {
  const auto steps = [&](const char* name) {
    return report.at("steps").at(name).get<std::int64_t>();
  };
  const Json& scale = report.at("loss_scale");
  const auto skipped = scale.at("skipped_steps").get<std::int64_t>();
  const auto retried = scale.at("retried_steps").get<std::int64_t>();
  if (steps("attempted") != steps("applied") + skipped + retried) {
    found.push_back({"steps.attempted", "is not applied + skipped + retried"});
  }
  if (steps("ordinal") != steps("applied") + skipped) {
    found.push_back({"steps.ordinal", "is not applied + skipped"});
  }
  const Json& samples = report.at("samples");
  if (samples.at("trained") > samples.at("seen")) {
    found.push_back({"samples.trained", "is more than samples.seen"});
  }
  if (scale.at("mode") == "none" && !scale.at("events").empty()) {
    found.push_back({"loss_scale.events", "holds changes of a scale although the mode is none"});
  }
  const Json& rewrite = report.at("precision").at("rewrite");
  if (rewrite.at("nodes_converted") > rewrite.at("nodes_total")) {
    found.push_back({"precision.rewrite.nodes_converted", "is more than nodes_total"});
  }
}

/// Lists of what happened at some attempts: in order, within the run, and all that were counted.
void check_attempts(const Json& report, const char* list, Found& found) {
  const Json& entries = report.at("loss_scale").at(list);
  const Json& attempted = report.at("steps").at("attempted");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Json& attempt = entries[i].at("attempt");
    const std::string path = fmt::format("loss_scale.{}[{}]", list, i);
    if (attempt > attempted) found.push_back({path + ".attempt", "is more than steps.attempted"});
    if (i > 0 && attempt <= entries[i - 1].at("attempt")) {
      found.push_back({path + ".attempt", "does not come after the one before"});
    }
    if (entries[i].at("ordinal") > report.at("steps").at("ordinal")) {
      found.push_back({path + ".ordinal", "is more than steps.ordinal"});
    }
  }
}

void check_skips(const Json& report, Found& found) {
  const Json& scale = report.at("loss_scale");
  if (!scale.contains("skips_left_out")) return;
  // Unsigned: sums of a damaged report may be past all bounds.
  const auto listed = scale.at("skips").size() + scale.at("skips_left_out").get<std::uint64_t>();
  const auto counted = scale.at("skipped_steps").get<std::uint64_t>() +
                       scale.at("retried_steps").get<std::uint64_t>();
  if (listed != counted) {
    found.push_back(
        {"loss_scale.skips",
         fmt::format(
             "tells of {} attempts, skipped_steps and retried_steps of {}", listed, counted)});
  }
}

/// The step history has no more batches and skips than the run, and as many when it begins with it.
void check_run_by_step(const Json& report, Found& found) {
  if (!report.contains("step_history")) return;
  const Json& history = report.at("step_history");
  check_step_history(history, "step_history", found);
  const Json& steps = history.at("step");
  if (steps.empty()) return;
  if (steps.back() > report.at("steps").at("ordinal")) {
    found.push_back({"step_history.step", "goes beyond steps.ordinal"});
  }
  std::uint64_t skipped = 0;
  for (const Json& count : history.at("skipped_steps")) skipped += count.get<std::uint64_t>();
  const auto wanted = report.at("loss_scale").at("skipped_steps").get<std::uint64_t>();
  const bool whole =
      steps.front() <= history.at("interval") && steps.back() == report.at("steps").at("ordinal");
  if (whole ? skipped != wanted : skipped > wanted) {
    found.push_back(
        {"step_history.skipped_steps",
         fmt::format("adds up to {}, loss_scale.skipped_steps is {}", skipped, wanted)});
  }
}

}  // namespace

void check_common(const Json& report, Found& found) {
  check_exit_code(report, found);
  check_nonfinite(report, found);
}

void check_train(const Json& report, Found& found) {
  check_history(report.at("history"), "history", found);
  check_counters(report, found);
  check_step_time(report.at("step_time"), "step_time", found);
  for (const char* list : {"events", "skips"}) check_attempts(report, list, found);
  check_skips(report, found);
  check_run_by_step(report, found);
}

void check_eval(const Json& report, Found& found) {
  const Json& classes = report.at("classes");
  if (classes.is_null()) return;
  std::int64_t samples = 0;
  for (std::size_t i = 0; i < classes.at("per_class").size(); ++i) {
    const Json& row = classes.at("per_class")[i];
    samples += row.at("count").get<std::int64_t>();
    if (row.at("correct") > row.at("count")) {
      found.push_back({fmt::format("classes.per_class[{}].correct", i), "is more than count"});
    }
  }
  if (report.at("samples") != samples) {
    found.push_back(
        {"classes.per_class",
         fmt::format("counts {} samples, the report {}", samples, report.at("samples").dump())});
  }
}

}  // namespace halfstep::report
