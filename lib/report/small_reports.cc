#include "report/small_reports.h"

#include <array>
#include <string_view>

#include "precision/rewrite.h"
#include "report/machine_reports.h"
#include "report/run_reports.h"

namespace halfstep::report {
namespace {

constexpr std::array<std::string_view, 3> k_eval_splits{"train", "validation", "test"};
constexpr std::array<std::string_view, 2> k_directions{"larger", "smaller"};

}  // namespace

void EvalReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f.constant("status", "completed", "");
  f.constant("exit_code", 0, "");
  f("checkpoint", checkpoint, "path as given");
  f.one_of("split", split, k_eval_splits, "evaluated");
  f("context", context, "machine and program that made the report");
  f("config", config, "what was asked for");
  f("precision", precision, "requested and effective precision");
  f("weights_hash", weights_hash, "of the weights");
  f("samples", samples, {.doc = "evaluated", .min = 1});
  f("seconds", seconds, "s");
  f("metrics", metrics, metrics_options("over all samples"));
  f("classes", classes, "results per class; null without classes");
  f("outputs",
    outputs,
    {.doc = "of a model of several, by output", .each = "one output", .omitted = true});
  describe_warnings(f, warnings);
  describe_nonfinite(f, nonfinite);
}

void SamplePrediction::fields(Fields& f) {
  f("class", label, {.doc = "most probable", .omitted = true});
  f("name", name, {.doc = "of the class", .omitted = true});
  f("probability", probability, {.doc = "of that class", .omitted = true});
  f("probabilities", probabilities, {.doc = "by class", .omitted = true});
  f("values",
    values,
    {.doc = "of a regression, of several answers, of a score, or at each position",
     .omitted = true});
  f("classes", labels, {.doc = "most probable, at each position", .omitted = true});
}

void PredictedOutput::fields(Fields& f) {
  f("output", output, "name of the output");
  SamplePrediction::fields(f);
}

void PredictedImage::fields(Fields& f) {
  f("index", index, "of the image");
  f("file", file, "it was read from");
  SamplePrediction::fields(f);
  f("outputs",
    outputs,
    {.doc = "of a model of several, by output", .each = "one output", .omitted = true});
}

void PredictReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("predictions",
    predictions,
    {.doc = "in the order of the input", .each = "one image: class and probabilities, or values"});
  describe_nonfinite(f, nonfinite);
}

void DataFile::fields(Fields& f) {
  f("path", path, "");
  f("sha256", sha256, "of the file");
}

void DataInput::fields(Fields& f) {
  f("name", name, "in the config");
  f("shape", shape, {.doc = "of its values in a sample", .min = 1});
}

void DataOutput::fields(Fields& f) {
  f("name", name, "in the names of metrics and arrays");
  f("shape", shape, {.doc = "of its label; [] of a single number", .min = 1});
  f("classes", classes, "number of classes; 0 for real values");
  f("class_names",
    class_names,
    {.doc = "by label; empty when not known", .each = "a name", .optional = true});
}

void DataReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("name", name, "of the set");
  f("source", source, "where it was read from");
  f.text_or_null("origin", origin, "who made a named set, and its page");
  f.text_or_null("licence", licence, "under which a named set is published");
  f("classes", classes, "number of classes");
  f("class_names", class_names, "by label; empty when not known");
  f("columns",
    columns,
    {.doc = "of a table, in the order of their features; empty for other data",
     .each = "one column",
     .optional = true});
  f("inputs",
    inputs,
    {.doc = "of a model that has several, in the order of their values in a sample; else empty",
     .each = "one input",
     .optional = true});
  f("outputs",
    outputs,
    {.doc = "of a model of several, in the order of their values in a label",
     .each = "one output",
     .omitted = true});
  f("sample_shape", sample_shape, {.doc = "height, width, channels", .min = 1});
  f("dtype", dtype, "of the stored samples");
  f.text_or_null("layout", layout, "nhwc or nchw, of the files; null: no channels, or ambiguous");
  f("train_samples", train_samples, "number");
  f("test_samples", test_samples, "number");
  f("left_out_samples",
    left_out_samples,
    {.doc = "number of those in the files that cannot be read or lack a value", .optional = true});
  f("resized_samples",
    resized_samples,
    {.doc = "images of an image_folder that had another size", .optional = true});
  f("converted_samples",
    converted_samples,
    {.doc = "images of an image_folder that had other channels", .optional = true});
  f("train_per_class", train_per_class, "by label");
  f("test_per_class", test_per_class, "by label");
  f("content_hash", content_hash, "of samples and labels");
  f("files", files, {.doc = "read; empty for a generated set", .each = "one file"});
}

