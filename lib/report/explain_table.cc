#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "backend/cost_model.h"
#include "core/printable.h"
#include "core/ranges.h"
#include "report/explain_report.h"
#include "report/text.h"

namespace halfstep::report {
namespace {

using analysis::ExplainedOp;
using analysis::Explanation;
using analysis::megabytes;
using analysis::short_dtype;

constexpr std::size_t k_page = 100;

/// `text` in lines of at most `width`, broken at spaces where there are any.
std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (text.size() > width) {
    std::size_t end = text.rfind(' ', width);
    const bool at_space = end != std::string_view::npos && end > 0;
    if (!at_space) end = width;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(at_space ? end + 1 : end);
  }
  lines.emplace_back(text);
  return lines;
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

struct PageColumn {
  std::string_view title;
  std::size_t width;
};

/// A table whose cells wrap within the widths of their columns.
class Page {
 public:
  explicit Page(std::vector<PageColumn> columns) : columns_(std::move(columns)) {
    const auto titles = mapped<std::string>(columns_, &PageColumn::title);
    row(titles);
  }

  void heading(const std::string& text) { text_ += printable(text) + "\n"; }

  void row(const std::vector<std::string>& cells) {
    std::vector<std::vector<std::string>> wrapped;
    std::size_t height = 0;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      wrapped.push_back(wrap(printable(cells[i]), columns_[i].width));
      height = std::max(height, wrapped.back().size());
    }
    for (std::size_t y = 0; y < height; ++y) {
      std::string line = " ";
      for (std::size_t i = 0; i < cells.size(); ++i) {
        line +=
            fmt::format(" {:<{}}", y < wrapped[i].size() ? wrapped[i][y] : "", columns_[i].width);
      }
      text_ += trimmed(line);
    }
  }

  const std::string& text() const { return text_; }

