#pragma once
// TensorBoard's event files: TFRecord frames around three protobuf messages (Event, Summary,
// Summary.Value), encoded here because scalars need no more of protobuf.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/train_report.h"

namespace halfstep::report {

/// CRC-32C (Castagnoli), as in iSCSI.
std::uint32_t crc32c(std::string_view bytes);

/// A TFRecord: length, its masked CRC, the data, its masked CRC; all little endian.
std::string framed(std::string_view data);

/// The records of a training report, in order of their steps, which count batches: the file
/// version; for each interval of the step history step/loss, the metrics (step/accuracy),
/// step/learning_rate, step/loss_scale and step/skipped, at the interval's end; step/loss_scale at
/// every change in between; one event per epoch with all values of the history (train/loss,
/// val/loss, ...); at the end the test metrics. Unknown values are omitted, and in a running run
/// the incomplete interval: existing records do not change until the interval doubles.
std::vector<std::string> event_records(const TrainReport& report);

/// Makes the file hold these records. Those that it has already, except for their times, stay;
/// others after them are cut off, the rest is appended: a reader that follows the file sees it
/// grow. Errors: UserError(data).
void update_event_file(const std::string& path, const std::vector<std::string>& records);

}  // namespace halfstep::report
