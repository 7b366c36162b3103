// Cross-checks of the members of a report, beyond its description.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "report/any_report.h"
#include "report/check_parts.h"

namespace halfstep::report {
namespace {

/// Finds the values at some paths such as "history.loss[2]" in one walk over the report.
class PathFinder {
 public:
  /// Paths are the keys of `paths`.
  explicit PathFinder(const Json& paths) {
    for (const auto& [path, kind] : paths.items()) found_.emplace(path, nullptr);
  }

  void walk(const Json& json) {
    // Keys may contain dots and brackets themselves; of two values with the same path, the first is
    // used.
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

  /// nullptr when there is no value at the path.
  const Json* at(const std::string& path) const { return found_.at(path); }

 private:
  std::unordered_map<std::string, const Json*> found_;
  std::string path_;
};

void check_counters(const TrainReport& report, Found& found) {
  const Steps& steps = report.steps;
  const LossScale& scale = report.loss_scale;
  const auto sum = [](std::initializer_list<std::int64_t> counts) { return sum_of(counts); };
  if (static_cast<std::uint64_t>(steps.attempted) !=
      sum({steps.applied, scale.skipped_steps, scale.retried_steps})) {
    found.push_back({"steps.attempted", "is not applied + skipped + retried"});
  }
  if (static_cast<std::uint64_t>(steps.ordinal) != sum({steps.applied, scale.skipped_steps})) {
    found.push_back({"steps.ordinal", "is not applied + skipped"});
  }
  if (report.samples.trained > report.samples.seen) {
    found.push_back({"samples.trained", "is more than samples.seen"});
  }
  if (scale.mode == "none" && !scale.events.empty()) {
    found.push_back({"loss_scale.events", "holds changes of a scale although the mode is none"});
  }
  if (report.precision.rewrite.nodes_converted > report.precision.rewrite.nodes_total) {
    found.push_back({"precision.rewrite.nodes_converted", "is more than nodes_total"});
  }
}

/// Lists of events at some attempts: in order, within the run, and all that were counted.
template <class Entry>
void check_attempts(const TrainReport& report,
                    const std::vector<Entry>& entries,
                    std::string_view list,
                    Found& found) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string path = fmt::format("loss_scale.{}[{}]", list, i);
    if (entries[i].attempt > report.steps.attempted) {
      found.push_back({path + ".attempt", "is more than steps.attempted"});
    }
    if (i > 0 && entries[i].attempt <= entries[i - 1].attempt) {
      found.push_back({path + ".attempt", "does not come after the one before"});
    }
    if (entries[i].ordinal > report.steps.ordinal) {
      found.push_back({path + ".ordinal", "is more than steps.ordinal"});
    }
  }
}

void check_skips(const LossScale& scale, Found& found) {
  if (!scale.skips_left_out) return;
  const std::uint64_t listed = scale.skips.size() + sum_of({*scale.skips_left_out});
  const std::uint64_t counted = sum_of({scale.skipped_steps, scale.retried_steps});
  if (listed == counted) return;
  found.push_back(
      {"loss_scale.skips",
       fmt::format(
           "tells of {} attempts, skipped_steps and retried_steps of {}", listed, counted)});
}

/// The step history has at most as many batches and skips as the run, and equally many when it
/// starts with it.
void check_run_by_step(const TrainReport& report, Found& found) {
  if (!report.step_history) return;
  const StepColumns& history = *report.step_history;
  check_step_history(history, "step_history", found);
  const std::vector<std::int64_t>& steps = history.step;
  if (steps.empty()) return;
  if (steps.back() > report.steps.ordinal) {
    found.push_back({"step_history.step", "goes beyond steps.ordinal"});
  }
  const std::uint64_t skipped = sum_of(history.skipped_steps);
  const auto wanted = static_cast<std::uint64_t>(report.loss_scale.skipped_steps);
  const bool whole = steps.front() <= history.interval && steps.back() == report.steps.ordinal;
  if (whole ? skipped != wanted : skipped > wanted) {
    found.push_back(
        {"step_history.skipped_steps",
         fmt::format("adds up to {}, loss_scale.skipped_steps is {}", skipped, wanted)});
  }
}

}  // namespace

