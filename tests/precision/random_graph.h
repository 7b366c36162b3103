#pragma once
// Random graphs whose edges agree in dtype, with loops, lists, several devices and dtypes.

#include <cstdint>

#include "graph/text.h"

namespace halfstep::precision {

/// Node names are `<prefix><number>`; two prefixes give the same graph under other names.
graph::ParsedGraph random_graph(std::uint32_t seed, std::string_view prefix = "n");

}  // namespace halfstep::precision
