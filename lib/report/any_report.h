#pragma once
// All kinds of report: their schemas, reading from files, and validation.

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "report/bench_report.h"
#include "report/compare_report.h"
#include "report/diff_report.h"
#include "report/explain_report.h"
#include "report/machine_reports.h"
#include "report/passes_report.h"
#include "report/run_reports.h"
#include "report/small_reports.h"
#include "report/train_report.h"

namespace halfstep::report {

/// A report of any kind, in the order of kind_table().
using AnyReport = std::variant<TrainReport,
                               EvalReport,
                               PredictReport,
                               DataReport,
                               ModelReport,
                               ModelExportReport,
                               DryRunReport,
                               CompareReport,
                               BenchReport,
                               ExplainReport,
                               ExplainDiff,
                               PassesReport,
                               GraphRewriteReport,
                               DiffReport,
                               RunsReport,
                               BestRunReport,
                               PruneReport,
                               DoctorReport,
                               ReferenceReport,
                               VerifyResumeReport,
                               TuneReport>;

struct Kind {
  std::string_view name;  ///< the value of `kind`
  Json (*schema)();
  /// Fills a report of this kind; violations of its description are appended to `found`.
  AnyReport (*read)(const Json& document, std::vector<Violation>& found);
};

std::span<const Kind> kind_table();
/// The entry of a kind, or null.
const Kind* find_kind(std::string_view name);
std::string_view kind_of(const AnyReport& report);

/// The complete JSON Schema (draft-07) of one kind.
Json schema_document(const Kind& kind);
/// A schema that accepts every kind.
Json schema_document();

/// A report that passed validation.
struct Document {
  Json json;  ///< as in the file
  AnyReport report;
};

/// Everything wrong with a report: violations of its kind's description and, without any,
/// its cross-checks.
std::vector<Violation> validate(const Json& document);

/// The report at `path`: a file, or that of a directory, report.json where there is one, else
/// eval.json or explain.json. Errors: UserError(data) when it cannot be read, is larger than 256
/// MiB or 8 million values, is not JSON (with line and column), is nested too deeply or has a
/// duplicate key in an object.
Json read_report(const std::string& path);

/// Errors: those of read_report; UserError(data) naming the first violations.
Document read_valid_report(const std::string& path);

/// Members that must agree. `path` is that of the block. Each adds violations to `found`.
void check(const TrainReport& report, std::vector<Violation>& found);
void check(const EvalReport& report, std::vector<Violation>& found);
void check(const CompareReport& report, std::vector<Violation>& found);
void check(const BenchReport& report, std::vector<Violation>& found);
void check(const ExplainReport& report, std::vector<Violation>& found);
void check(const GraphRewriteReport& report, std::vector<Violation>& found);
/// Checks in one pass over the report that the paths in `nonfinite` exist and are null.
void check_nonfinite(const Json& document, std::vector<Violation>& found);

}  // namespace halfstep::report