void check_nonfinite(const Json& document, Found& found) {
  if (!document.contains("nonfinite") || document.at("nonfinite").empty()) return;
  PathFinder finder(document.at("nonfinite"));
  finder.walk(document);
  for (const auto& [path, kind] : document.at("nonfinite").items()) {
    const Json* target = finder.at(path);
    const std::string place = "nonfinite." + path;
    if (target == nullptr) {
      found.push_back({place, "leads nowhere in this report"});
    } else if (!target->is_null()) {
      found.push_back({place, fmt::format("is {} there and must be null", shown(*target))});
    }
  }
}

void check(const TrainReport& report, Found& found) {
  check_exit_code(report.status, report.exit_code, false, found);
  check_history(report.history, "history", found);
  check_counters(report, found);
  check_step_time(report.step_time, "step_time", found);
  check_attempts(report, report.loss_scale.events, "events", found);
  check_attempts(report, report.loss_scale.skips, "skips", found);
  check_skips(report.loss_scale, found);
  check_run_by_step(report, found);
}

void check(const EvalReport& report, Found& found) {
  if (!report.classes) return;
  std::uint64_t samples = 0;
  for (std::size_t i = 0; i < report.classes->per_class.size(); ++i) {
    const ClassRow& row = report.classes->per_class[i];
    samples += static_cast<std::uint64_t>(row.count);
    if (row.correct > row.count) {
      found.push_back({fmt::format("classes.per_class[{}].correct", i), "is more than count"});
    }
  }
  if (static_cast<std::uint64_t>(report.samples) != samples) {
    found.push_back({"classes.per_class",
                     fmt::format("counts {} samples, the report {}", samples, report.samples)});
  }
}

// Explanations.

namespace {

bool is_half_word(const std::string& dtype) { return dtype == "float16" || dtype == "bfloat16"; }

/// "node" of "node:port".
std::string node_of(const std::string& input) { return input.substr(0, input.rfind(':')); }

/// `names` are those of the nodes; with emulated float16, casts read casts too.
void check_casts(const GraphRewriteReport& report, std::set<std::string> names, Found& found) {
  for (const InsertedCast& cast : report.casts) names.insert(cast.name);
  std::int64_t to_half = 0;
  for (std::size_t i = 0; i < report.casts.size(); ++i) {
    const InsertedCast& cast = report.casts[i];
    const std::string path = fmt::format("casts[{}]", i);
    if (cast.from == cast.to) found.push_back({path + ".to", "is the dtype cast from"});
    if (is_half_word(cast.to)) ++to_half;
    if (!names.contains(node_of(cast.input))) {
      found.push_back({path + ".input", "is no port of a node or cast"});
    }
    for (std::size_t k = 0; k < cast.consumers.size(); ++k) {
      if (names.contains(cast.consumers[k])) continue;
      found.push_back({fmt::format("{}.consumers[{}]", path, k), "is no node or cast"});
    }
  }
  if (report.casts_counted > to_half) {
    found.push_back({"casts_counted", "is more than there are casts to 16 bits"});
  }
}

}  // namespace

void check(const GraphRewriteReport& report, Found& found) {
  std::set<std::string> nodes;
  for (const RewrittenNode& node : report.nodes) nodes.insert(node.name);
  check_casts(report, nodes, found);
  for (std::size_t i = 0; i < report.paint.size(); ++i) {
    if (nodes.contains(report.paint[i].node)) continue;
    found.push_back({fmt::format("paint[{}].node", i), "is no node"});
  }
  if (report.status == "failed" && report.message.empty()) {
    found.push_back({"message", "is null although the rewrite failed"});
  }
  if (report.status == "ok") return;
  if (report.converted_attrs != 0) {
    found.push_back({"converted_attrs", "is not 0 although nothing was rewritten"});
  }
  if (!report.casts.empty()) {
    found.push_back({"casts", "are there although nothing was rewritten"});
  }
}

void check(const Explanation& report, Found& found) {
  double all = 0, half = 0;
  std::int64_t casts = 0;
  for (const ExplainedOp& op : report.ops) {
    all += op.row.flops;
    if (is_half_word(op.row.compute_dtype)) half += op.row.flops;
    if (op.row.type == "Cast") ++casts;
  }
  check_agrees(report.half_flops_share,
               all > 0 ? half / all : 0,
               "half_flops_share",
               "the ops",
               found,
               report.ops.size());
  if (report.casts > casts) {
    found.push_back({"casts_executed", "is more than there are casts among the ops"});
  }
  if (report.rewrite.nodes_converted > report.rewrite.nodes_total) {
    found.push_back({"rewrite.nodes_converted", "is more than nodes_total"});
  }
}

}  // namespace halfstep::report
