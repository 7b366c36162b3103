// The pages of benchmarks, evaluations and explanations.

#include <fmt/format.h>

#include <algorithm>

#include "report/bench_table.h"
#include "report/export/facts.h"
#include "report/page/chart.h"
#include "report/page/markup.h"
#include "report/page/pages.h"
#include "report/page/parts.h"

namespace halfstep::report::page {
namespace {

std::string percent(const Json& share) {
  return share.is_number() ? fmt::format("{:.1f} %", share.get<double>() * 100) : "-";
}

/// Launches by what they have in common, the slowest first, as bars and as a table.
std::string shares(const Json& rows, const char* key, const std::string& id) {
  constexpr std::size_t k_most_bars = 12;
  RangeChart chart{id, fmt::format("Time of a step by {}", key), "ms", {}};
  Rows cells{{key, "launches", "ms/step", "share", "TFLOP/s", "GB/s"}};
  for (const Json& row : rows) {
    if (chart.ranges.size() < k_most_bars) {
      chart.ranges.push_back({word(row.at(key)), 0, row.at("ms"), 0, row.at("ms")});
    }
    cells.push_back({word(row.at(key)),
                     word(row.at("launches")),
                     word(row.at("ms")),
                     percent(row.at("share")),
                     word(row.at("achieved_tflops")),
                     word(row.at("achieved_gbs"))});
  }
  return figures(figure(chart)) + details(fmt::format("All by {}", key), table(cells));
}

std::string profile(const Json& block, const std::string& policy, std::size_t index) {
  if (!block.is_object()) return "";
  std::string text;
  for (const char* key : {"type", "layer", "phase"}) {
    const Json& rows = block.at(fmt::format("by_{}", key));
    text += shares(rows, key, fmt::format("profile-{}-{}", index, key));
  }
  return section(
      fmt::format("Profile of {}: every launch timed, {} steps", policy, word(block.at("steps"))),
      text);
}

}  // namespace

std::string bench_body(const Json& report) {
  const Json& policies = report.at("policies");
  RangeChart times{"step-time", "Step time: 5th percentile, median, 95th percentile", "ms", {}};
  RangeChart speed{"speedup", "", "times as fast", {}};
  LineChart spread{"step-times", "Step time", "ms", "steps", {}};
  speed.reference = 1;
  std::string profiles, maps;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const Json& policy = policies[i];
    const std::string name = word(policy.at("policy"));
    const int color = static_cast<int>(i);
    const Json& time = policy.at("step_time");
    times.ranges.push_back({name, color, time.at("median"), time.at("p05"), time.at("p95")});
    spread.series.push_back(histogram_series(time, name, color));
    if (const Json& ratio = policy.at("speedup"); ratio.is_object()) {
      Range range{name, color, ratio.at("ratio_of_medians")};
      if (ratio.at("ci95").is_array()) {
        range.low = ratio.at("ci95")[0];
        range.high = ratio.at("ci95")[1];
      }
      speed.ranges.push_back(std::move(range));
    }
    // What the first policy has stands at the top of the report alone.
    const Json& whole = i == 0 ? report : policy;
    if (whole.contains("profile")) profiles += profile(whole.at("profile"), name, i);
    const Json& precision = whole.at("precision");
    if (precision.is_object() && precision.contains("ops")) {
      maps += details(name, op_map(precision.at("ops")));
    }
  }
  speed.title = fmt::format("Speed-up over {}: 95 % interval", word(policies[0].at("policy")));
  std::string text = table(bench_rows(report));
  text += figures(figure(times) + figure(speed) + figure(spread));
  text += profiles + section("Where each dtype is used", maps);
  text += section("Summary", facts(main_facts(report)));
  return text + notes(report) + origin(report);
}

std::string eval_body(const Json& report) {
  std::vector<std::pair<std::string, std::string>> rows{
      {"split", word(report.at("split"))},
      {"samples", word(report.at("samples"))},
      {"precision",
       fmt::format("{} requested, {} effective",
                   word(report.at("precision").at("requested")),
                   word(report.at("precision").at("effective")))}};
  for (const auto& [name, value] : report.at("metrics").items())
    rows.emplace_back(name, word(value));
  std::string text = facts(rows);
  text += section("Confusion matrix", classes(report.at("classes")));
  text += section("Where each dtype is used", op_map(report.at("precision").at("ops")));
  return text + notes(report) + origin(report);
}

std::string explain_body(const Json& report) {
  const Json& rewrite = report.at("rewrite");
  std::vector<std::pair<std::string, std::string>> rows{
      {"policy", word(report.at("policy"))},
      {"device", fmt::format("{}, {}", word(report.at("device")), word(report.at("arch")))},
      {"batch size", word(report.at("batch_size"))},
      {"16-bit share of products and convolutions", percent(report.at("half_flops_share"))},
      {"16-bit share of all outputs", percent(report.at("half_bytes_share"))},
      {"casts in a step",
       fmt::format("{}, {} bytes read and written",
                   word(report.at("casts_executed")),
                   word(report.at("cast_bytes")))}};
  if (rewrite.at("mode") != "none") {
    rows.emplace_back("rewrite",
                      fmt::format("{} to {}: {} of {} nodes, {} casts",
                                  word(rewrite.at("mode")),
                                  word(rewrite.at("target")),
                                  word(rewrite.at("nodes_converted")),
                                  word(rewrite.at("nodes_total")),
                                  word(rewrite.at("casts_inserted"))));
  }
  std::vector<std::string> hints;
  for (const Json& hint : report.at("hints")) {
    const std::string where = word(hint.at("where"));
    hints.push_back(fmt::format("{} {}{}{}",
                                word(hint.at("code")),
                                where,
                                where.empty() ? "" : ": ",
                                word(hint.at("message"))));
  }
  Rows decisions{{"node", "op", "list", "painted", "by step", "why", "because of"}};
  for (const Json& decision : rewrite.at("decisions")) {
    decisions.push_back({});
    for (const char* member : {"node", "op", "list", "paint", "step", "reason", "cause"}) {
      decisions.back().push_back(word(decision.at(member)));
    }
  }
  return facts(rows) + section("Where each dtype is used", op_map(report.at("ops"))) +
         section("Hints", list(hints)) + section("Decisions of the rewrite", table(decisions)) +
         origin(report);
}

}  // namespace halfstep::report::page