 private:
  std::vector<PageColumn> columns_;
  std::string text_;
};

/// Consecutive ops that are shown on one line.
struct Run {
  const ExplainedOp* first = nullptr;
  std::vector<std::pair<std::string, int>> names;  ///< in order, with how many there are
};

/// "4 Mul, AddV2": names with how many there are.
template <class Counts>
std::string joined(const Counts& counts) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : counts) {
    parts.push_back(count == 1 ? name : fmt::format("{} {}", count, name));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

bool same_line(const Explanation& e, const ExplainedOp& a, const ExplainedOp& b) {
  return !a.cast && !b.cast && a.list == b.list && a.info.in_dtype == b.info.in_dtype &&
         a.info.compute_dtype == b.info.compute_dtype && a.info.out_dtype == b.info.out_dtype &&
         a.info.accumulate_dtype == b.info.accumulate_dtype &&
         short_reason(e, a) == short_reason(e, b) && short_kernel(e, a) == short_kernel(e, b);
}

/// Ops under one heading, layers in the order in which they come.
using Groups = std::vector<std::pair<std::string, std::vector<const ExplainedOp*>>>;

Groups grouped(const Explanation& e, bool verbose) {
  Groups groups;
  for (const ExplainedOp& op : e.ops) {
    if (!verbose && !is_main_phase(op.info.phase)) continue;
    std::string heading = group_name(op);
    if (heading != op.info.phase && op.info.phase != "forward") heading += ", " + op.info.phase;
    auto it = std::ranges::find(groups, heading, &Groups::value_type::first);
    if (it == groups.end()) {
      groups.emplace_back(heading, std::vector<const ExplainedOp*>{});
      it = groups.end() - 1;
    }
    it->second.push_back(&op);
  }
  return groups;
}

std::vector<Run> runs(const Explanation& e, const std::vector<const ExplainedOp*>& ops, bool join) {
  std::vector<Run> result;
  for (const ExplainedOp* op : ops) {
    const std::string name = short_name(*op);
    if (!join || result.empty() || !same_line(e, *result.back().first, *op)) {
      result.push_back({op, {{name, 1}}});
      continue;
    }
    auto& names = result.back().names;
    const auto it = std::ranges::find_if(names, [&](const auto& n) { return n.first == name; });
    if (it == names.end()) {
      names.emplace_back(name, 1);
    } else {
      ++it->second;
    }
  }
  return result;
}

std::string legend(const plan::RewriteSummary& rewrite) {
  std::string text =
      "in, comp, acc, out: dtypes read, computed in, accumulated in, written (f16 = float16, "
      "...)\n";
  if (rewrite.target.empty()) return text;
  text += "list: allow = always 16-bit; deny = never, nor the infer ops after it; infer = ";
  text += rewrite.infer_follows ? "between\n      16-bit ops or right after one"
                                : "only between\n      16-bit ops";
  text += "; clear = like its neighbours; - = unchanged\n";
  return text;
}

/// A summary line of the other phases: the number of 16-bit ops, and the kinds of the others.
std::string other_phases(const Explanation& e) {
  std::map<std::string, int> kept;
  int all = 0, half = 0;
  for (const ExplainedOp& op : e.ops) {
    if (op.info.phase != "backward" || op.cast) continue;
    ++all;
    if (analysis::is_half_name(op.info.compute_dtype)) {
      ++half;
    } else if (op.list == "infer" || op.list == "clear") {
      ++kept[op.cause.empty() ? op.info.type
                              : fmt::format("{} ({})", op.info.type, short_reason(e, op))];
    }
  }
  std::string text = fmt::format("{} of {} ops in 16 bits (-v lists them)", half, all);
  return half == 0 || kept.empty() ? text : text + "; float32: " + joined(kept);
}

/// "title     text", with the text wrapped to the right of its title.
std::string text_field(std::string_view title, std::string_view text) {
  constexpr std::size_t k_title = 12;
  std::string result;
  for (const std::string& line : wrap(text, k_page - k_title)) {
    result += trimmed(fmt::format("{:<{}}{}", result.empty() ? title : "", k_title, line));
  }
  return result;
}

std::string flops_text(double flops) {
  return flops < 1e9 ? fmt::format("{:.3g} MFLOP", flops / 1e6)
                     : fmt::format("{:.3g} GFLOP", flops / 1e9);
}

std::string totals(const Explanation& e) {
  std::string text;
  if (!e.rewrite.target.empty()) {
    text += text_field("converted",
                       fmt::format("{} of {} nodes (constants, variables and updates never are)",
                                   e.rewrite.nodes_converted,
                                   e.rewrite.nodes_total));
    if (!e.rewrite.list_edits.empty()) {
      text += text_field("list edits", fmt::format("{}", fmt::join(e.rewrite.list_edits, ", ")));
    }
  }
  text += text_field(
      "casts", fmt::format("{}, which read and write {} a step", e.casts, megabytes(e.cast_bytes)));
  text +=
      text_field("in 16 bits",
                 fmt::format("{:.1f} % of {} in matmuls and convolutions, {:.1f} % of {} written",
                             e.half_flops_share * 100,
                             flops_text(e.flops),
                             e.half_bytes_share * 100,
                             megabytes(e.bytes)));
  return text;
}

/// The cost model's predictions where a 16-bit op is widened to float32 because that is faster;
/// for every op with a choice if `verbose`.
std::string predictions(const Explanation& e, bool verbose) {
  std::string text;
  for (const ExplainedOp& op : e.ops) {
    if (op.predicted.size() < 2) continue;
    const bool widened = op.info.kernel.ends_with("by float32");
    if (!verbose && (!widened || !is_main_phase(op.info.phase))) continue;
    std::string times;
    for (const auto& [kernel, seconds] : op.predicted) {
      times += fmt::format("{}{} {:.3g} us", times.empty() ? "" : ", ", kernel, seconds * 1e6);
    }
    text +=
        text_field("predicted",
                   fmt::format("{} runs on {}: {} (one thread, {} samples, operands packed before)",
                               op.info.name,
                               op.info.kernel,
                               times,
                               backend::k_nominal_batch));
  }
  return text;
}

std::string algorithms(const Explanation& e, bool verbose) {
  std::string text;
  for (const ExplainedOp& op : e.ops) {
    if (op.info.algorithm.empty() || !op.fused_into.empty()) continue;
    if (!verbose && !is_main_phase(op.info.phase)) continue;
    text += text_field("algorithm", fmt::format("{}: {}", op.info.name, op.info.algorithm));
  }
  return text;
}

std::string predicted_launches(const Explanation& e) {
  if (!e.predicted_step) return "";
  const analysis::StepPrediction& step = *e.predicted_step;
  Rows rows{{"launch", "kernel", "nodes", "GFLOP", "MB", "predicted ms"}};
  for (const analysis::PredictedLaunch& launch : step.launches) {
    rows.push_back({launch.name,
                    launch.kernel,
                    fmt::to_string(launch.graph_nodes),
                    launch.flops > 0 ? fmt::format("{:.3g}", launch.flops / 1e9) : "-",
                    fmt::format("{:.3g}", launch.bytes / 1e6),
                    fmt::format("{:.4f}", launch.ms)});
  }
  return "\n" + columns(rows, {2, 3, 4, 5});
}

/// The traffic of a step of several ranks: its bytes by phase, then the messages that phase, kind
/// and reason tell apart, or all of them.
std::string messages(const analysis::RankMessages& all, bool verbose) {
  std::vector<std::pair<std::string, double>> phases;
  std::vector<std::pair<analysis::RankMessage, int>> lines;
  const auto find = [](auto& list, auto same) {
    return std::find_if(list.begin(), list.end(), [&](auto& each) { return same(each.first); });
  };
  for (const analysis::RankMessage& m : all.messages) {
    const auto phase = find(phases, [&](const std::string& name) { return name == m.phase; });
    phase == phases.end() ? phases.emplace_back(m.phase, m.sent_bytes).second
                          : phase->second += m.sent_bytes;
    const auto line = find(lines, [&](const analysis::RankMessage& other) {
      return !verbose && other.phase == m.phase && other.exchange == m.exchange &&
             other.dtype == m.dtype && other.reason == m.reason;
    });
    if (line == lines.end()) {
      lines.emplace_back(m, 1);
      continue;
    }
    ++line->second;
    line->first.numbers += m.numbers;
    line->first.sent_bytes += m.sent_bytes;
    for (const std::string& layer : m.layers) {
      std::vector<std::string>& layers = line->first.layers;
      if (std::ranges::count(layers, layer) == 0) layers.push_back(layer);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [phase, bytes] : phases) {
    parts.push_back(fmt::format("{} {}", megabytes(bytes), phase));
  }
  Page page({{"phase", 8}, {"messages", 17}, {"", 4}, {"numbers", 9}, {"sent", 7}, {"of", 46}});
  for (const auto& [m, count] : lines) {
    page.row(
        {m.phase,
         fmt::format("{} {}", count, m.exchange),
         short_dtype(m.dtype),
         fmt::to_string(m.numbers),
         megabytes(m.sent_bytes),
         fmt::format("{}{}{}",
                     m.reason.substr(m.reason.starts_with(m.dtype + ": ") ? m.dtype.size() + 2 : 0),
                     m.layers.empty() ? "" : ": ",
                     fmt::join(m.layers, ", "))});
  }
  return text_field(fmt::format("{} ranks", all.ranks),
                    fmt::format("each sends {} in {} messages a step: {}{}",
                                megabytes(all.sent_bytes),
                                all.messages.size(),
                                fmt::join(parts, ", "),
                                verbose ? "" : " (-v lists each)")) +
         page.text();
}

std::string heading(const Explanation& e) {
  const bool newer = e.rewrite.infer_follows && e.rewrite.target == name(DType::float16);
  return fmt::format("{}{}, {}, batch {}",
                     e.policy,
                     newer ? " by the rules of TensorFlow 2.20+" : "",
                     e.device == "cuda" ? e.arch : e.device + " with " + e.arch,
                     e.batch);
}

}  // namespace

std::string to_table(const ExplainReport& e, bool verbose) {
  const bool rewrite = !e.rewrite.target.empty();
  std::vector<PageColumn> columns{{"op", 21}};
  if (rewrite) columns.push_back({"list", 5});
  for (const std::string_view word : {"in", "comp", "acc", "out"}) columns.push_back({word, 4});
  columns.push_back({"why", rewrite ? std::size_t{27} : std::size_t{33}});
  columns.push_back({"kernel", 22});
  Page page(columns);
  for (const auto& [heading, ops] : grouped(e, verbose)) {
    page.heading(heading);
    for (const Run& run : runs(e, ops, !verbose)) {
      const analysis::OpInfo& row = run.first->info;
      std::vector<std::string> cells{joined(run.names)};
      if (rewrite) cells.push_back(run.first->list.empty() ? "-" : run.first->list);
      for (const std::string* dtype :
           {&row.in_dtype, &row.compute_dtype, &row.accumulate_dtype, &row.out_dtype}) {
        cells.push_back(short_dtype(*dtype));
      }
      cells.push_back(short_reason(e, *run.first));
      cells.push_back(short_kernel(e, *run.first));
      page.row(cells);
    }
  }
  std::string text = heading(e) + "\n\n" + page.text() + "\n";
  if (!verbose) text += text_field("backward", other_phases(e));
  text += totals(e);
  text += predictions(e, verbose) + algorithms(e, verbose);
  if (e.predicted_step) {
    text +=
        text_field("predicted",
                   fmt::format("{:.3f} ms a step on {} in {} launches, from operations and bytes{}",
                               e.predicted_step->ms,
                               e.predicted_step->gpu,
                               e.predicted_step->launches.size(),
                               verbose ? "" : " (-v lists them)"));
  }
  if (e.rank_messages) text += messages(*e.rank_messages, verbose);
  for (const WarningBlock& hint : e.hints) {
    text += text_field("hint " + hint.code,
                       hint.where.empty() ? hint.message : hint.where + ": " + hint.message);
  }
  if (verbose) text += predicted_launches(e);
  return printable_lines(text) + "\n" + legend(e.rewrite);
}

std::string diff_table(const Explanation& a,
                       const Explanation& b,
                       const std::string& name_a,
                       const std::string& name_b) {
  const std::size_t left = std::max<std::size_t>(name_a.size(), 5);
  const std::size_t right = std::max<std::size_t>(name_b.size(), 5);
  const std::size_t used = std::min<std::size_t>(21 + left + right + 22 + 6, k_page - 12);
  Page page({{"op", 21},
             {name_a, left},
             {name_b, right},
             {"why the second", k_page - used},
             {"kernel", 22}});
  std::string heading;
  const analysis::Comparison comparison = analysis::compare(a, b);
  for (const auto& [before, after] : comparison.differing) {
    const ExplainedOp& op = *after;
    const std::string group =
        group_name(op) + (op.info.phase == "forward" ? "" : ", " + op.info.phase);
    if (group != heading) page.heading(group);
    heading = group;
    page.row({short_name(op),
              short_dtype(before->info.compute_dtype),
              short_dtype(op.info.compute_dtype),
              short_reason(b, op),
              short_kernel(b, op)});
  }
  if (heading.empty()) page.heading("no op differs");
  std::string text =
      page.text() + fmt::format("\n{} more ops have equal dtypes\n", comparison.equal);
  for (const auto& [name, e] : {std::pair{&name_a, &a}, std::pair{&name_b, &b}}) {
    text += fmt::format("\n{}\n{}", *name, totals(*e));
  }
  return text;
}

}  // namespace halfstep::report
