#pragma once
// Where the files of a data set are.

#include <string>
#include <vector>

#include "data/table.h"

namespace halfstep::data {

/// A set that was found: its row, the folder or file, and one path per file of the row (empty for
/// a file that may be missing and is).
struct Located {
  SetDef def;
  std::string source;
  std::vector<std::string> files;
};

/// Finds what the options ask for, the first place first.
/// Errors: UserError(config) for an unknown name or format and for options that exclude each other;
/// UserError(data) listing the places for a set that is in none of them.
Located locate(const DataOptions& options);

}  // namespace halfstep::data
