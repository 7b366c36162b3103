#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "core/ranges.h"
#include "report/export/summary.h"
#include "report/export/xml_text.h"
#include "report/page/markup.h"
#include "report/page/pages.h"

namespace halfstep::report::page {
namespace {

constexpr std::array<std::string_view, 3> k_columns{"forward", "backward", "update"};

std::size_t column_of(const std::string& phase) {
  if (phase == "backward") return 1;
  constexpr std::array<std::string_view, 4> k_forward{"input", "forward", "loss", "metrics"};
  return contains(k_forward, phase) ? 0 : 2;
}

std::string_view css_class(const std::string& dtype) {
  for (const std::string_view known : {"float32", "float16", "bfloat16"}) {
    if (dtype == known) return known;
  }
  return "other";
}

/// Ops of one cell that differ in their names only.
struct Group {
  std::string type, dtype, how;
  std::vector<std::string> names;
};

/// `fused_into`: the op whose launch computes this one too, "" for none.
std::string how(const analysis::OpInfo& op, const std::string& fused_into) {
  std::string text = fmt::format("{} → {} → {}", op.in_dtype, op.compute_dtype, op.out_dtype);
  if (!op.accumulate_dtype.empty()) text += fmt::format(", sums in {}", op.accumulate_dtype);
  text += "\nwhy: " + op.reason;
  if (!op.kernel.empty()) text += "\nkernel: " + op.kernel;
  if (!fused_into.empty()) text += "\nin the launch of " + fused_into;
  return text;
}

const analysis::OpInfo& row_of(const analysis::OpInfo& op) { return op; }
const analysis::OpInfo& row_of(const analysis::ExplainedOp& op) { return op.info; }
std::string how(const analysis::OpInfo& op) { return how(op, ""); }
std::string how(const analysis::ExplainedOp& op) { return how(op.info, op.fused_into); }

std::string chip(const Group& group) {
  constexpr std::size_t k_max_names = 6;
  std::vector<std::string> names = group.names;
  if (names.size() > k_max_names) {
    names.resize(k_max_names);
    names.push_back(fmt::format("and {} more", group.names.size() - k_max_names));
  }
  const std::string count =
      group.names.size() > 1 ? fmt::format(" ×{}", group.names.size()) : std::string();
  return fmt::format("<span class=\"op {}\" title=\"{}\">{}{}</span>",
                     css_class(group.dtype),
                     xml_text(fmt::format("{}\n{}", fmt::join(names, ", "), group.how)),
                     xml_text(group.type),
                     count);
}

struct LayerOps {
  std::string layer;
  std::array<std::vector<Group>, k_columns.size()> cells;
};

template <class Op>
std::vector<LayerOps> group_by_layer(const std::vector<Op>& ops) {
  std::vector<LayerOps> rows;
  std::map<std::string, std::size_t> index;
  for (const Op& op : ops) {
    const analysis::OpInfo& row = row_of(op);
    const auto [it, fresh] = index.try_emplace(row.layer, rows.size());
    if (fresh) rows.push_back({row.layer, {}});
    std::vector<Group>& cell = rows[it->second].cells[column_of(row.phase)];
    const Group group{row.type, row.compute_dtype, how(op), {row.name}};
    const auto same = std::ranges::find_if(cell, [&](const Group& other) {
      return other.type == group.type && other.dtype == group.dtype && other.how == group.how;
    });
    if (same == cell.end()) {
      cell.push_back(group);
    } else {
      same->names.push_back(group.names.front());
    }
  }
  // Ops of no layer come last.
  std::stable_partition(
      rows.begin(), rows.end(), [](const LayerOps& r) { return !r.layer.empty(); });
  return rows;
}

template <class Op>
std::string legend(const std::vector<Op>& ops) {
  std::map<std::string, std::int64_t> counts;
  for (const Op& op : ops) ++counts[row_of(op).compute_dtype];
  std::string text = "<p>";
  for (const auto& [dtype, count] : counts) {
    text += fmt::format("<span class=\"op {}\">{}: {}</span>",
                        css_class(dtype),
                        xml_text(dtype.empty() ? "no dtype" : dtype),
                        count);
  }
  return text + "</p>\n";
}

template <class Op>
Rows op_rows(const std::vector<Op>& ops) {
  Rows rows{{"op", "type", "layer", "phase", "in", "compute", "sums", "out", "kernel", "why"}};
  for (const Op& op : ops) {
    const analysis::OpInfo& row = row_of(op);
    rows.push_back({row.name,
                    row.type,
                    row.layer,
                    row.phase,
                    row.in_dtype,
                    row.compute_dtype,
                    or_dash(row.accumulate_dtype),
                    row.out_dtype,
                    or_dash(row.kernel),
                    row.reason});
  }
  return rows;
}

std::string confusion_matrix(const Classes& classes) {
  const auto& matrix = classes.confusion;
  const auto name_of = [&](std::size_t i) {
    const auto& names = classes.per_class;
    return i < names.size() && names[i].name ? *names[i].name : std::to_string(i);
  };
  std::string text =
      "<div class=\"scroll\"><table class=\"confusion\">\n<thead><tr><th>label \\ predicted</th>";
  for (std::size_t i = 0; i < matrix.size(); ++i) text += "<th>" + xml_text(name_of(i)) + "</th>";
  text += "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    double sum = 0;
    for (const std::int64_t count : matrix[i]) sum += static_cast<double>(count);
    text += "<tr><th>" + xml_text(name_of(i)) + "</th>";
    for (std::size_t k = 0; k < matrix[i].size(); ++k) {
      text += fmt::format("<td{} style=\"--share: {:.3f}\">{}</td>",
                          i == k ? " class=\"diagonal\"" : "",
                          sum > 0 ? static_cast<double>(matrix[i][k]) / sum : 0.0,
                          matrix[i][k]);
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

/// An argument quoted for a shell.
std::string shell_word(const std::string& text) {
  constexpr std::string_view k_plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!text.empty() && text.find_first_not_of(k_plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void add_machine(const Context& context, Summary& summary) {
  summary.push_back({"program",
                     fmt::format("halfstep {}, commit {}{}, {} build by {}",
                                 context.library_version,
                                 or_dash(context.git_commit),
                                 context.git_dirty ? " with local changes" : "",
                                 context.library_build_type,
                                 context.compiler)});
  summary.push_back({"host", context.host_name});
  summary.push_back({"processor",
                     fmt::format("{}; {} of {} processors; {}",
                                 context.cpu.model,
                                 context.threads,
                                 context.num_cpus,
                                 joined(context.cpu.isa))});
  for (const Gpu& gpu : context.gpu) {
    summary.push_back({"GPU",
                       fmt::format("{}, compute capability {}, driver {}",
                                   gpu.name,
                                   gpu.compute_capability,
                                   or_dash(gpu.driver))});
  }
  std::vector<std::string> versions, load;
  for (const auto& [library, version] : field_texts(context.versions)) {
    if (version != "-") versions.push_back(library + " " + version);
  }
  for (const double average : context.load_avg) load.push_back(to_text(average));
  summary.push_back({"libraries", fmt::format("{}", fmt::join(versions, ", "))});
  summary.push_back({"load at the start", joined(load)});
}

template <class Op>
std::string map_of(const std::vector<Op>& ops) {
  if (ops.empty()) return "";
  std::string text = legend(ops);
  text += "<div class=\"scroll\"><table class=\"ops\">\n<thead><tr><th>layer</th>";
  for (const std::string_view column : k_columns) text += fmt::format("<th>{}</th>", column);
  text += "</tr></thead>\n<tbody>\n";
  for (const LayerOps& row : group_by_layer(ops)) {
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

}  // namespace

std::string op_map(const std::vector<analysis::OpInfo>& ops) { return map_of(ops); }
std::string op_map(const std::vector<analysis::ExplainedOp>& ops) { return map_of(ops); }

std::string classes(const std::optional<Classes>& classes) {
  if (!classes) return "";
  Rows rows{{"class", "name", "samples", "right", "accuracy"}};
  for (const ClassResult& row : classes->per_class) {
    rows.push_back({to_text(row.label),
                    to_text(row.name),
                    to_text(row.count),
                    to_text(row.correct),
                    row.accuracy ? fmt::format("{:.4f}", *row.accuracy) : "-"});
  }
  return confusion_matrix(*classes) + details("Accuracy by class", table(rows));
}

Summary run_summary(const std::vector<std::string>& command, const std::string& directory) {
  Summary summary;
  const auto parts = mapped<std::string>(command, shell_word);
  if (!parts.empty()) summary.push_back({"command", joined(parts)});
  summary.push_back({"directory", or_dash(directory)});
  return summary;
}

std::string origin(const Summary& run, const Context& context, const ConfigBlock* config) {
  Summary summary = run;
  add_machine(context, summary);
  std::string resolved;
  if (config != nullptr) {
    summary.push_back({"config hash", config->sha256});
    if (!config->overrides.empty()) summary.push_back({"overrides", joined(config->overrides)});
    resolved =
        details("Configuration, with every default", preformatted(yaml_text(config->resolved)));
  }
  return section("How this was made", page::value_table(summary) + resolved);
}

std::string notes(const std::vector<std::string>& notes,
                  const std::vector<WarningBlock>& warnings) {
  return section("Notes", list(note_lines(notes, warnings)));
}

}  // namespace halfstep::report::page
