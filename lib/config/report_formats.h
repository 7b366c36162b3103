#pragma once
// The values of `report.formats`.

#include <array>
#include <string_view>

namespace halfstep::config {

inline constexpr std::array<std::string_view, 7> k_report_formats{
    "json", "csv", "markdown", "html", "junit", "dllogger", "mllog"};

}  // namespace halfstep::config
