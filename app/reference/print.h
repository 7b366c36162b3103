#pragma once
// The reference as text for a terminal, as pages in Markdown and as JSON.

#include <string>
#include <string_view>
#include <vector>

#include "reference/entry.h"
#include "report/machine_reports.h"

namespace halfstep::app {

/// Wrapped to at most 96 characters per line where possible.
std::string topic_as_text(const Topic& topic);
std::string entry_as_text(const Entry& entry);

/// A page of docs/.
std::string topic_as_markdown(const Topic& topic);
std::string entry_as_markdown(const Entry& entry);

/// `text`: an introduction, or "".
report::ReferenceReport reference_report(std::string_view topic,
                                         const std::string& text,
                                         const std::vector<Entry>& entries);

}  // namespace halfstep::app