void LayerSummary::fields(Fields& f) {
  f("name", name, "");
  f("type", type, "");
  f("output", output, "shape");
  f("further_outputs",
    further_outputs,
    {.doc = "shapes of `name:1` and those behind, where the layer has several outputs",
     .each = "a shape"});
  f("output_dtype", output_dtype, "by the policy; the automatic rewrite may choose another");
  f("policy", policy, "precision policy of the layer");
  f("trainable_parameters", trainable_parameters, "number");
  f("fixed_parameters", fixed_parameters, "number");
  f("forward_flops", forward_flops, "of a batch");
}

void ModelReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("batch_size", batch_size, {.doc = "samples of a step", .min = 1});
  f("layers", layers, {.doc = "in order", .each = "one layer"});
  f("trainable_parameters", trainable_parameters, "number");
  f("fixed_parameters", fixed_parameters, "number");
  f("forward_flops", forward_flops, "of a batch");
  f("planned_state_bytes", planned_state_bytes, "variables, packed weights");
  f("planned_arena_bytes", planned_arena_bytes, "activations, gradients, workspaces");
}

void ModelExportReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("file", file, "written");
  f("checkpoint", checkpoint, "path as given");
  f("tensors", tensors, "number");
  f("dtype", dtype, "of the tensors");
}

void DryRunReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("exit_code", exit_code, "of the process");
  f("memory", memory, "memory, in bytes");
}

void RewrittenNode::fields(Fields& f) {
  f("name", name, "");
  f("op", op, "node after the rewrite");
  f("attrs",
    attrs,
    {.doc = "every type attribute", .each = "dtype, or dtypes of a list", .allow_scalar = true});
}

void InsertedCast::fields(Fields& f) {
  f("name", name, "of the new node");
  f("from", from, "dtype");
  f("to", to, "dtype");
  f("input", input, "node:port");
  f("consumers", consumers, "nodes that read it, in graph order");
}

void PaintedAttr::fields(Fields& f) {
  f("node", node, "");
  f("attr", attr, "type attribute");
  f.one_of("paint", paint, names_of(precision::Paint()), "");
  f.one_of("step", step, names_of(precision::Rule()), "of the rewrite that decided");
  f("reason", reason, "in words");
}

void GraphRewriteReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f.one_of("mode", mode, names_of(precision::Mode()), "of the rewrite");
  f.one_of("status", status, names_of(precision::RewriteStatus()), "how it ended");
  f.text_or_null("message", message, "why nothing was done");
  f("nodes",
    nodes,
    {.doc = "every node of the input, in its order", .each = "one node of the input"});
  f("casts", casts, {.doc = "inserted", .each = "one inserted cast"});
  f("converted_attrs", converted_attrs, "type attributes changed");
  f("casts_counted", casts_counted, "casts to 16 bits, without those of constants and variables");
  f("paint",
    paint,
    {.doc = "every type attribute looked at", .each = "one type attribute of one node"});
}

void RunsReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("folder", folder, "that was searched");
  f("runs", runs, {.doc = "in the requested order", .each = "one run"});
  f("foreign", foreign, "folders without a run");
}

void BestRunReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("folder", folder, "that was searched");
  f("metric",
    metric,
    "by its name with the split; or step_time, in ms, or speedup, over the baseline");
  f.one_of("direction", direction, k_directions, "which values are better");
  f("policy", policy, {.doc = "whose value it is", .optional = true});
  f("value", value, "of the best run");
  f("compared", compared, {.doc = "runs that have the metric", .min = 1});
  f("run", run, "one run");
}

void RemovedRun::fields(Fields& f) {
  f("run", run, "one run");
  f("bytes", bytes, "of its files");
}

void RetainedRun::fields(Fields& f) {
  f("run", run, "one run");
  f("reason", reason, "why it stays");
}

void PruneReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("folder", folder, "that was searched");
  f("dry_run", dry_run, "whether nothing was removed");
  f("removed", removed, {.doc = "removed, or of a dry run what would be", .each = "one run"});
  f("kept", kept, {.doc = "selected by the rules and not removed", .each = "one run"});
  f("leftovers", leftovers, "directories that an interrupted removal had left");
  f("bytes", bytes, "of all that is removed");
}

void DtypeProbe::fields(Fields& f) {
  f("device", device, "");
  f("dtype", dtype, "tried");
  f("ok", ok, "whether the result of the matmul was correct");
  f("kernel", kernel, "that ran");
  f.text_or_null("caveat", caveat, "what to know about it");
}

void OneDnnBlock::fields(Fields& f) {
  f("version", version, "2.6.3");
  f("runtime", runtime, "whose threads run its parallel loops");
  f("threads", threads, {.doc = "at most, where known", .min = 1});
  f("reason", reason, "for the runtime and the threads");
}

void CudaDevice::fields(Fields& f) {
  f("name", name, "");
  f("compute_capability", compute_capability, "9.0");
  f("memory_bytes", memory_bytes, "of the device");
  f("multiprocessors", multiprocessors, "number");
  f("tf32", tf32, "whether it has TensorFloat-32");
}

