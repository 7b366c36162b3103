#include "report/blocks.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "core/ranges.h"
#include "report/study_blocks.h"

namespace halfstep::report {
namespace {

constexpr std::array<std::string_view, 2> k_numerics_modes{"sample", "full"};

void describe_estimate(Fields& f, Estimate& estimate, std::string_view name) {
  f.measure(name, estimate.value, "point estimate");
  f("ci95", estimate.ci95, "95 % confidence: low, high; null with one repetition");
  f("n", estimate.n, {.doc = "repetitions", .min = 1});
}

std::optional<Classes> classes_of(const train::Confusion& confusion,
                                  const std::vector<std::string>& class_names) {
  if (confusion.classes == 0) return std::nullopt;
  Classes block;
  for (std::int64_t label = 0; label < confusion.classes; ++label) {
    ClassResult row;
    row.label = label;
    row.correct = confusion.at(label, label);
    std::vector<std::int64_t>& counts = block.confusion.emplace_back();
    for (std::int64_t p = 0; p < confusion.classes; ++p) {
      counts.push_back(confusion.at(label, p));
      row.count += counts.back();
    }
    const auto index = static_cast<std::size_t>(label);
    if (index < class_names.size()) row.name = class_names[index];
    if (row.count > 0) {
      row.accuracy = static_cast<double>(row.correct) / static_cast<double>(row.count);
    }
    block.per_class.push_back(std::move(row));
  }
  return block;
}

}  // namespace

void describe_kind(Fields& f, std::string_view kind) {
  f.constant("schema_version", 1, "raised when the meaning of a member changes");
  f.constant("kind", kind, "");
}

void describe_nonfinite(Fields& f, NonfiniteMap& nonfinite) {
  f("nonfinite", nonfinite, "numbers that are not finite, by path: the reports have null there");
}

FieldOptions metrics_options(std::string_view doc) {
  return {.doc = doc,
          .each = "a metric over the samples",
          .key = "loss",
          .key_doc = "mean over the samples"};
}

MetricsBlock metrics_block(const train::Metrics& metrics) {
  return {metrics.begin(), metrics.end()};
}

void WarningBlock::fields(Fields& f) {
  f("code", code, "W and three digits");
  f("where", where, "layer or path in the config; empty without one");
  f("message", message, "text of the warning");
}

void describe_warnings(Fields& f, std::vector<WarningBlock>& warnings) {
  f("warnings", warnings, {.doc = "about config, model and run", .each = "one warning"});
}

std::string warning_line(const WarningBlock& warning) {
  return fmt::format(
      "{} {}{}{}", warning.code, warning.where, warning.where.empty() ? "" : ": ", warning.message);
}

void KernelCosts::fields(Fields& f) {
  f("origin", origin, "shipped, or where and when it was measured");
  f("xxh3_128", xxh3_128, "hash of the measurements");
}

void Gpu::fields(Fields& f) {
  f("index", index, "among those of the machine");
  f("name", name, "of the GPU");
  f("flavour", flavour, "cuda, or emulated on the CPU");
  f("compute_capability", compute_capability, "9.0");
  f("multiprocessors", multiprocessors, "number");
  f("memory_bytes", memory_bytes, "of the device");
  f.text_or_null("driver", driver, "newest CUDA version that it can run");
  f.text_or_null("cublas", cublas, "version of cuBLAS");
}

void Cpu::fields(Fields& f) {
  f("model", model, "of the processor");
  f("isa", isa, "instruction sets used");
  f("kernel_costs", kernel_costs, "measured times by which kernels were chosen");
}

void Versions::fields(Fields& f) {
  f("onednn", onednn, "of the library in use");
  f.text_or_null("cuda", cuda, "null without a CUDA backend");
  f.text_or_null("cudnn", cudnn, "null without a CUDA backend");
  f.text_or_null("nccl", nccl, "null: a run does not record it, see doctor");
  f.text_or_null("mpi", mpi, "of the ranks' library; null of a run of one process");
}

void Context::fields(Fields& f) {
  f("date", date, {.doc = "UTC", .utc = true});
  f("host_name", host_name, "of the machine");
  f("executable", executable, "path of the program");
  f("num_cpus", num_cpus, {.doc = "processors this process may use", .min = 1});
  f("threads", threads, {.doc = "threads in use", .min = 1});
  f("cpu_scaling_enabled", cpu_scaling_enabled, "frequency scaling; null when not known");
  f("load_avg", load_avg, "runnable processes: means of 1, 5, 15 minutes");
  f("library_version", library_version, "of halfstep");
  f("library_build_type", library_build_type, "release, debug, ...");
  f("compiler", compiler, "it was built with");
  f.text_or_null("git_commit", git_commit, "of the sources; null outside a checkout");
  f("git_dirty", git_dirty, "whether the sources differed from the commit");
  f("device", device, "backend that computed");
  f("cpu", cpu, "processor");
  f("gpu", gpu, {.doc = "GPUs used; empty without", .each = "one GPU"});
  f("versions", versions, "versions of the libraries in use");
}

void ConfigBlock::fields(Fields& f) {
  f("sha256", sha256, "of the resolved config, without its name");
  f.json("resolved", resolved, "every setting, defaults included", true);
  f("overrides", overrides, "settings laid over the config, as written");
}

void Steps::fields(Fields& f) {
  f("attempted", attempted, "forward and backward done");
  f("applied", applied, "weights changed");
  f("ordinal", ordinal, "batches drawn");
}

Steps steps_block(const train::Counters& counters) {
  return {counters.attempted, counters.applied, counters.ordinal};
}

void ClassResult::fields(Fields& f) {
  f("class", label, "label");
  f("name", name, "of the class");
  f("count", count, "samples with this label");
  f("correct", correct, "of them predicted right");
  f("accuracy", accuracy, "correct / count; null without samples");
}

void Classes::fields(Fields& f) {
  f("per_class", per_class, {.doc = "by label", .each = "one class"});
  f("confusion", confusion, {.doc = "rows by label", .each = "counts by predicted class"});
}

std::optional<Classes> classes_block(const train::Evaluation& evaluation,
                                     const std::vector<std::string>& class_names) {
  if (evaluation.outputs.size() != 1) return std::nullopt;
  return classes_of(evaluation.outputs[0].confusion, class_names);
}

void OutputClasses::fields(Fields& f) {
  f("output", output, "name of the output");
  f("classes", classes, "results per class; null for real values");
}

std::optional<std::vector<OutputClasses>> output_classes(const train::Evaluation& evaluation,
                                                         const data::Dataset& dataset) {
  if (evaluation.outputs.size() < 2) return std::nullopt;
  std::vector<OutputClasses> all;
  for (const train::OutputPredictions& of : evaluation.outputs) {
    const std::vector<std::string>& names = dataset.class_names_of(all.size());
    all.push_back({of.output, classes_of(of.confusion, names)});
  }
  return all;
}

void Numerics::fields(Fields& f) {
  f.one_of("mode", mode, k_numerics_modes, "which steps are sampled");
  f("every", every, {.doc = "batches between samples", .min = 1});
  f("sampled_steps", sampled_steps, "ordinals of the batches, since the last resume");
  f("tensors", tensors, {.doc = "in the order of the step", .each = "one tensor of the step"});
}

void describe_command(Fields& f, std::vector<std::string>& command) {
  f("command",
    command,
    {.doc = "the command that made the report, word by word", .optional = true});
}

void StudyRun::fields(Fields& f) {
  f("id", id, "of this study");
  f.text_or_null("directory", directory, "of its files");
  describe_command(f, command);
  f("started_at", started_at, {.doc = "UTC", .utc = true});
  f("ended_at", ended_at, {.doc = "UTC", .utc = true});
}

void MeanEstimate::fields(Fields& f) { describe_estimate(f, *this, "mean"); }
void RatioEstimate::fields(Fields& f) { describe_estimate(f, *this, "ratio_of_medians"); }

}  // namespace halfstep::report
