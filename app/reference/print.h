#pragma once
// The reference as text for a terminal, as pages in Markdown and as JSON; the command line as a
// manual page and as a shell's completion.

#include <string>
#include <string_view>
#include <vector>

#include "reference/reference.h"
#include "report/machine_reports.h"

namespace CLI {
class App;
}

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

/// The manual page halfstep(1) in roff, of the program with all its commands.
std::string manual_page(const CLI::App& program);

/// A script for bash that completes commands, flags, and the listed values of flags.
std::string bash_completion(const CLI::App& program);

}  // namespace halfstep::app
