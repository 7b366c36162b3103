// Scalars as TensorBoard's event files hold them.

#include "report/export/event_file.h"
#include "report/export/exporter.h"

namespace halfstep::report {
namespace {

std::string write_tensorboard(const Json& report) {
  std::string bytes;
  for (const std::string& record : event_records(report)) bytes += record;
  return bytes;
}

}  // namespace

constinit const Exporter k_tensorboard{
    "tensorboard", "events.out.tfevents.halfstep", "train", write_tensorboard, true};

}  // namespace halfstep::report
