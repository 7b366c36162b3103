#pragma once
// Files embedded in the program by CMake (lib/report/CMakeLists.txt), for pages that fetch nothing.

#include <string_view>

namespace halfstep::report::page {

/// Chart.js of the build machine's package, minified.
std::string_view chart_script();
std::string_view chart_version();  ///< "3.9.1"
/// The licence notice that copies of Chart.js must include.
std::string_view chart_licence();

/// page.js: draws the charts that a page's figures describe.
std::string_view page_script();
/// page.css
std::string_view page_style();

}  // namespace halfstep::report::page
