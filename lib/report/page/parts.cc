#include "report/page/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "report/export/facts.h"
#include "report/export/xml_text.h"
#include "report/page/markup.h"

namespace halfstep::report::page {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

constexpr std::array<std::string_view, 3> k_columns{"forward", "backward", "update"};

std::size_t column_of(const std::string& phase) {
  if (phase == "backward") return 1;
  constexpr std::array<std::string_view, 4> k_forward{"input", "forward", "loss", "metrics"};
  return std::find(k_forward.begin(), k_forward.end(), phase) != k_forward.end() ? 0 : 2;
}

/// The style class of a dtype.
std::string_view css_class(const std::string& dtype) {
  for (const std::string_view known : {"float32", "float16", "bfloat16"}) {
    if (dtype == known) return known;
  }
  return "other";
}

/// Ops of one cell that nothing tells apart but their names.
struct Group {
  std::string type, dtype, how;
  std::vector<std::string> names;
};

std::string how(const Json& op) {
  std::string text = fmt::format("{} → {} → {}",
                                 word(op.at("in_dtype")),
                                 word(op.at("compute_dtype")),
                                 word(op.at("out_dtype")));
  if (!op.at("accumulate_dtype").is_null()) {
    text += fmt::format(", sums in {}", word(op.at("accumulate_dtype")));
  }
  text += "\nwhy: " + word(op.at("reason"));
  if (!op.at("kernel").is_null() && op.at("kernel") != "") {
    text += "\nkernel: " + word(op.at("kernel"));
  }
  if (op.contains("fused_into") && !op.at("fused_into").is_null()) {
    text += "\nin the launch of " + word(op.at("fused_into"));
  }
  return text;
}

std::string chip(const Group& group) {
  constexpr std::size_t k_most_names = 6;
  std::vector<std::string> names = group.names;
  if (names.size() > k_most_names) {
    names.resize(k_most_names);
    names.push_back(fmt::format("and {} more", group.names.size() - k_most_names));
  }
  const std::string count =
      group.names.size() > 1 ? fmt::format(" ×{}", group.names.size()) : std::string();
  return fmt::format("<span class=\"op {}\" title=\"{}\">{}{}</span>",
                     css_class(group.dtype),
                     xml_text(fmt::format("{}\n{}", fmt::join(names, ", "), group.how)),
                     xml_text(group.type),
                     count);
}

struct LayerRow {
  std::string layer;
  std::array<std::vector<Group>, k_columns.size()> cells;
};

std::vector<LayerRow> layer_rows(const Json& ops) {
  std::vector<LayerRow> rows;
  std::map<std::string, std::size_t> index;
  for (const Json& op : ops) {
    const std::string layer = op.at("layer");
    const auto [it, fresh] = index.try_emplace(layer, rows.size());
    if (fresh) rows.push_back({layer, {}});
    std::vector<Group>& cell = rows[it->second].cells[column_of(op.at("phase"))];
    const Group group{op.at("type"), op.at("compute_dtype"), how(op), {op.at("name")}};
    const auto same = std::find_if(cell.begin(), cell.end(), [&](const Group& other) {
      return other.type == group.type && other.dtype == group.dtype && other.how == group.how;
    });
    if (same == cell.end()) {
      cell.push_back(group);
    } else {
      same->names.push_back(group.names.front());
    }
  }
  // What belongs to no layer is named last.
  std::stable_partition(
      rows.begin(), rows.end(), [](const LayerRow& r) { return !r.layer.empty(); });
  return rows;
}

std::string legend(const Json& ops) {
  std::map<std::string, std::int64_t> counts;
  for (const Json& op : ops) ++counts[op.at("compute_dtype").get<std::string>()];
  std::string text = "<p>";
  for (const auto& [dtype, count] : counts) {
    text += fmt::format("<span class=\"op {}\">{}: {}</span>",
                        css_class(dtype),
                        xml_text(dtype.empty() ? "no dtype" : dtype),
                        count);
  }
  return text + "</p>\n";
}

Rows op_rows(const Json& ops) {
  Rows rows{{"op", "type", "layer", "phase", "in", "compute", "sums", "out", "kernel", "why"}};
  for (const Json& op : ops) {
    rows.push_back({});
    for (const char* member : {"name",
                               "type",
                               "layer",
                               "phase",
                               "in_dtype",
                               "compute_dtype",
                               "accumulate_dtype",
                               "out_dtype",
                               "kernel",
                               "reason"}) {
      rows.back().push_back(word(op.at(member)));
    }
  }
  return rows;
}

std::string confusion_matrix(const Json& classes) {
  const Json& names = classes.at("per_class");
  const Json& matrix = classes.at("confusion");
  const auto name_of = [&](std::size_t i) {
    if (i < names.size() && names[i].at("name").is_string()) return word(names[i].at("name"));
    return std::to_string(i);
  };
  std::string text =
      "<div class=\"scroll\"><table class=\"confusion\">\n<thead><tr><th>label \\ predicted</th>";
  for (std::size_t i = 0; i < matrix.size(); ++i) text += "<th>" + xml_text(name_of(i)) + "</th>";
  text += "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    double sum = 0;
    for (const Json& count : matrix[i]) sum += count.get<double>();
    text += "<tr><th>" + xml_text(name_of(i)) + "</th>";
    for (std::size_t k = 0; k < matrix[i].size(); ++k) {
      const Json& count = matrix[i][k];
      text += fmt::format("<td{} style=\"--share: {:.3f}\">{}</td>",
                          i == k ? " class=\"diagonal\"" : "",
                          sum > 0 ? count.get<double>() / sum : 0.0,
                          word(count));
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

/// A word as a shell reads it.
std::string shell_word(const std::string& text) {
  constexpr std::string_view k_plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!text.empty() && text.find_first_not_of(k_plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string joined(const Json& list) {
  std::vector<std::string> words;
  for (const Json& item : list) words.push_back(word(item));
  return fmt::format("{}", fmt::join(words, " "));
}

void add_machine(const Json& context, Facts& facts) {
  const Json& commit = context.at("git_commit");
  facts.push_back({"program",
                   fmt::format("halfstep {}, commit {}{}, {} build by {}",
                               word(context.at("library_version")),
                               word(commit),
                               context.at("git_dirty") == true ? " with local changes" : "",
                               word(context.at("library_build_type")),
                               word(context.at("compiler")))});
  facts.push_back({"host", word(context.at("host_name"))});
  facts.push_back({"processor",
                   fmt::format("{}; {} of {} processors; {}",
                               word(context.at("cpu").at("model")),
                               word(context.at("threads")),
                               word(context.at("num_cpus")),
                               joined(context.at("cpu").at("isa")))});
  for (const Json& gpu : context.at("gpu")) {
    facts.push_back({"GPU",
                     fmt::format("{}, compute capability {}, driver {}",
                                 word(gpu.at("name")),
                                 word(gpu.at("compute_capability")),
                                 word(gpu.at("driver")))});
  }
  std::vector<std::string> versions;
  for (const auto& [library, version] : context.at("versions").items()) {
    if (!version.is_null()) versions.push_back(library + " " + word(version));
  }
  facts.push_back({"libraries", fmt::format("{}", fmt::join(versions, ", "))});
  facts.push_back({"load at the start", joined(context.at("load_avg"))});
}

}  // namespace

std::string op_map(const Json& ops) {
  if (ops.empty()) return "";
  std::string text = legend(ops);
  text += "<div class=\"scroll\"><table class=\"ops\">\n<thead><tr><th>layer</th>";
  for (const std::string_view column : k_columns) text += fmt::format("<th>{}</th>", column);
  text += "</tr></thead>\n<tbody>\n";
  for (const LayerRow& row : layer_rows(ops)) {
    text += fmt::format("<tr><td>{}</td>", xml_text(row.layer.empty() ? "(no layer)" : row.layer));
    for (const std::vector<Group>& cell : row.cells) {
      text += "<td>";
      for (const Group& group : cell) text += chip(group);
      text += "</td>";
    }
    text += "</tr>\n";
  }
  text += "</tbody></table></div>\n";
  return text + details(fmt::format("All {} ops with the reason for their dtypes", ops.size()),
                        table(op_rows(ops)));
}

std::string classes(const Json& classes) {
  if (!classes.is_object()) return "";
  Rows rows{{"class", "name", "samples", "right", "accuracy"}};
  for (const Json& row : classes.at("per_class")) {
    rows.push_back({word(row.at("class")),
                    word(row.at("name")),
                    word(row.at("count")),
                    word(row.at("correct")),
                    row.at("accuracy").is_number()
                        ? fmt::format("{:.4f}", row.at("accuracy").get<double>())
                        : "-"});
  }
  return confusion_matrix(classes) + details("Accuracy by class", table(rows));
}

std::string origin(const Json& report) {
  Facts facts;
  if (report.contains("run") && report.at("run").contains("command")) {
    std::vector<std::string> words;
    for (const Json& part : report.at("run").at("command")) words.push_back(shell_word(word(part)));
    if (!words.empty()) facts.push_back({"command", fmt::format("{}", fmt::join(words, " "))});
  }
  if (report.contains("run"))
    facts.push_back({"directory", word(report.at("run").at("directory"))});
  if (report.contains("checkpoint")) facts.push_back({"checkpoint", word(report.at("checkpoint"))});
  if (report.contains("context")) add_machine(report.at("context"), facts);
  std::string config;
  if (report.contains("config") && report.at("config").is_object()) {
    const Json& block = report.at("config");
    facts.push_back({"config hash", word(block.at("sha256"))});
    if (!block.at("overrides").empty())
      facts.push_back({"overrides", joined(block.at("overrides"))});
    config =
        details("Configuration, with every default", preformatted(yaml_text(block.at("resolved"))));
  }
  const std::string body = page::facts(facts) + config;
  return section("How this was made", body);
}

std::string notes(const Json& report) { return section("Notes", list(remarks(report))); }

}  // namespace halfstep::report::page
