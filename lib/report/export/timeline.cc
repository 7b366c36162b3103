#include "report/export/timeline.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

namespace halfstep::report {

double unix_seconds(const std::string& utc) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (std::sscanf(
          utc.c_str(), "%4d-%2d-%2dT%2d:%2d:%2dZ", &year, &month, &day, &hour, &minute, &second) !=
      6) {
    return 0;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return 0;
  const std::chrono::sys_days days = date;
  return static_cast<double>(days.time_since_epoch().count()) * 86400.0 + hour * 3600.0 +
         minute * 60.0 + second;
}

std::int64_t batches_after(std::int64_t ordinal) {
  return ordinal < std::numeric_limits<std::int64_t>::max() ? ordinal + 1 : ordinal;
}

std::vector<EpochTime> epoch_times(const Json& report) {
  const Json& history = report.at("history");
  const std::size_t epochs = history.at("epoch").size();
  std::int64_t steps = 0;
  for (const Json& count : history.at("steps")) steps += count.get<std::int64_t>();
  // Every step draws a batch, so an epoch's share of the steps is its share of the samples.
  const double per_step =
      steps > 0 ? report.at("samples").at("seen").get<double>() / static_cast<double>(steps) : 0;
  std::vector<EpochTime> times;
  EpochTime time;
  time.end = unix_seconds(report.at("run").at("started_at"));
  for (std::size_t i = 0; i < epochs; ++i) {
    time.epoch = history.at("epoch")[i];
    time.steps += history.at("steps")[i].get<std::int64_t>();
    time.samples = std::llround(per_step * static_cast<double>(time.steps));
    time.start = time.end;
    time.trained = time.start + history.at("train_seconds")[i].get<double>();
    time.end = time.trained + history.at("eval_seconds")[i].get<double>();
    times.push_back(time);
  }
  return times;
}

}  // namespace halfstep::report
