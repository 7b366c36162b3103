#include "report/export/facts.h"

#include <fmt/format.h>

#include <array>

namespace halfstep::report {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string word(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "-";
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump();
}

/// A setting of the resolved config; "" where there is none.
std::string setting(const Json& report, const char* name) {
  if (!report.contains("config")) return "";
  const Json& config = report.at("config");
  if (config.is_null() || !config.at("resolved").contains(name)) return "";
  return word(config.at("resolved").at(name));
}

std::string status(const Json& report) {
  std::string text = word(report.at("status"));
  if (!report.at("exit_code").is_null()) text += ", exit code " + word(report.at("exit_code"));
  const std::string message = word(report.at("message"));
  return message.empty() ? text : text + ": " + message;
}

void add_training(const Json& report, Facts& facts) {
  const Json& precision = report.at("precision");
  facts.push_back({"precision",
                   fmt::format("{} requested, {} effective",
                               word(precision.at("requested")),
                               word(precision.at("effective")))});
  facts.push_back({"steps",
                   fmt::format("{} applied of {} attempted",
                               word(report.at("steps").at("applied")),
                               word(report.at("steps").at("attempted")))});
  facts.push_back({"training time", word(report.at("run").at("train_seconds")) + " s"});
  const Json& time = report.at("step_time");
  if (time.at("n") > 0) {
    facts.push_back({"step time",
                     fmt::format("{} ms median over {} steps, p95 {} ms",
                                 word(time.at("median")),
                                 word(time.at("n")),
                                 word(time.at("p95")))});
  }
  facts.push_back({"throughput",
                   word(report.at("throughput").at("total_ips")) + " " +
                       word(report.at("throughput").at("unit"))});
  const Json& scale = report.at("loss_scale");
  if (scale.at("mode") != "none") {
    facts.push_back({"loss scale",
                     fmt::format("{}, {} to {}",
                                 word(scale.at("mode")),
                                 word(scale.at("initial")),
                                 word(scale.at("final")))});
  }
  facts.push_back({"skipped steps", word(scale.at("skipped_steps"))});
  const Json& target = report.at("time_to_accuracy");
  if (!target.is_null()) {
    facts.push_back({"target",
                     fmt::format("{} {} {} after {} steps",
                                 word(target.at("metric")),
                                 word(target.at("target")),
                                 target.at("reached") == true ? "reached" : "not reached",
                                 word(target.at("step")))});
  }
  if (report.at("test").is_null()) return;
  for (const auto& [name, value] : report.at("test").items()) {
    facts.push_back({"test " + name, word(value)});
  }
}

}  // namespace

std::string title(const Json& report) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> k_words{
      {{"train", "training"},
       {"compare", "comparison"},
       {"bench", "benchmark"},
       {"eval", "evaluation"},
       {"explain", "dtypes of a training step"}}};
  std::string what;
  for (const auto& [kind, words] : k_words) {
    if (report.at("kind") == kind) what = words;
  }
  if (report.at("kind") == "explain") what += " in " + word(report.at("policy"));
  if (report.at("kind") == "train") what += " in " + word(report.at("precision").at("requested"));
  const std::string name = setting(report, "name");
  return name.empty() ? what : name + ": " + what;
}

Facts main_facts(const Json& report) {
  const Json& context = report.at("context");
  Facts facts{{"status", status(report)},
              {"started", word(report.at("run").at("started_at"))},
              {"machine",
               fmt::format("{}, {} thread{}",
                           word(context.at("cpu").at("model")),
                           word(context.at("threads")),
                           context.at("threads") == 1 ? "" : "s")}};
  if (report.at("kind") == "train") add_training(report, facts);
  return facts;
}

std::vector<std::vector<std::string>> history_rows(const Json& history) {
  std::vector<std::vector<std::string>> rows(history.at("epoch").size() + 1);
  for (const auto& [name, column] : history.items()) {
    if (name == "partial") continue;
    rows[0].push_back(name);
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) rows[i + 1].push_back(word(column.at(i)));
  }
  return rows;
}

std::vector<std::string> remarks(const Json& report) {
  std::vector<std::string> lines;
  if (report.contains("notes")) {
    for (const Json& note : report.at("notes")) lines.push_back(word(note));
  }
  for (const Json& warning : report.at("warnings")) {
    const std::string where = word(warning.at("where"));
    lines.push_back(fmt::format("{} {}{}{}",
                                word(warning.at("code")),
                                where,
                                where.empty() ? "" : ": ",
                                word(warning.at("message"))));
  }
  return lines;
}

}  // namespace halfstep::report
