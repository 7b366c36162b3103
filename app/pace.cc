#include "pace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/ranges.h"

namespace halfstep::app {

void Pace::update(std::int64_t done, std::int64_t total) {
  last_update_ = ProgressClock::now();
  done_ = done;
  total_ = total;
  if (first_done_ >= 0) return;
  first_update_ = last_update_;
  first_done_ = done;
}

double Pace::elapsed_seconds() const {
  return std::chrono::duration<double>(ProgressClock::now() - start_).count();
}

std::optional<double> Pace::seconds_left() const {
  if (first_done_ < 0 || done_ <= first_done_ || done_ >= total_) return std::nullopt;
  const double seconds = std::chrono::duration<double>(last_update_ - first_update_).count();
  return seconds / static_cast<double>(done_ - first_done_) * static_cast<double>(total_ - done_);
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  const std::int64_t days = whole / 86400, hours = whole / 3600 % 24, minutes = whole / 60 % 60;
  if (days > 0) return fmt::format("{} d {:02}:{:02}:{:02}", days, hours, minutes, whole % 60);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string fitted_line(std::vector<ProgressField> fields, std::size_t width) {
  std::erase_if(fields, [](const ProgressField& field) { return field.text.empty(); });
  while (true) {
    const auto texts = mapped<std::string>(fields, &ProgressField::text);
    std::string line = fmt::format("{}", fmt::join(texts, "  "));
    const auto heaviest = std::ranges::max_element(fields, {}, &ProgressField::weight);
    if (line.size() <= width || heaviest == fields.end() || heaviest->weight == 0) return line;
    fields.erase(heaviest);
  }
}

}  // namespace halfstep::app
