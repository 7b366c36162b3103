#include "report/diff_report.h"

#include "report/run_index.h"

namespace halfstep::report {

void Difference::fields(Fields& f) {
  f("path", path, "");
  f.json("a", a, "in the first; (absent) where it has none");
  f.json("b", b, "in the second; (absent) where it has none");
}

void MetricDifference::fields(Fields& f) {
  Difference::fields(f);
  f("delta", delta, "b - a");
}

void StepTimeRatio::fields(Fields& f) {
  f.constant("unit", "ms", "of the times");
  f("a", a, "median, ms");
  f("b", b, "median, ms");
  f("ratio", ratio, "a / b; above 1 when b is faster");
}

void PolicyTimePair::fields(Fields& f) {
  f("a", a, "of the first; null where no steady step was counted");
  f("b", b, "of the second; null where no steady step was counted");
  f("ratio", ratio, "a / b, of the medians; above 1 when b is faster");
}

void PolicyDifference::fields(Fields& f) {
  f("policy", policy, "as the studies call it");
  f("step_time", step_time, "of steady steps");
  f("speedup", speedup, "over the baseline of a comparison, or a benchmark's first policy");
  f("accuracy_delta",
    accuracy_delta,
    "of the metric that a comparison judges by, minus its baseline's; null in benchmarks");
}

void DiffReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f.visit("of",
          OneOfRef{&of, run_kinds()},
          {.doc = "kind of both reports; without it training runs", .optional = true});
  f("config", config, {.doc = "settings", .each = "one member"});
  f("precision", precision, {.doc = "requested and effective precision", .each = "one member"});
  f("outcome", outcome, {.doc = "end, steps, hashes, machine", .each = "one member"});
  f("metrics",
    metrics,
    {.doc = "last values; of a comparison or benchmark by policy, means over the seeds, and bytes",
     .each = "one member"});
  f("step_time", step_time, "medians; of a comparison its baseline's, of a benchmark its first's");
  f("policies",
    policies,
    {.doc = "of two comparisons or benchmarks, those of the first before others; empty for "
            "training runs",
     .each = "one policy",
     .optional = true});
}

}  // namespace halfstep::report
