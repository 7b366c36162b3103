// The history, a line per epoch; of a comparison, a line per epoch of every run.

#include <fmt/format.h>

#include <vector>

#include "report/export/exporter.h"

namespace halfstep::report {
namespace {

/// RFC 4180: quotes where a cell holds a comma, a quote or a line break.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

/// A value of the report; numbers that are not finite by their word, other nulls empty.
std::string value(const Json& report, const Json& json, const std::string& path) {
  if (json.is_string()) return cell(json.get<std::string>());
  if (!json.is_null()) return json.dump();
  const Json& nonfinite = report.at("nonfinite");
  return nonfinite.contains(path) ? nonfinite.at(path).get<std::string>() : "";
}

/// Columns by name, so that runs without some metric leave its cells empty.
std::vector<std::string> column_names(const std::vector<const Json*>& histories) {
  std::vector<std::string> names;
  for (const Json* history : histories) {
    for (const auto& [name, column] : history->items()) {
      bool known = false;
      for (const std::string& other : names) known = known || other == name;
      if (!known) names.push_back(name);
    }
  }
  return names;
}

std::string rows(const Json& report,
                 const Json& history,
                 const std::vector<std::string>& names,
                 const std::string& path,
                 const std::string& prefix) {
  std::string text;
  for (std::size_t i = 0; i < history.at("epoch").size(); ++i) {
    std::string line = prefix;
    for (const std::string& name : names) {
      if (!line.empty()) line += ",";
      if (!history.contains(name)) continue;
      line += value(report, history.at(name)[i], fmt::format("{}.{}[{}]", path, name, i));
    }
    text += line + "\n";
  }
  return text;
}

std::string write_csv(const Json& report) {
  if (report.at("kind") == "train") {
    const std::vector<std::string> names = column_names({&report.at("history")});
    return fmt::format("{}\n", fmt::join(names, ",")) +
           rows(report, report.at("history"), names, "history", "");
  }
  std::vector<const Json*> histories;
  for (const Json& run : report.at("runs")) histories.push_back(&run.at("history"));
  const std::vector<std::string> names = column_names(histories);
  std::string text = "policy,seed";
  for (const std::string& name : names) text += "," + cell(name);
  text += "\n";
  for (std::size_t i = 0; i < histories.size(); ++i) {
    const Json& run = report.at("runs")[i];
    text += rows(report,
                 *histories[i],
                 names,
                 fmt::format("runs[{}].history", i),
                 cell(run.at("policy")) + "," + run.at("seed").dump());
  }
  return text;
}

}  // namespace

constinit const Exporter k_csv{"csv", "report.csv", "train compare", write_csv};

}  // namespace halfstep::report
