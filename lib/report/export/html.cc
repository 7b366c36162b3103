// One page with everything in it: no scripts, no fonts, no pictures from elsewhere.

#include <fmt/format.h>

#include <vector>

#include "report/compare_table.h"
#include "report/export/chart.h"
#include "report/export/exporter.h"
#include "report/export/facts.h"
#include "report/export/xml_text.h"
#include "report/history_columns.h"

namespace halfstep::report {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::string_view k_style = R"(
body { font: 15px/1.4 sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { border-bottom: 1px solid #ccc; padding: 0.25em 0.8em; text-align: right; }
th:first-child, td:first-child { text-align: left; }
.scroll { overflow-x: auto; }
svg { margin: 0.5em 1em 0.5em 0; max-width: 100%; }
svg text { font: 12px sans-serif; fill: #222; }
svg .grid { stroke: #ddd; }
)";

std::string table(const Rows& rows) {
  std::string text = "<div class=\"scroll\"><table>\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const char* tag = i == 0 ? "th" : "td";
    text += "<tr>";
    for (const std::string& cell : rows[i]) {
      text += fmt::format("<{0}>{1}</{0}>", tag, xml_text(cell));
    }
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

std::string list(const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "<ul>\n";
  for (const std::string& line : lines) text += "<li>" + xml_text(line) + "</li>\n";
  return text + "</ul>\n";
}

std::vector<std::optional<double>> values(const Json& column) {
  std::vector<std::optional<double>> found;
  for (const Json& value : column) {
    found.push_back(value.is_number() ? std::optional(value.get<double>()) : std::nullopt);
  }
  return found;
}

/// A chart per metric, training and validation in one, and one of the loss scale.
std::string training_charts(const Json& history) {
  std::string text;
  for (const std::string& name : metric_columns(history)) {
    if (name.starts_with("val_")) continue;
    Chart chart{name, {{"training", values(history.at(name))}}};
    if (history.contains("val_" + name)) {
      chart.series.push_back({"validation", values(history.at("val_" + name))});
    }
    text += svg(chart);
  }
  return text + svg({"loss scale", {{"at the end", values(history.at("loss_scale"))}}, true});
}

/// The same metrics, a line per run.
std::string study_charts(const Json& runs) {
  std::vector<Chart> charts;
  for (const Json& run : runs) {
    const Json& history = run.at("history");
    std::vector<std::string> names = metric_columns(history);
    names.emplace_back("loss_scale");
    for (const std::string& name : names) {
      auto chart = charts.begin();
      while (chart != charts.end() && chart->title != name) ++chart;
      if (chart == charts.end()) {
        chart = charts.insert(chart, Chart{name, {}, name == "loss_scale"});
      }
      chart->series.push_back(
          {fmt::format("{}, seed {}", run.at("policy").get<std::string>(), run.at("seed").dump()),
           values(history.at(name))});
    }
  }
  std::string text;
  for (const Chart& chart : charts) text += svg(chart);
  return text;
}

Rows skip_rows(const Json& skips) {
  Rows rows{{"attempt", "batch", "first tensor that was not finite", "phase", "dtype"}};
  for (const Json& skip : skips) {
    const Json& first = skip.at("first_nonfinite");
    rows.push_back({skip.at("attempt").dump(), skip.at("ordinal").dump()});
    for (const char* member : {"tensor", "phase", "dtype"}) {
      rows.back().push_back(first.is_null() ? "-" : first.at(member).get<std::string>());
    }
  }
  return rows;
}

std::string train_body(const Json& report) {
  const Json& skips = report.at("loss_scale").at("skips");
  std::string text = training_charts(report.at("history"));
  text += "<h2>Epochs</h2>\n" + table(history_rows(report.at("history")));
  if (!skips.empty()) text += "<h2>Skipped steps</h2>\n" + table(skip_rows(skips));
  return text;
}

std::string compare_body(const Json& report) {
  std::string text = table(compare_rows(report)) + list(compare_legend(report));
  Rows gates{{"fails if", "outcome"}};
  for (const Json& gate : report.at("gates")) {
    gates.push_back({gate.at("expression").get<std::string>(), gate_outcome(gate)});
  }
  if (gates.size() > 1) text += "<h2>Gates</h2>\n" + table(gates);
  if (const Rows settings = setting_rows(report); !settings.empty()) text += table(settings);
  text += study_charts(report.at("runs"));
  for (const Json& run : report.at("runs")) {
    text += fmt::format("<h2>{}, seed {}</h2>\n",
                        xml_text(run.at("policy").get<std::string>()),
                        run.at("seed").dump());
    text += table(history_rows(run.at("history")));
  }
  return text;
}

std::string write_html(const Json& report) {
  const std::string heading = xml_text(title(report));
  std::string summary = "<table>\n";
  for (const auto& [name, value] : main_facts(report)) {
    summary += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", xml_text(name), xml_text(value));
  }
  summary += "</table>\n";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}{3}{4}"
      "</body>\n</html>\n",
      heading,
      k_style,
      summary,
      report.at("kind") == "train" ? train_body(report) : compare_body(report),
      list(remarks(report)));
}

}  // namespace

constinit const Exporter k_html{"html", "report.html", "train compare", write_html};

}  // namespace halfstep::report
