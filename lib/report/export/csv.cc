// The history, one line per epoch; for a comparison, one line per epoch of every run.

#include <fmt/format.h>

#include <algorithm>

#include "core/ranges.h"
#include "report/export/exporter.h"
#include "report/text.h"

namespace halfstep::report {
namespace {

/// RFC 4180: quotes where a cell holds a comma, a quote or a line break.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

/// A value of a report; nan, inf or -inf for numbers that are not finite, "" for other nulls.
std::string value(const NonfiniteMap& nonfinite, FieldRef field, const std::string& path) {
  const Json json = write_json(field);
  if (!json.is_null()) return json.dump();
  const auto it = std::ranges::find(nonfinite, path, &NonfiniteMap::value_type::first);
  if (it == nonfinite.end()) return "";
  return std::string(names_of(it->second)[static_cast<std::size_t>(it->second)]);
}

using Columns = std::vector<NamedColumn>;

/// Columns by name, so that runs without some metric have empty cells.
std::vector<std::string> column_names(const std::vector<Columns>& histories) {
  std::vector<std::string> names;
  for (const Columns& history : histories) {
    for (const NamedColumn& column : history) {
      if (!contains(names, column.name)) {
        names.push_back(column.name);
      }
    }
  }
  return names;
}

std::string rows(const NonfiniteMap& nonfinite,
                 const Columns& history,
                 std::size_t epochs,
                 const std::vector<std::string>& names,
                 const std::string& path,
                 const std::string& prefix) {
  std::string text;
  for (std::size_t i = 0; i < epochs; ++i) {
    std::string line = prefix;
    for (const std::string& name : names) {
      if (!line.empty()) line += ",";
      const auto column = std::ranges::find(history, name, &NamedColumn::name);
      if (column == history.end()) continue;
      const ListRef& list = column->values;
      line +=
          value(nonfinite, list.ops->at(list.value, i), fmt::format("{}.{}[{}]", path, name, i));
    }
    text += line + "\n";
  }
  return text;
}

std::string train_csv(const TrainReport& report) {
  const Columns history = columns_of(report.history);
  const std::vector<std::string> names = column_names({history});
  return fmt::format("{}\n", fmt::join(names, ",")) +
         rows(report.nonfinite, history, report.history.epoch.size(), names, "history", "");
}

std::string compare_csv(const CompareReport& report) {
  std::vector<Columns> histories;
  for (const ComparedRunBlock& run : report.runs) histories.push_back(columns_of(run.history));
  const std::vector<std::string> names = column_names(histories);
  std::string text = "policy,seed";
  for (const std::string& name : names) text += "," + cell(name);
  text += "\n";
  for (std::size_t i = 0; i < histories.size(); ++i) {
    const ComparedRunBlock& run = report.runs[i];
    text += rows(report.nonfinite,
                 histories[i],
                 run.history.epoch.size(),
                 names,
                 fmt::format("runs[{}].history", i),
                 fmt::format("{},{}", cell(run.policy), run.seed));
  }
  return text;
}

}  // namespace

constinit const Exporter k_csv{
    .name = "csv", .file = "report.csv", .train = train_csv, .compare = compare_csv};

}  // namespace halfstep::report
