// JUnit XML for continuous integration: a test case for each condition of a report.

#include <fmt/format.h>

#include <vector>

#include "report/export/exporter.h"
#include "report/export/summary.h"
#include "report/export/xml_text.h"
#include "report/run_index.h"
#include "report/tables.h"

namespace halfstep::report {
namespace {

struct Case {
  std::string name;
  double seconds = 0;
  std::string failure;  ///< "" when passed
  std::string error;    ///< the condition is undecided
};

/// The run itself: a failure when it diverged, an error when it did not finish.
Case ending(const std::string& status, const std::string& message, double seconds) {
  Case c{"ends well", seconds, "", ""};
  const std::string text = message.empty() ? status : status + ": " + message;
  const RunState state = ending_named(status).state;
  if (state == RunState::failed) c.failure = text;
  if (state == RunState::interrupted) c.error = text;
  return c;
}

std::vector<Case> cases(const CompareReport& report) {
  double seconds = 0;
  for (const ComparedRunBlock& run : report.runs) seconds += run.wall_seconds;
  std::vector<Case> found{ending(report.status, report.message, seconds)};
  for (const GateBlock& gate : report.gates) {
    Case c{"not " + gate.expression, 0, "", ""};
    if (gate.failed) c.failure = gate.expression + ": " + gate_outcome(gate);
    found.push_back(std::move(c));
  }
  return found;
}

std::vector<Case> cases(const TrainReport& report) {
  std::vector<Case> found{ending(report.status, report.message, report.run.wall_seconds)};
  const auto& target = report.time_to_accuracy;
  if (!target) return found;
  Case c{fmt::format("reaches {} {}", target->metric, number(target->target).dump()),
         target->train_seconds,
         "",
         ""};
  if (!target->reached) c.failure = fmt::format("not reached in {} steps", target->step);
  found.push_back(std::move(c));
  return found;
}

template <class Report>
std::string write_junit(const Report& report) {
  const std::vector<Case> all = cases(report);
  const std::string suite = xml_text(title(report));
  std::size_t failures = 0, errors = 0;
  double seconds = 0;
  std::string body;
  for (const Case& c : all) {
    failures += c.failure.empty() ? 0 : 1;
    errors += c.error.empty() ? 0 : 1;
    seconds += c.seconds;
    body += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                        suite,
                        xml_text(c.name),
                        c.seconds);
    if (c.failure.empty() && c.error.empty()) {
      body += "/>\n";
      continue;
    }
    body +=
        fmt::format(">\n      <{0} message=\"{1}\" type=\"halfstep\">{1}</{0}>\n    </testcase>\n",
                    c.failure.empty() ? "error" : "failure",
                    xml_text(c.failure.empty() ? c.error : c.failure));
  }
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3f}\"",
                  all.size(),
                  failures,
                  errors,
                  seconds);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n"
      "  <testsuite name=\"{1}\" {0} timestamp=\"{2}\">\n{3}  </testsuite>\n</testsuites>\n",
      counts,
      suite,
      xml_text(report.run.started_at),
      body);
}

}  // namespace

constinit const Exporter k_junit{.name = "junit",
                                 .file = "report.junit.xml",
                                 .train = write_junit<TrainReport>,
                                 .compare = write_junit<CompareReport>};

}  // namespace halfstep::report
