#include "report/bench_report.h"

#include "report/run_index.h"

namespace halfstep::report {
namespace {

constexpr std::string_view k_tflops = "10^12 operations per second";
constexpr std::string_view k_gbs = "10^9 bytes of operands and results per second";

constexpr FieldOptions k_shares{.doc = "slowest first", .each = "launches that have it in common"};

}  // namespace

void TimeShare::describe(Fields& f, std::string_view member) {
  f(member, name, "- for launches without one");
  f("launches", launches, {.doc = "in a step", .min = 1});
  f("ms", ms, "ms in a step");
  f.fraction("share", share, "of all launches");
  f("achieved_tflops", achieved_tflops, k_tflops);
  f("achieved_gbs", achieved_gbs, k_gbs);
}

void ProfiledOp::fields(Fields& f) {
  f("name", name, "node of the step graph");
  f("type", type, "op");
  f("layer", layer, "of the config; empty outside of layers");
  f("phase", phase, "input, forward, loss, backward, ...");
  f("kernel", kernel, "implementation that ran");
  f("algorithm",
    algorithm,
    {.doc = "that a library chose on a device, with workspace, padding and fused ops; else empty",
     .optional = true});
  f("ms", ms, "ms; median over the profiled steps");
  f("predicted_ms", predicted_ms, {.doc = "ms; null on a CPU", .optional = true});
  f.fraction("share", share, "of all launches");
  f("achieved_tflops", achieved_tflops, k_tflops);
  f("achieved_gbs", achieved_gbs, k_gbs);
}

void Profile::fields(Fields& f) {
  f("scope", scope, "how the launches were timed");
  f("steps", steps, {.doc = "profiled", .min = 1});
  f("total_ms", total_ms, "ms in the launches of a step");
  f("predicted_ms",
    predicted_ms,
    {.doc = "ms of the same launches, predicted; null on a CPU", .optional = true});
  f("by_type", by_type, k_shares);
  f("by_layer", by_layer, k_shares);
  f("by_phase", by_phase, k_shares);
  f("ops", ops, {.doc = "in order", .each = "one launch of a step"});
}

void Measured::fields(Fields& f) {
  f("step_time", step_time, "times of steady steps");
  f("repeats", repeats, {.doc = "the same for each repeat", .each = "times of steady steps"});
  f("repeat_median", repeat_median, "of the repeats' medians, ms");
  f("throughput", throughput, "rates at the median step time");
  f("memory", memory, "memory, in bytes");
  f("skipped_steps", skipped_steps, "of all repeats");
}

void BenchPolicy::fields(Fields& f) {
  f("policy", policy, "measured");
  f("speedup", speedup, "over the first policy; null for it");
  f("precision", precision, "requested and effective precision");
  measured.fields(f);
  f("profile", profile, {.doc = "time per launch; null unless requested", .omitted = true});
}

void BenchRequest::fields(Fields& f) {
  f("seed", seed, "of weights, order and dropout");
  f("data", data, "name of the set; random for made-up samples");
  f("batch_size", batch_size, {.doc = "samples of a step", .min = 1});
  f("warmup", warmup, "steps that warm up, per repeat");
  f("steps", steps, {.doc = "counted, per repeat", .min = 1});
  f("repeats", repeats, {.doc = "fresh starts", .min = 1});
  f("policy", policy, "the first, of which the blocks below tell");
}

void BenchReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f.one_of("status", status, study_statuses(), "how the benchmark ended");
  f("exit_code", exit_code, "of the process");
  f("message", message, "why it ended; empty when completed");
  f("run", run, "the study");
  f("context", context, "machine and program that made the report");
  f("config", config, "resolved config and overrides");
  f("bench", bench, "settings of the benchmark");
  f("precision", precision, "requested and effective precision");
  measured.fields(f);
  f("profile", profile, "time per launch; null unless requested");
  f("policies",
    policies,
    {.doc = "in the requested order",
     .each = "one policy; what stands above for the first is not repeated in full"});
  f("notes", notes, "limitations of the measurements");
  describe_warnings(f, warnings);
  describe_nonfinite(f, nonfinite);
}

const Profile* BenchReport::profile_of(std::size_t index) const {
  if (index == 0) return profile ? &*profile : nullptr;
  const auto& own = policies[index].profile;
  return own && *own ? &**own : nullptr;
}

const std::vector<analysis::OpInfo>* BenchReport::ops_of(std::size_t index) const {
  if (index == 0) return precision ? &precision->ops : nullptr;
  const auto& own = policies[index].precision;
  return own && own->ops ? &*own->ops : nullptr;
}

int exit_code(const BenchReport& report) { return ending_named(report.status).study[0]; }

}  // namespace halfstep::report
