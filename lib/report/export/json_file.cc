#include "report/export/exporter.h"

namespace halfstep::report {

/// The report as it is.
constinit const Exporter k_json{"json", "report.json", "", dump};

}  // namespace halfstep::report
