#pragma once
// Convolutions and their gradients on every kernel row that takes them.

#include <string_view>

#include "backend/backend.h"

namespace halfstep::bench {

/// Prints the least and the median time of each; `only`: those whose name contains it.
void bench_convs(const backend::Backend& cpu, std::string_view only);

}  // namespace halfstep::bench
