#pragma once
// Schemas of the blocks that several kinds of report share.

#include "report/schema_parts.h"

namespace halfstep::report::schema {

Json hash(Doc doc);
Json context();
Json config();
Json precision();
Json step_time();
Json throughput();
Json memory();
Json warnings();
Json nonfinite();
Json first_nonfinite();
/// Loss and metrics by name.
Json metrics(Doc doc);
/// Accuracy per class and the confusion matrix.
Json classes();

}  // namespace halfstep::report::schema
