#pragma once
// Schemas of the blocks that several kinds of report share.

#include "report/schema_parts.h"

namespace halfstep::report::schema {

/// Of the schema itself.
Json version();
Json hash(Doc doc);
Json context();
Json config();
Json precision();
/// The same, where the list of ops may be left out.
Json precision_summary();
/// Every launch of a training step.
Json ops();
/// What the automatic rewrite did.
Json rewrite();
/// Columns with one value per epoch.
Json history();
/// Columns with one value for each interval of batches.
Json step_history();
/// The words of a command line.
Json command();
Json time_to_accuracy();
Json step_time();
Json throughput();
Json memory();
Json warnings();
Json nonfinite();
/// Statistics of 16-bit values on sampled steps.
Json numerics();
Json first_nonfinite();
/// Loss and metrics by name.
Json metrics(Doc doc);
/// id, directory, start and end of a comparison or benchmark.
Json study_run();
/// A list of remarks.
Json notes();
/// A value (its member's name is `value`) with its interval and the number of repetitions.
Json estimate(Doc value, Doc doc);
/// Accuracy per class and the confusion matrix.
Json classes();

}  // namespace halfstep::report::schema
