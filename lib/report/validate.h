#pragma once
// Checks reports: an own reader of the part of JSON Schema that theirs is written in.

#include <string>
#include <vector>

#include "report/schema.h"

namespace halfstep::report {

/// Everything in which `document` breaks `schema`: type, const, enum, minimum, maximum,
/// properties, required, additionalProperties, items, minItems, maxItems, oneOf, anyOf. Other
/// keywords but notes are refused. After a thousand violations no more are looked for. Errors:
/// InternalError for a keyword not known.
std::vector<Violation> check_schema(const Json& document, const Json& schema);

/// Everything wrong with a report: its kind's schema and, where that holds, its cross-checks.
std::vector<Violation> validate(const Json& report);

/// The report at `path`: a file, or the report.json of a run directory.
/// Errors: UserError(data) when it cannot be read, is larger than 256 MiB or 8 million values, is
/// not JSON (with line and column), is nested too deeply or has a key twice in one object.
Json read_report(const std::string& path);

/// A report that can be relied on.
/// Errors: those of read_report; UserError(data) naming the first violations.
Json read_valid_report(const std::string& path);

}  // namespace halfstep::report
