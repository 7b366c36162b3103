#include "report/schema_blocks.h"
#include "report/schema_kinds.h"

namespace halfstep::report::schema {
namespace {

Json shares(std::string_view word, Doc doc) {
  return array(object({{word, text("- for launches without one")},
                       {"launches", integer("in a step", 1)},
                       {"ms", number("ms in a step")},
                       {"share", fraction("of all launches")},
                       {"achieved_tflops", measure("10^12 operations per second")},
                       {"achieved_gbs", measure("10^9 bytes of operands and results per second")}},
                      "launches that have it in common"),
               doc);
}

Json profile() {
  return nullable(object(
      {{"scope", text("how the launches were timed")},
       {"steps", integer("profiled", 1)},
       {"total_ms", number("ms in the launches of a step")},
       {"by_type", shares("type", "slowest first")},
       {"by_layer", shares("layer", "slowest first")},
       {"by_phase", shares("phase", "slowest first")},
       {"ops",
        array(object({{"name", text("node of the step graph")},
                      {"type", text("op")},
                      {"layer", text("of the config; empty outside of layers")},
                      {"phase", text("input, forward, loss, backward, ...")},
                      {"kernel", text("implementation that ran")},
                      {"ms", number("ms; median over the profiled steps")},
                      {"share", fraction("of all launches")},
                      {"achieved_tflops", measure("10^12 operations per second")},
                      {"achieved_gbs", measure("10^9 bytes of operands and results per second")}},
                     "one launch of a step"),
              "in order")}},
      "time per launch; null unless asked for"));
}

/// What a policy has here and the first one has at the top too.
std::vector<Member> measured() {
  return {{"step_time", step_time()},
          {"repeats", array(step_time(), "the same for each repeat alone")},
          {"repeat_median", estimate("mean", "of the repeats' medians, ms")},
          {"throughput", throughput()},
          {"memory", memory()},
          {"skipped_steps", integer("of all repeats")}};
}

Json policy() {
  std::vector<Member> members{
      {"policy", text("measured")},
      {"speedup", estimate("ratio_of_medians", "over the first policy; null for it")},
      {"precision", nullable(precision_summary())},
      {"profile", profile(), false}};
  for (Member& member : measured()) members.push_back(std::move(member));
  return object(std::move(members),
                "one policy; what stands above for the first is not repeated in full");
}

}  // namespace

Json bench() {
  std::vector<Member> members{
      {"schema_version", version()},
      {"kind", constant("bench", "")},
      {"status",
       word({"completed", "interrupted", "preempted", "diverged"}, "how the benchmark ended")},
      {"exit_code", integer("of the process")},
      {"message", text("why it ended; empty when completed")},
      {"run", study_run()},
      {"context", context()},
      {"config", config()},
      {"bench",
       object({{"seed", integer("of weights, order and dropout")},
               {"data", text("name of the set; random for made-up samples")},
               {"batch_size", integer("samples of a step", 1)},
               {"warmup", integer("steps that warm up, per repeat")},
               {"steps", integer("counted, per repeat", 1)},
               {"repeats", integer("fresh starts", 1)},
               {"policy", text("the first, of which the blocks below tell")}},
              "what was asked for")},
      {"precision", nullable(precision())},
      {"profile", profile()}};
  for (Member& member : measured()) members.push_back(std::move(member));
  members.push_back({"policies", array(policy(), "in the order asked for")});
  members.push_back({"notes", notes()});
  members.push_back({"warnings", warnings()});
  members.push_back({"nonfinite", nonfinite()});
  return object(std::move(members), "a benchmark");
}

}  // namespace halfstep::report::schema
