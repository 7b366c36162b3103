#include "report/export/facts.h"

#include <fmt/format.h>

namespace halfstep::report {
namespace {

template <class Report>
std::string status(const Report& report) {
  std::string text = report.status;
  const std::string code = word(report.exit_code);
  if (code != "-") text += ", exit code " + code;
  return report.message.empty() ? text : text + ": " + report.message;
}

template <class Report>
Facts common_facts(const Report& report) {
  const Context& context = report.context;
  return {{"status", status(report)},
          {"started", report.run.started_at},
          {"machine",
           fmt::format("{}, {} thread{}",
                       context.cpu.model,
                       context.threads,
                       context.threads == 1 ? "" : "s")}};
}

/// "name: " of a config that has one.
std::string name_of(const Json& resolved) {
  if (!resolved.contains("name")) return "";
  const std::string name = word(resolved.at("name"));
  return name.empty() ? "" : name + ": ";
}

}  // namespace

std::string title(const TrainReport& r) {
  return name_of(r.config.resolved) + "training in " + r.precision.requested;
}
std::string title(const CompareReport& r) {
  return (r.config ? name_of(r.config->resolved) : "") + "comparison";
}
std::string title(const BenchReport& r) { return name_of(r.config.resolved) + "benchmark"; }
std::string title(const EvalReport& r) { return name_of(r.config.resolved) + "evaluation"; }
std::string title(const Explanation& r) { return "dtypes of a training step in " + r.policy; }

std::string precision_words(const PrecisionHead& precision) {
  return fmt::format("{} requested, {} effective", precision.requested, precision.effective);
}

Facts main_facts(const CompareReport& report) { return common_facts(report); }
Facts main_facts(const BenchReport& report) { return common_facts(report); }

Facts main_facts(const TrainReport& report) {
  Facts facts = common_facts(report);
  facts.push_back({"precision", precision_words(report.precision)});
  facts.push_back(
      {"steps",
       fmt::format("{} applied of {} attempted", report.steps.applied, report.steps.attempted)});
  facts.push_back({"training time", word(report.run.train_seconds) + " s"});
  const StepTime& time = report.step_time;
  if (time.n > 0) {
    facts.push_back(
        {"step time",
         fmt::format(
             "{} ms median over {} steps, p95 {} ms", word(time.median), time.n, word(time.p95))});
  }
  facts.push_back({"throughput", word(report.throughput.total_ips) + " img/s"});
  const LossScale& scale = report.loss_scale;
  if (scale.mode != "none") {
    facts.push_back(
        {"loss scale",
         fmt::format("{}, {} to {}", scale.mode, word(scale.initial), word(scale.final))});
  }
  facts.push_back({"skipped steps", word(scale.skipped_steps)});
  if (const auto& target = report.time_to_accuracy) {
    facts.push_back({"target",
                     fmt::format("{} {} {} after {} steps",
                                 target->metric,
                                 word(target->target),
                                 target->reached ? "reached" : "not reached",
                                 target->step)});
  }
  if (!report.test) return facts;
  for (const auto& [name, value] : *report.test) facts.push_back({"test " + name, word(value)});
  return facts;
}

std::vector<std::string> remark_lines(const std::vector<std::string>& notes,
                                      const std::vector<Remark>& warnings) {
  std::vector<std::string> lines = notes;
  for (const Remark& warning : warnings) lines.push_back(remark_line(warning));
  return lines;
}

}  // namespace halfstep::report
