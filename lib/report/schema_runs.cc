#include "report/schema_blocks.h"
#include "report/schema_kinds.h"

namespace halfstep::report::schema {
namespace {

Json run_entry() {
  return object(
      {{"name", text("path below the folder")},
       {"directory", text("of the run, from the working directory")},
       {"kind", nullable(text("train, compare or bench; null where no file says"))},
       {"state",
        word({"running", "completed", "failed", "interrupted", "damaged"}, "how the run stands")},
       {"status", nullable(text("of its report; null without one"))},
       {"note", nullable(text("why it is damaged, or what its state rests on"))},
       {"policies", array(text("precision as asked for"), "several of a comparison or benchmark")},
       {"epochs", nullable(integer("whole ones done; null for benchmarks"))},
       {"metric", nullable(text("the main metric, by its name with the split"))},
       {"value", nullable(number("of that metric"))},
       {"metrics",
        open_object({},
                    number("after the last epoch; of a comparison the mean of its baseline"),
                    "by the name with the split")},
       {"step_time_ms",
        nullable(number("ms; median, of a comparison its baseline's, of a benchmark its first "
                        "policy's"))},
       {"started_at", nullable(text("UTC"))},
       {"ended_at", nullable(text("UTC; when the report was last written"))}},
      "one run");
}

}  // namespace

Json runs() {
  return object({{"schema_version", version()},
                 {"kind", constant("runs", "")},
                 {"folder", text("that was searched")},
                 {"runs", array(run_entry(), "in the order asked for")},
                 {"foreign", array(text(""), "folders without a run")}},
                "the runs in a folder");
}

Json best_run() {
  return object({{"schema_version", version()},
                 {"kind", constant("best_run", "")},
                 {"folder", text("that was searched")},
                 {"metric", text("by its name with the split")},
                 {"direction", word({"larger", "smaller"}, "which values are better")},
                 {"value", number("of the best run")},
                 {"compared", integer("runs that have the metric", 1)},
                 {"run", run_entry()}},
                "the best run in a folder");
}

Json prune() {
  return object(
      {{"schema_version", version()},
       {"kind", constant("prune", "")},
       {"folder", text("that was searched")},
       {"dry_run", boolean("whether nothing was removed")},
       {"removed",
        array(object({{"run", run_entry()}, {"bytes", integer("of its files")}}, "one run"),
              "removed, or of a dry run what would be")},
       {"kept",
        array(object({{"run", run_entry()}, {"reason", text("why it stays")}}, "one run"),
              "selected by the rules and not removed")},
       {"leftovers", array(text(""), "directories that an interrupted removal had left")},
       {"bytes", integer("of all that is removed")}},
      "a removal of runs");
}

}  // namespace halfstep::report::schema
