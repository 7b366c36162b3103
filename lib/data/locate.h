#pragma once
// Search for the files of a data set.

#include <string>
#include <vector>

#include "data/table.h"

namespace halfstep::data {

/// A set that was found: its table entry, the folder or file, and one path per file of the entry
/// (empty for an optional file that is missing).
struct Located {
  SetDef def;
  std::string source;
  std::vector<std::string> files;
};

/// Finds the set named by the options; search paths are tried in order. Errors: UserError(config)
/// for an unknown name or format and for options that exclude each other; UserError(data) with the
/// searched paths for a set that is in none of them.
Located locate(const DataOptions& options);

}  // namespace halfstep::data
