// One self-contained page: no script, font or image from elsewhere.

#include "report/export/exporter.h"
#include "report/export/summary.h"
#include "report/page/markup.h"
#include "report/page/pages.h"

namespace halfstep::report {
namespace {

template <class Report>
std::string write_html(const Report& report) {
  return page::document(title(report), page::body(report));
}

}  // namespace

constinit const Exporter k_html{.name = "html",
                                .file = "report.html",
                                .train = write_html<TrainReport>,
                                .compare = write_html<CompareReport>,
                                .bench = write_html<BenchReport>,
                                .eval = write_html<EvalReport>,
                                .explain = write_html<ExplainReport>};

}  // namespace halfstep::report
