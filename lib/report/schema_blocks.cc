#include "report/schema_blocks.h"

#include "train/step_history.h"

namespace halfstep::report::schema {
namespace {

constexpr Doc k_no_doc{};

Json name_of(Doc doc) { return text(doc); }

Json dtype(Doc doc) { return text(doc); }

Json versions() {
  const auto version = [](Doc doc) { return nullable(text(doc)); };
  return object({{"onednn", text("of the library in use")},
                 {"cuda", version("null without a CUDA backend")},
                 {"cudnn", version("null without a CUDA backend")},
                 {"nccl", version("null: halfstep does not use NCCL")},
                 {"mpi", version("null: halfstep does not use MPI")}},
                "versions of the libraries in use");
}

Json op() {
  return object({{"name", name_of("node of the step graph")},
                 {"type", text("op")},
                 {"layer", text("layer of the config; empty outside of layers")},
                 {"phase", text("input, forward, loss, backward, unscale, update, ...")},
                 {"in_dtype", dtype("of the first floating input; empty without inputs")},
                 {"compute_dtype", dtype("the op computes in")},
                 {"accumulate_dtype",
                  nullable(dtype("narrowest of partial sums; null where nothing is summed, or it "
                                 "is not known"))},
                 {"out_dtype", dtype("of the first floating output; empty without outputs")},
                 {"reason", text("why it computes in this dtype")},
                 {"kernel", text("implementation that ran")},
                 {"flops", number("of matrix products and convolutions, 2 per product"), false},
                 {"tensor_core",
                  nullable(boolean("whether tensor cores of a GPU did the work; null where a "
                                   "library decided and it is not known"))}},
                "one launch of a step");
}

Json decision() {
  return object({{"node", name_of("node of the graph")},
                 {"op", text("its op")},
                 {"attr", text("its type attribute")},
                 {"list", nullable(text("allow, infer, deny or clear; null on none"))},
                 {"paint", text("allow, deny or none")},
                 {"step", text("of the pass that decided")},
                 {"reason", text("in words")},
                 {"cause", nullable(text("node that decided or stands in the way"))}},
                "one op the automatic rewrite looked at");
}

}  // namespace

Json rewrite() {
  return object({{"mode", text("none, cuda, bf16, cpu or fp16_cpu")},
                 {"target", nullable(dtype("it converts to; null without a rewrite"))},
                 {"nodes_total", integer("nodes of the graph")},
                 {"nodes_converted", integer("nodes that changed dtype")},
                 {"casts_inserted", integer("casts the rewrite added")},
                 {"list_edits", array(text(k_no_doc), "edits of the op lists: allow +Softmax")},
                 {"decisions", array(decision(), "why each op was or was not converted")}},
                "what the automatic rewrite did");
}

Json hash(Doc doc) { return text(doc); }

Json version() { return constant(1, "raised when the meaning of a member changes"); }

Json context() {
  return object(
      {{"date", text("UTC")},
       {"host_name", text("of the machine")},
       {"executable", text("path of the program")},
       {"num_cpus", integer("processors this process may use", 1)},
       {"threads", integer("threads in use", 1)},
       {"cpu_scaling_enabled", nullable(boolean("frequency scaling; null when not known"))},
       {"load_avg", array(number(k_no_doc), "runnable processes: means of 1, 5, 15 minutes")},
       {"library_version", text("of halfstep")},
       {"library_build_type", text("release, debug, ...")},
       {"compiler", text("it was built with")},
       {"git_commit", nullable(text("of the sources; null outside a checkout"))},
       {"git_dirty", boolean("whether the sources differed from the commit")},
       {"device", text("backend that computed")},
       {"cpu",
        object({{"model", text("of the processor")},
                {"isa", array(text(k_no_doc), "instruction sets used")},
                {"kernel_costs",
                 nullable(object({{"origin", text("shipped, or where and when it was measured")},
                                  {"xxh3_128", text("hash of the measurements")}},
                                 "measured times by which kernels were chosen"))}},
               "processor")},
       {"gpu",
        array(object({{"index", integer("among those of the machine")},
                      {"name", text("of the GPU")},
                      {"flavour", text("cuda, or emulated on the CPU")},
                      {"compute_capability", text("9.0")},
                      {"multiprocessors", integer("number")},
                      {"memory_bytes", integer("of the device")},
                      {"driver", nullable(text("newest CUDA version that it can run"))},
                      {"cublas", nullable(text("version of cuBLAS"))}},
                     "one GPU"),
              "GPUs used; empty without")},
       {"versions", versions()}},
      "where and by what the report was made");
}

Json config() {
  return object({{"sha256", hash("of the resolved config, without its name")},
                 {"resolved", open_object({}, true, "every setting, defaults included")},
                 {"overrides", array(text(k_no_doc), "settings laid over the config, as written")}},
                "what was asked for");
}

namespace {

Json precision_with(Member ops) {
  return object({{"requested", text("policy of the config, or rewrite")},
                 {"effective", text("what really happened")},
                 {"compute_dtype", dtype("layers compute in")},
                 {"variable_dtype", dtype("weights are stored in")},
                 {"accumulate_dtype",
                  nullable(dtype("narrowest of partial sums in products; null without any"))},
                 {"float32_math",
                  text("ieee: float32 products are not shortened; tf32: they may be, to 10 bits")},
                 {"grad_dtype",
                  nullable(dtype("weight gradients are rounded to; null where a rewrite decides"))},
                 {"float16_gemm",
                  nullable(object({{"requested", text("precision.float16_gemm")},
                                   {"effective", text("exact, or x3: three partial products")}},
                                  "how float16 products are computed; null without any"))},
                 {"rewrite", rewrite()},
                 std::move(ops)},
                "requested and effective precision");
}

}  // namespace

Json ops() { return array(op(), "every launch of a training step, in order"); }

Json precision() { return precision_with({"ops", ops()}); }

Json precision_summary() { return precision_with({"ops", ops(), false}); }

Json numerics() {
  const auto tensor = object(
      {{"name", text("of the node that made it")},
       {"op", text("of that node")},
       {"layer", text("empty outside of layers")},
       {"phase", text("of the step")},
       {"dtype", dtype("of its values")},
       {"elements", integer("in one step")},
       {"absmax",
        number("largest finite magnitude, of the float32 it was rounded from where seen")},
       {"headroom_bits",
        nullable(number("log2(largest number of the dtype / absmax); least of all steps"))},
       {"zero_frac", fraction("values that are zero")},
       {"zero_underflow_frac",
        nullable(fraction("values that became zero by rounding; null where the float32 they were "
                          "rounded from is not seen"))},
       {"subnormal_frac", fraction("values below the smallest normal number, zeros aside")},
       {"nonfinite", integer("values that are NaN or infinite, over all steps")},
       {"safe_loss_scale",
        interval("powers of two at which a float16 gradient neither overflows nor loses more than "
                 "one in a thousand values; low above high: none")},
       {"exponent_counts",
        object(
            {{"lo", {{"type", "integer"}, {"description", "floor(log2 |x|) of the first count"}}},
             {"counts", array(integer(""), "values by exponent, zeros aside")}},
            "finite values by binary exponent, over all steps")},
       {"steps", integer("sampled, that these numbers are of", 1)}},
      "one tensor of the step");
  return nullable(object(
      {{"mode", word({"sample", "full"}, "which steps are sampled")},
       {"every", integer("batches between samples", 1)},
       {"sampled_steps", array(integer(""), "ordinals of the batches, since the last resume")},
       {"tensors", array(tensor, "in the order of the step")}},
      "what rounding to 16 bits loses; null when not sampled"));
}

Json history() {
  const auto column = [](Json items, Doc doc) { return array(std::move(items), doc); };
  return open_object({{"epoch", column(integer("", 1), "from 1")},
                      {"partial", column(boolean(""), "whether it ended before its last batch")},
                      {"loss", column(measure(""), "mean over the epoch's samples while training")},
                      {"learning_rate", column(measure(""), "of the last step")},
                      {"loss_scale", column(measure(""), "at the end; null without scaling")},
                      {"skipped_steps", column(integer(""), "in the epoch")},
                      {"steps", column(integer(""), "in the epoch")},
                      {"train_seconds", column(number(""), "s")},
                      {"eval_seconds", column(number(""), "s")}},
                     column(measure(""), "a metric; val_ before those of the validation split"),
                     "one value per epoch in every column");
}

Json step_history() {
  Json steps = array(integer("", 1), "batches drawn up to the end of the interval");
  steps["maxItems"] = train::StepHistory::k_most_points;
  return object(
      {{"interval", integer("batches of a value; the last one may have fewer", 1)},
       {"step", std::move(steps)},
       {"loss", array(measure(""), "mean over the interval's batches with a finite loss")},
       {"learning_rate", array(measure(""), "of the last batch")},
       {"loss_scale", array(measure(""), "after the last batch; null without scaling")},
       {"skipped_steps", array(integer(""), "batches whose update was left out")}},
      "the run by step, one value for each interval in every column");
}

Json command() { return array(text(k_no_doc), "the command that made the report, word by word"); }

Json time_to_accuracy() {
  return nullable(object({{"metric", text("by its name in the history")},
                          {"target", number("its value to reach")},
                          {"reached", boolean("whether it was")},
                          {"step", integer("applied steps until then")},
                          {"epoch", integer("epochs until then")},
                          {"train_seconds", number("s in training steps until then")},
                          {"wall_seconds", number("s until then")}},
                         "when the target was reached; null without a target"));
}

Json step_time() {
  const auto ms = [](Doc doc) { return measure(doc); };
  return object({{"unit", constant("ms", "of every time in this block")},
                 {"scope", text("what is inside a step's time")},
                 {"warmup_steps", integer("steps left out before counting")},
                 {"n", integer("steps counted")},
                 {"first_step", ms("ms; not counted")},
                 {"median", ms("ms")},
                 {"mean", ms("ms")},
                 {"stddev", ms("ms; n - 1 in the denominator")},
                 {"mad", ms("ms; median absolute deviation, no factor")},
                 {"min", ms("ms")},
                 {"max", ms("ms")},
                 {"p05", ms("ms")},
                 {"p95", ms("ms")},
                 {"p99", ms("ms")},
                 {"median_ci95", interval("ms; 95 % confidence: low, high")},
                 {"outliers", integer("steps with a modified z-score above 14.8")},
                 {"histogram",
                  nullable(object({{"from", ms("ms; the fastest step")},
                                   {"to", ms("ms; 99th percentile or 3 medians")},
                                   {"counts", array(integer(""), "steps in bins of equal width")},
                                   {"above", integer("steps slower than the last bin")}},
                                  "of the steps counted; null without any")),
                  false},
                 {"breakdown_median",
                  object({{"data_wait", ms("ms; waiting for and copying the batch")},
                          {"forward", ms("ms; input, forward, loss, metrics")},
                          {"backward", ms("ms")},
                          {"finite_check", ms("ms; unscaling and the check")},
                          {"optimizer", ms("ms; clipping and updates")}},
                         "medians of the parts of a step; null where a device runs it as one")}},
                "times of steady steps");
}

Json throughput() {
  return object(
      {{"unit", constant("img/s", "of the rates")},
       {"total_ips", measure("samples per second, data wait included")},
       {"compute_ips", measure("samples per second without data wait")},
       {"flops_per_step", number("of matrix products and convolutions, 2 per product")},
       {"achieved_tflops", measure("10^12 operations per second")},
       {"mfu", measure("achieved over peak; null where no peak was measured")},
       {"peak_tflops", measure("10^12 operations per second; null where no peak was measured")},
       {"peak_source", nullable(text("how the peak was found; null where none was"))}},
      "rates at the median step time");
}

Json memory() {
  return object({{"device_peak_allocated_bytes", integer("by this process; 0 on the CPU")},
                 {"device_peak_reserved_bytes",
                  integer("in use, by libraries and other processes too; 0 on the CPU")},
                 {"host_peak_rss_bytes", integer("largest resident set of the process")},
                 {"planned_state_bytes", integer("variables, packed weights")},
                 {"planned_arena_bytes", integer("activations, gradients, workspaces")},
                 {"data_bytes", integer("samples and labels held")}},
                "memory, in bytes");
}

Json warnings() {
  return array(object({{"code", text("W and three digits")},
                       {"where", text("place in the config; empty without one")},
                       {"message", text("in words")}},
                      "one warning"),
               "what the reader should know");
}

Json nonfinite() {
  return open_object({},
                     word({"nan", "inf", "-inf"}, k_no_doc),
                     "numbers that are not finite: they are null, their paths stand here");
}

Json first_nonfinite() {
  return nullable(object({{"tensor", text("node that made it")},
                          {"op", text("of the node")},
                          {"layer", text("of the config; empty outside of layers")},
                          {"phase", text("forward, backward, ...")},
                          {"dtype", dtype("of the tensor")},
                          {"kind", word({"inf", "nan"}, "what was found first")},
                          {"count", integer("elements that are not finite", 1)},
                          {"finite_absmax", number("largest finite magnitude in the tensor")},
                          {"loss_finite", boolean("whether the loss itself was finite")}},
                         "first tensor of the step that was not finite; null when not traced"));
}

Json metrics(Doc doc) {
  return open_object({{"loss", measure("mean over the samples")}},
                     measure("a metric, mean over the samples"),
                     doc);
}

Json study_run() {
  return object({{"id", text("of this study")},
                 {"directory", nullable(text("of its files"))},
                 {"command", command(), false},
                 {"started_at", text("UTC")},
                 {"ended_at", text("UTC")}},
                "the study");
}

Json notes() { return array(text(k_no_doc), "what to know before believing the numbers"); }

Json estimate(Doc value, Doc doc) {
  return nullable(
      object({{value, measure("point estimate")},
              {"ci95", interval("95 % confidence: low, high; null with one repetition")},
              {"n", integer("repetitions", 1)}},
             doc));
}

Json classes() {
  return nullable(
      object({{"per_class",
               array(object({{"class", integer("label")},
                             {"name", nullable(text("of the class"))},
                             {"count", integer("samples with this label")},
                             {"correct", integer("of them predicted right")},
                             {"accuracy", measure("correct / count; null without samples")}},
                            "one class"),
                     "by label")},
              {"confusion",
               array(array(integer(k_no_doc), "counts by predicted class"), "rows by label")}},
             "results per class; null without classes"));
}

}  // namespace halfstep::report::schema
