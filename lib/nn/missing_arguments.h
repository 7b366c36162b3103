#pragma once
// Arguments of Keras that no layer, loss, optimizer or schedule has here are refused with the
// reason, so that ported code does not stop at "unknown key".

#include <span>
#include <string_view>
#include <vector>

#include "config/reader.h"

namespace halfstep::nn {

struct MissingArgument {
  std::string_view name;  ///< beginning with "_": the end of the names of several
  std::string_view reason;
};

/// The reason of the argument of this name, or "".
std::string_view missing_argument(std::span<const MissingArgument> missing, std::string_view name);

/// The keys of `node` that are missing arguments, each reported at its line; not those that
/// `fields` reads.
std::vector<std::string_view> refuse_missing(std::span<const MissingArgument> missing,
                                             const config::Node& node,
                                             void (*fields)(config::Fields& f),
                                             Diagnostics& diagnostics);

/// `node` without those keys, which are reported.
config::Node without_missing(std::span<const MissingArgument> missing,
                             const config::Node& node,
                             void (*fields)(config::Fields& f),
                             Diagnostics& diagnostics);

}  // namespace halfstep::nn
