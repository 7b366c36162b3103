#include <fmt/format.h>

#include "report/export/summary.h"
#include "report/page/chart.h"
#include "report/page/markup.h"
#include "report/page/pages.h"
#include "report/tables.h"

namespace halfstep::report::page {
namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

/// Groups of launches, the slowest first, as bars and as a table.
template <class Share>
std::string shares(const std::vector<Share>& rows, const char* key, std::size_t policy) {
  constexpr std::size_t k_max_bars = 12;
  RangeChart chart{fmt::format("profile-{}-{}", policy, key),
                   fmt::format("Time of a step by {}", key),
                   "ms",
                   {}};
  Rows cells{{key, "launches", "ms/step", "share", "TFLOP/s", "GB/s"}};
  for (const Share& row : rows) {
    if (chart.ranges.size() < k_max_bars) {
      chart.ranges.push_back({row.name, 0, row.ms, 0, row.ms});
    }
    cells.push_back({row.name,
                     to_text(row.launches),
                     to_text(row.ms),
                     percent(row.share),
                     to_text(row.achieved_tflops),
                     to_text(row.achieved_gbs)});
  }
  return figures(figure(chart)) + details(fmt::format("All by {}", key), table(cells));
}

std::string profile(const Profile* block, const std::string& policy, std::size_t index) {
  if (block == nullptr) return "";
  return section(fmt::format("Profile of {}: every launch timed, {} steps", policy, block->steps),
                 shares(block->by_type, "type", index) + shares(block->by_layer, "layer", index) +
                     shares(block->by_phase, "phase", index));
}

}  // namespace

std::string body(const BenchReport& report) {
  const std::vector<BenchPolicy>& policies = report.policies;
  RangeChart times{"step-time", "Step time: 5th percentile, median, 95th percentile", "ms", {}};
  RangeChart speed{"speedup", "", "times as fast", {}};
  LineChart spread{"step-times", "Step time", "ms", "steps", {}};
  speed.reference = 1;
  std::string profiles, maps;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const std::string& name = policies[i].policy;
    const int color = static_cast<int>(i);
    const StepTime& time = policies[i].measured.step_time;
    times.ranges.push_back({name, color, number(time.median), number(time.p05), number(time.p95)});
    spread.series.push_back(histogram_series(time, name, color));
    if (const auto& ratio = policies[i].speedup) {
      speed.ranges.push_back(range_of(name, color, ratio->value, ratio->ci95));
    }
    profiles += profile(report.profile_of(i), name, i);
    if (const auto* ops = report.ops_of(i)) maps += details(name, op_map(*ops));
  }
  speed.title = fmt::format("Speed-up over {}: 95 % interval", policies[0].policy);
  std::string text = table(bench_rows(report));
  text += figures(figure(times) + figure(speed) + figure(spread));
  text += profiles + section("Where each dtype is used", maps);
  text += section("Summary", value_table(summarize(report)));
  return text + notes(report.notes, report.warnings) +
         origin(
             run_summary(report.run.command, report.run.directory), report.context, &report.config);
}

std::string body(const EvalReport& report) {
  Summary rows{{"split", report.split},
               {"samples", to_text(report.samples)},
               {"precision", precision_text(report.precision)}};
  for (const auto& [name, value] : report.metrics) rows.emplace_back(name, to_text(value));
  std::string text = value_table(rows);
  text += section("Confusion matrix", classes(report.classes));
  for (const OutputClasses& of : report.outputs.value_or(std::vector<OutputClasses>())) {
    text += section("Confusion matrix, output " + of.output, classes(of.classes));
  }
  text += section("Where each dtype is used", op_map(report.precision.ops));
  return text + notes({}, report.warnings) +
         origin({{"checkpoint", report.checkpoint}}, report.context, &report.config);
}

std::string body(const ExplainReport& report) {
  const plan::RewriteSummary& rewrite = report.rewrite;
  Summary rows{
      {"policy", report.policy},
      {"device", fmt::format("{}, {}", report.device, report.arch)},
      {"batch size", to_text(report.batch)},
      {"16-bit share of matmuls and convolutions", percent(report.half_flops_share)},
      {"16-bit share of all outputs", percent(report.half_bytes_share)},
      {"casts in a step",
       fmt::format("{}, {} bytes read and written", report.casts, to_text(report.cast_bytes))}};
  if (rewrite.mode != "none") {
    rows.emplace_back("rewrite", rewrite_text(rewrite));
  }
  Rows decisions{{"node", "op", "list", "painted", "by step", "why", "because of"}};
  for (const plan::RewriteDecision& d : rewrite.decisions) {
    decisions.push_back(
        {d.node, d.op, or_dash(d.list), d.paint, d.step, d.reason, or_dash(d.cause)});
  }
  return value_table(rows) + section("Where each dtype is used", op_map(report.ops)) +
         section("Hints", list(note_lines({}, report.hints))) +
         section("Decisions of the rewrite", table(decisions));
}

}  // namespace halfstep::report::page
