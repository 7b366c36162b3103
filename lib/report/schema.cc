#include "report/schema.h"

#include <array>

#include "report/cross_checks.h"
#include "report/schema_blocks.h"
#include "report/schema_kinds.h"

namespace halfstep::report {
namespace {

namespace s = schema;

Json scale_event() {
  return s::object({{"step", s::integer("applied steps before it")},
                    {"attempt", s::integer("attempted step, from 1", 1)},
                    {"ordinal", s::integer("of the batch")},
                    {"from", s::number("scale before")},
                    {"to", s::number("scale after")},
                    {"first_nonfinite", s::first_nonfinite()}},
                   "one change of the loss scale");
}

Json skip() {
  return s::object({{"attempt", s::integer("attempted step, from 1", 1)},
                    {"ordinal", s::integer("of the batch")},
                    {"retried", s::boolean("whether the batch was tried again")},
                    {"first_nonfinite", s::first_nonfinite()}},
                   "one step whose update was left out");
}

Json loss_scale() {
  return s::object({{"mode", s::word({"none", "fixed", "dynamic"}, "how the scale is chosen")},
                    {"initial", s::nullable(s::number("factor; null without scaling"))},
                    {"final", s::nullable(s::number("factor; null without scaling"))},
                    {"skipped_steps", s::integer("batches whose update was left out")},
                    {"retried_steps", s::integer("attempts repeated with a lower scale")},
                    {"events", s::array(scale_event(), "changes, in order")},
                    {"events_left_out",
                     s::integer("changes between the first and the last thousand, not listed"),
                     false},
                    {"skips", s::array(skip(), "attempts whose update was left out, in order")},
                    {"skips_left_out",
                     s::integer("attempts between the first and the last thousand, not listed"),
                     false}},
                   "loss scaling");
}

Json segment() {
  return s::object(
      {{"first_ordinal", s::integer("batches drawn before it")},
       {"started_at", s::text("UTC")},
       {"host", s::text("of the machine")},
       {"device", s::text("backend that computed")},
       {"isa", s::text("strongest instruction set of the CPU's kernels")},
       {"threads", s::integer("in use", 1)},
       {"policy", s::text("precision as asked for: a policy, or rewrite")},
       {"config_sha256", s::hash("of the resolved config")},
       {"data_xxh3_128", s::hash("of the training samples and their labels")},
       {"changed", s::array(s::text({}), "settings unlike those before: path: before -> after")}},
      "what one process did of the run");
}

Json run() {
  return s::object(
      {{"id", s::text("of this process' run")},
       {"directory", s::nullable(s::text("of the run's files"))},
       {"command", s::command(), false},
       {"started_at", s::text("UTC")},
       {"ended_at", s::text("UTC; so far while running")},
       {"resumed_from", s::nullable(s::text("checkpoint; null for a fresh run"))},
       {"restart_count", s::integer("times the run was resumed")},
       {"segments", s::array(segment(), "parts of the run, from resume to resume"), false},
       {"rank_count", s::constant(1, "processes that trained together: a run is one process")},
       {"slurm",
        s::nullable(s::open_object({{"job_id", s::text("of the job")}},
                                   s::text("what Slurm says of the job"),
                                   "the Slurm job; null outside of one"))},
       {"train_seconds", s::number("s in training steps, over all restarts")},
       {"wall_seconds", s::number("s, over all restarts")}},
      "the run");
}

Json train_schema() {
  return s::object(
      {{"schema_version", s::version()},
       {"kind", s::constant("train", "")},
       {"status",
        s::word({"running",
                 "completed",
                 "target_reached",
                 "stopped_early",
                 "interrupted",
                 "preempted",
                 "diverged"},
                "how the run ended")},
       {"exit_code", s::nullable(s::integer("of the process; null while running"))},
       {"message", s::text("why it ended; empty when completed")},
       {"run", run()},
       {"context", s::context()},
       {"config", s::config()},
       {"precision", s::precision()},
       {"reproducibility",
        s::object({{"seed", s::integer("of weights, order and dropout")},
                   {"deterministic", s::boolean("whether results repeat bit by bit")},
                   {"init_hash", s::hash("of the first weights")},
                   {"batch_order_hash", s::hash("of the batches drawn; empty while running")},
                   {"final_hash", s::hash("of the last weights; empty while running")},
                   {"state_hash", s::hash("of all variables; empty while running")}},
                  "hashes by which runs can be told equal")},
       {"history", s::history()},
       {"step_history", s::step_history(), false},
       {"steps",
        s::object({{"attempted", s::integer("forward and backward done")},
                   {"applied", s::integer("weights changed")},
                   {"ordinal", s::integer("batches drawn")}},
                  "steps")},
       {"samples",
        s::object({{"seen", s::integer("in batches drawn")},
                   {"trained", s::integer("in applied steps")},
                   {"retried", s::integer("in repeated attempts")}},
                  "samples")},
       {"time_to_accuracy", s::time_to_accuracy()},
       {"step_time", s::step_time()},
       {"throughput", s::throughput()},
       {"memory", s::memory()},
       {"loss_scale", loss_scale()},
       {"numerics", s::numerics()},
       {"test", s::nullable(s::metrics("on the test split, once, at the end; null without one"))},
       {"test_classes", s::classes(), false},
       {"warnings", s::warnings()},
       {"nonfinite", s::nonfinite()}},
      "a training run");
}

Json eval_schema() {
  return s::object({{"schema_version", s::version()},
                    {"kind", s::constant("eval", "")},
                    {"status", s::constant("completed", "")},
                    {"exit_code", s::constant(0, "")},
                    {"checkpoint", s::text("path as given")},
                    {"split", s::word({"train", "validation", "test"}, "evaluated")},
                    {"context", s::context()},
                    {"config", s::config()},
                    {"precision", s::precision()},
                    {"weights_hash", s::hash("of the weights")},
                    {"samples", s::integer("evaluated", 1)},
                    {"seconds", s::number("s")},
                    {"metrics", s::metrics("over all samples")},
                    {"classes", s::classes()},
                    {"warnings", s::warnings()},
                    {"nonfinite", s::nonfinite()}},
                   "an evaluation of a checkpoint");
}

Json predict_schema() {
  return s::object(
      {{"schema_version", s::version()},
       {"kind", s::constant("predict", "")},
       {"predictions",
        s::array(s::object({{"index", s::integer("of the image")},
                            {"file", s::text("it was read from")},
                            {"class", s::integer("most probable"), false},
                            {"name", s::nullable(s::text("of the class")), false},
                            {"probability", s::measure("of that class"), false},
                            {"probabilities", s::array(s::measure(""), "by class"), false},
                            {"values", s::array(s::measure(""), "of a regression"), false}},
                           "one image: class and probabilities, or values"),
                 "in the order of the input")},
       {"nonfinite", s::nonfinite()}},
      "classes of images, or values of a regression");
}

Json data_schema() {
  return s::object(
      {{"schema_version", s::version()},
       {"kind", s::constant("data", "")},
       {"name", s::text("of the set")},
       {"source", s::text("where it was read from")},
       {"origin", s::nullable(s::text("who made a named set, and its page"))},
       {"licence", s::nullable(s::text("under which a named set is published"))},
       {"classes", s::integer("number of classes")},
       {"class_names", s::array(s::text(""), "by label; empty when not known")},
       {"sample_shape", s::array(s::integer("", 1), "height, width, channels")},
       {"dtype", s::text("of the stored samples")},
       {"layout",
        s::nullable(s::text("nhwc or nchw, of samples in the files; null: without channels, or "
                            "not to be told"))},
       {"train_samples", s::integer("number")},
       {"test_samples", s::integer("number")},
       {"train_per_class", s::nullable(s::array(s::integer(""), "by label"))},
       {"test_per_class", s::nullable(s::array(s::integer(""), "by label"))},
       {"content_hash", s::hash("of samples and labels")},
       {"files",
        s::array(s::object({{"path", s::text("")}, {"sha256", s::hash("of the file")}}, "one file"),
                 "read; empty for a generated set")}},
      "a data set");
}

Json model_export_schema() {
  return s::object({{"schema_version", s::version()},
                    {"kind", s::constant("model_export", "")},
                    {"file", s::text("written")},
                    {"checkpoint", s::text("path as given")},
                    {"tensors", s::integer("number")},
                    {"dtype", s::text("of the tensors")}},
                   "weights of a model written to a file");
}

Json dry_run_schema() {
  return s::object({{"schema_version", s::version()},
                    {"kind", s::constant("dry_run", "")},
                    {"exit_code", s::integer("of the process")},
                    {"memory", s::memory()}},
                   "one step of a run, done to see what it takes");
}

Json model_schema() {
  return s::object({{"schema_version", s::version()},
                    {"kind", s::constant("model", "")},
                    {"batch_size", s::integer("samples of a step", 1)},
                    {"layers",
                     s::array(s::object({{"name", s::text("")},
                                         {"type", s::text("")},
                                         {"output", s::text("shape")},
                                         {"output_dtype", s::text("")},
                                         {"policy", s::text("precision policy of the layer")},
                                         {"trainable_parameters", s::integer("number")},
                                         {"fixed_parameters", s::integer("number")},
                                         {"forward_flops", s::number("of a batch")}},
                                        "one layer"),
                              "in order")},
                    {"trainable_parameters", s::integer("number")},
                    {"fixed_parameters", s::integer("number")},
                    {"forward_flops", s::number("of a batch")},
                    {"planned_state_bytes", s::integer("variables, packed weights")},
                    {"planned_arena_bytes", s::integer("activations, gradients, workspaces")}},
                   "a model");
}

Json cuda_schema() {
  const auto version = [](const char* of) { return s::nullable(s::text(of)); };
  return s::object({{"absence", s::nullable(s::text("why no GPU can be used; null when one can"))},
                    {"remedy", s::nullable(s::text("what would help"))},
                    {"plugin", s::nullable(s::text("file of the CUDA backend"))},
                    {"flavour", s::nullable(s::text("cuda, or emulated on the CPU"))},
                    {"driver", version("newest CUDA version that the driver can run")},
                    {"runtime", version("of CUDA")},
                    {"cublas", version("of cuBLAS")},
                    {"cudnn", version("of cuDNN")},
                    {"nccl", version("of NCCL, which halfstep does not use yet")},
                    {"devices",
                     s::array(s::object({{"name", s::text("")},
                                         {"compute_capability", s::text("9.0")},
                                         {"memory_bytes", s::integer("of the device")},
                                         {"multiprocessors", s::integer("number")},
                                         {"tf32", s::boolean("whether it has TensorFloat-32")}},
                                        "a GPU"),
                              "in the driver's order")}},
                   "the CUDA backend");
}

Json doctor_schema() {
  return s::object({{"schema_version", s::version()},
                    {"kind", s::constant("doctor", "")},
                    {"context", s::context()},
                    {"available_memory_bytes", s::integer("left to this process")},
                    {"probes",
                     s::array(s::object({{"device", s::text("")},
                                         {"dtype", s::text("tried")},
                                         {"ok", s::boolean("whether the product came out right")},
                                         {"kernel", s::text("that ran")},
                                         {"caveat", s::nullable(s::text("what to know about it"))}},
                                        "a matrix product in one dtype"),
                              "by device and dtype")},
                    {"onednn",
                     s::object({{"version", s::text("2.6.3")},
                                {"runtime", s::text("whose threads run its parallel loops")},
                                {"threads", s::nullable(s::integer("at most, where known", 1))},
                                {"reason", s::text("for the runtime and the threads")}},
                               "the library behind float32 products and most convolutions")},
                    {"cuda", cuda_schema()}},
                   "what this machine can do");
}

Json verify_resume_schema() {
  return s::object({{"schema_version", s::version()},
                    {"kind", s::constant("verify_resume", "")},
                    {"exit_code", s::integer("0 when equal, else 1")},
                    {"at_step", s::integer("batches before the run was left", 1)},
                    {"steps", s::integer("batches of the whole run", 1)},
                    {"equal", s::boolean("whether nothing differs")},
                    {"whole_hash", s::hash("of all variables of the whole run")},
                    {"resumed_hash", s::hash("of all variables of the resumed run")},
                    {"differing", s::array(s::text(""), "variables and other parts that differ")}},
                   "a resumed run against a whole one");
}

constexpr std::array k_kinds{
    Kind{"train", "a training run", train_schema, check_train},
    Kind{"eval", "an evaluation of a checkpoint", eval_schema, check_eval},
    Kind{"predict", "classes or values of images", predict_schema, nullptr},
    Kind{"data", "a data set", data_schema, nullptr},
    Kind{"model", "a model", model_schema, nullptr},
    Kind{"model_export", "weights of a model as a file", model_export_schema, nullptr},
    Kind{"dry_run", "what one step of a run takes", dry_run_schema, nullptr},
    Kind{"compare", "a comparison of policies or runs", s::compare, check_compare},
    Kind{"bench", "a benchmark", s::bench, check_bench},
    Kind{"explain", "which dtype each op gets, and why", s::explain, check_explain},
    Kind{"explain_diff", "ops that two policies treat differently", s::explain_diff, nullptr},
    Kind{"graph_rewrite", "the rewrite of a written graph", s::graph_rewrite, check_graph_rewrite},
    Kind{"diff", "in what two training runs differ", s::diff, nullptr},
    Kind{"runs", "the runs in a folder", s::runs, nullptr},
    Kind{"best_run", "the best run in a folder", s::best_run, nullptr},
    Kind{"prune", "a removal of runs", s::prune, nullptr},
    Kind{"doctor", "what a machine can do", doctor_schema, nullptr},
    Kind{"reference", "layers, losses, ... and keys of configs", s::reference, nullptr},
    Kind{"verify_resume", "a resumed run against a whole one", verify_resume_schema, nullptr}};

constexpr std::string_view k_draft = "http://json-schema.org/draft-07/schema#";

}  // namespace

std::span<const Kind> kind_table() { return k_kinds; }

const Kind* find_kind(std::string_view name) {
  for (const Kind& kind : k_kinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

Json schema_document(const Kind& kind) {
  Json document{{"$schema", k_draft}, {"title", "halfstep report: " + std::string(kind.name)}};
  document.update(kind.schema());
  return document;
}

Json schema_document() {
  Json document{{"$schema", k_draft}, {"title", "halfstep report"}, {"oneOf", Json::array()}};
  for (const Kind& kind : k_kinds) document["oneOf"].push_back(kind.schema());
  return document;
}

}  // namespace halfstep::report
