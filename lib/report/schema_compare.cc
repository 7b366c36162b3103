#include "report/schema_blocks.h"
#include "report/schema_kinds.h"

namespace halfstep::report::schema {
namespace {

Json mcnemar(std::vector<Member> more) {
  std::vector<Member> members{{"b", integer("examples only the baseline gets right")},
                              {"c", integer("examples only the policy gets right")},
                              {"p", fraction("exact, two-sided")}};
  members.insert(members.end(), more.begin(), more.end());
  return nullable(object(std::move(members), "McNemar's test of predictions; null without them"));
}

/// An estimate of the metric that policies are judged by.
Json judged(Doc doc) {
  Json schema = estimate("mean", doc);
  schema["properties"]["metric"] = text("by its name with the split");
  schema["required"].push_back("metric");
  return schema;
}

Json metric() {
  Json schema = estimate("mean", "one metric over the seeds");
  schema["properties"]["delta"] = estimate("mean", "minus the baseline's, by seed");
  schema["required"].push_back("delta");
  return schema;
}

Json compared_policy() {
  return object(
      {{"policy", text("as the comparison calls it")},
       {"baseline", boolean("whether the others are compared with it")},
       {"runs", integer("finished")},
       {"diverged", integer("of them")},
       {"skipped_steps", integer("of all runs")},
       {"step_time",
        nullable(object({{"unit", constant("ms", "of the times")},
                         {"n", integer("steps counted, of all runs", 1)},
                         {"median", measure("ms")},
                         {"median_ci95", interval("ms; 95 % confidence: low, high")}},
                        "steady steps of all seeds; null when none were counted"))},
       {"speedup", estimate("ratio_of_medians", "over the baseline, paired by blocks of turns")},
       {"accuracy", judged("the metric that policies are judged by")},
       {"accuracy_delta", judged("minus the baseline's, by seed")},
       {"mcnemar", mcnemar({{"split", word({"test", "validation"}, "predicted")}})},
       {"tost",
        nullable(object({{"margin", number("largest difference that does not matter")},
                         {"p", fraction("of the two one-sided tests, the larger")},
                         {"equivalent", boolean("whether p is below 0.05")}},
                        "equivalence within the margin; null with one seed"))},
       {"metrics", open_object({}, metric(), "every metric by its name with the split")},
       {"loss_curve",
        nullable(object({{"n", integer("seeds", 1)},
                         {"steps", integer("compared in each seed", 1)},
                         {"mean_absolute", measure("difference of two losses, over the steps")},
                         {"largest", measure("difference of any seed")},
                         {"last_tenth", measure("signed mean over the last tenth of the steps")}},
                        "training loss against the baseline's, step by step"))},
       {"time_to_accuracy",
        nullable(object({{"runs", integer("finished")},
                         {"reached", integer("of them reached the target")},
                         {"train_seconds", measure("s in training steps until then, mean")},
                         {"steps", measure("applied until then, mean")}},
                        "until the target; null without one"))},
       {"flops_per_step", nullable(number("of matrix products and convolutions"))},
       {"precision", nullable(precision())}},
      "one policy against the baseline");
}

Json pair() {
  return object({{"seed", integer("of both runs")},
                 {"policy", text("compared")},
                 {"baseline", text("compared with")},
                 {"init_hash_equal", boolean("whether both start from the same weights")},
                 {"batch_order_equal", boolean("whether both saw the same batches")},
                 {"accuracy_delta", measure("policy minus baseline; null when either diverged")},
                 {"mcnemar", mcnemar({})}},
                "one seed under the baseline and under another policy");
}

Json run() {
  return object(
      {{"policy", text("as the comparison calls it")},
       {"seed", integer("of weights, order and dropout")},
       {"status",
        word({"completed",
              "target_reached",
              "stopped_early",
              "interrupted",
              "preempted",
              "diverged"},
             "how it ended")},
       {"message", text("why it ended; empty when completed")},
       {"source", nullable(text("report it was read from; null for a run of this process"))},
       {"config_sha256", nullable(hash("of the config of a run that was read"))},
       {"steps",
        object({{"attempted", integer("forward and backward done")},
                {"applied", integer("weights changed")},
                {"ordinal", integer("batches drawn")}},
               "steps")},
       {"skipped_steps", integer("batches whose update was left out")},
       {"retried_steps", integer("attempts repeated with a lower scale")},
       {"train", nullable(metrics("of the last epoch while training"))},
       {"val", nullable(metrics("on the validation split after the last epoch"))},
       {"test", nullable(metrics("on the test split at the end"))},
       {"history", history()},
       {"step_history", step_history(), false},
       {"step_time", step_time()},
       {"epoch_seconds", array(measure(""), "s in training steps, by epoch")},
       {"train_seconds", number("s in training steps")},
       {"wall_seconds", number("s")},
       {"time_to_accuracy", time_to_accuracy()},
       {"final_loss_scale", measure("null without scaling")},
       {"init_hash", hash("of the first weights")},
       {"batch_order_hash", hash("of the batches drawn")},
       {"final_hash", hash("of the last weights")}},
      "one policy trained with one seed");
}

Json gate() {
  return object({{"expression", text("as given to --fail-if")},
                 {"holds", nullable(boolean("null where a value is not known"))},
                 {"failed", boolean("true unless it is known not to hold")},
                 {"terms",
                  array(object({{"term", text("as written")},
                                {"value", measure("of its quantity; null when not known")},
                                {"holds", nullable(boolean("null when not known"))}},
                               "one comparison"),
                        "in order")}},
                "one --fail-if");
}

}  // namespace

Json compare() {
  return object(
      {{"schema_version", version()},
       {"kind", constant("compare", "")},
       {"status",
        word({"completed", "interrupted", "preempted", "diverged"}, "how the comparison ended")},
       {"exit_code", integer("of the process")},
       {"message", text("empty")},
       {"run", study_run()},
       {"context", context()},
       {"config", nullable(config())},
       {"paired", boolean("false for finished runs put side by side")},
       {"baseline", text("the policy or run that the others are compared with")},
       {"metric", text("by which policies are judged, with its split")},
       {"margin", number("largest difference that does not matter, as a fraction")},
       {"seeds", array(integer(""), "asked for; empty for finished runs")},
       {"policies", array(compared_policy(), "in the order asked for")},
       {"pairs", array(pair(), "of finished seeds")},
       {"runs", array(run(), "finished")},
       {"gates", array(gate(), "in the order given")},
       {"differences",
        array(object({{"path", text("of a setting")}, {"values", array(text(""), "by run")}},
                     "one setting"),
              "settings in which finished runs differ")},
       {"notes", notes()},
       {"warnings", warnings()},
       {"nonfinite", nonfinite()}},
      "a comparison");
}

}  // namespace halfstep::report::schema
