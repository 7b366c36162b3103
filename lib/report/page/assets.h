#pragma once
// Files that CMake puts into the program (lib/report/CMakeLists.txt), for pages that fetch nothing.

#include <string_view>

namespace halfstep::report::page {

/// Chart.js of the build machine's package, minified.
std::string_view chart_script();
std::string_view chart_version();  ///< "3.9.1"
/// The permission notice that copies of Chart.js carry.
std::string_view chart_licence();

/// page.js: draws the charts that a page's figures describe.
std::string_view page_script();
/// page.css
std::string_view page_style();

}  // namespace halfstep::report::page