void CudaBlock::fields(Fields& f) {
  f.text_or_null("absence", absence, "why no GPU can be used; null when one can");
  f.text_or_null("remedy", remedy, "suggested remedy");
  f.text_or_null("plugin", plugin, "file of the CUDA backend");
  f.text_or_null("flavour", flavour, "cuda, or emulated on the CPU");
  f.text_or_null("driver", driver, "newest CUDA version that the driver can run");
  f.text_or_null("runtime", runtime, "of CUDA");
  f.text_or_null("cublas", cublas, "of cuBLAS");
  f.text_or_null("cudnn", cudnn, "of cuDNN");
  f.text_or_null("nccl", nccl, "of NCCL, which adds over the ranks of a run");
  f("devices", devices, {.doc = "in the driver's order", .each = "a GPU"});
}

void RankGroup::fields(Fields& f) {
  f("host", host, "its name");
  f("cpu", cpu, "model of the processor");
  f("isa", isa, "strongest instruction set of the CPU's kernels");
  f("threads", threads, "of each rank");
  f("ranks", ranks, "number");
}

void RanksProbe::fields(Fields& f) {
  f("launcher", launcher, "the program that started the ranks");
  f("thread_level", thread_level, "of MPI");
  f("count", count, "of ranks");
  f("groups", groups, {.doc = "by host", .each = "ranks of a host with the same kernels"});
  f("small_sum_seconds", small_sum_seconds, "for a sum of 4 bytes over all ranks, median");
  f("large_sum_seconds", large_sum_seconds, "for a sum of 16 MiB over all ranks, median");
  f("sent_bytes_per_second", sent_bytes_per_second, "by each rank in that sum");
}

void MpiBlock::fields(Fields& f) {
  f.text_or_null("file", file, "the library that ranks would use; null without one");
  f.text_or_null("interface", interface, "its binary interface: Open MPI or MPICH");
  f.text_or_null("version", version, "of the library");
  f.text_or_null("absence", absence, "why there is none");
  f("ranks",
    ranks,
    "of this process and those that its launcher started beside it; null when alone");
}

void DoctorReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("context", context, "machine and program that made the report");
  f("available_memory_bytes", available_memory_bytes, "left to this process");
  f("probes", probes, {.doc = "by device and dtype", .each = "a matmul in one dtype"});
  f("onednn", onednn, "the library behind float32 matmuls and most convolutions");
  f("cuda", cuda, "the CUDA backend");
  f("mpi", mpi, "the library for runs of several ranks");
}

void ReferenceArgument::fields(Fields& f) {
  f("name", name, "last part of the path");
  f("path", path, "below its entry");
  f("doc", doc, "effect of its value");
  f("type", type, "in words, with the values that are allowed");
  f.text_or_null("unit", unit, "of its values; null: none");
  f("required", required, "whether it must be given");
  f("nullable", nullable, "whether null is a value");
  f("default", usual, "as YAML; null: none, or not the same everywhere");
  f("values", values, "all of them, where there are few");
  f("minimum", minimum, "inclusive");
  f("maximum", maximum, "inclusive");
  f("above", above, "exclusive minimum");
  f("below", below, "exclusive maximum");
}

void ReferenceFact::fields(Fields& f) {
  f("label", label, "shapes, dtypes, example, ...");
  f("text", text, "of the fact");
}

void ReferenceEntry::fields(Fields& f) {
  constexpr std::string_view k_argument = "one argument, or key of a config";
  f("kind", kind, "layer, loss, section, ...; topic in the list of topics");
  f("name", name, "by which configs and halfstep help know it");
  f("doc", doc, "formula or meaning");
  f("facts", facts, {.doc = "shapes, dtypes, example and the like", .each = "one fact"});
  f("arguments", arguments, {.doc = "its own", .each = k_argument});
  f("common_arguments",
    common_arguments,
    {.doc = "of every entry of its kind", .each = k_argument});
}

void ReferenceReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f.text_or_null("topic", topic, "as requested; null: the list of topics");
  f.text_or_null("text", text, "an introduction in Markdown; null: none");
  f("entries", entries, {.doc = "in order", .each = "one entry"});
}

void VerifyResumeReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("exit_code", exit_code, "0 when equal, else 1");
  f("at_step", at_step, {.doc = "batches before the run was left", .min = 1});
  f("steps", steps, {.doc = "batches of the uninterrupted run", .min = 1});
  f("equal", equal, "whether nothing differs");
  f("whole_hash", whole_hash, "of all variables of the uninterrupted run");
  f("resumed_hash", resumed_hash, "of all variables of the resumed run");
  f("differing", differing, "variables and other parts that differ");
}

void TuneReport::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("file", file, "written, from which runs choose kernels");
  f("origin", origin, "when, where and how they were measured");
  f("measurements", measurements, "kernels times shapes, dtypes and thread counts");
  f.measure("register_gflops",
            register_gflops,
            "10^9 operations per second of one thread, from operands in registers");
  f.measure("disturbed_share", disturbed_share, "from 0 to 1, of the timings");
}

}  // namespace halfstep::report
