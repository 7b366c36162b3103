#pragma once
// Elements of an HTML page. All text is escaped here; a `body` is markup already.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/json.h"
#include "report/text.h"

namespace halfstep::report::page {

/// Each of these is "" when it is empty.
std::string section(std::string_view heading, const std::string& body);
/// A collapsible section.
std::string details(std::string_view summary, const std::string& body);
/// Headings first; a wide table scrolls horizontally, so that a phone shows the page unscaled.
std::string table(const Rows& rows);
/// A table of names and values.
std::string value_table(const std::vector<std::pair<std::string, std::string>>& rows);
std::string list(const std::vector<std::string>& lines);
std::string paragraph(std::string_view text, std::string_view css_class = "");
std::string preformatted(std::string_view text);
/// Figures beside each other where the width allows it.
std::string figures(const std::string& body);

/// JSON for a script element: no character in it ends the element, begins a comment
/// or is anything but ASCII.
std::string script_json(const Json& json);

/// JSON as block-style YAML.
std::string yaml_text(const Json& json);

/// The complete page. It fetches nothing: the policy in its head forbids it, and allows only its
/// own two scripts, identified by their hashes.
std::string document(std::string_view title, const std::string& body);

// Files embedded in the program by CMake (lib/report/CMakeLists.txt).

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
