#pragma once

#include <string>

namespace halfstep::app {

/// The program's version and build on one line, its libraries' versions on the next.
std::string version_text();

}  // namespace halfstep::app
