#pragma once
// Keys that are in another section of a config than their own.

#include "config/node.h"
#include "core/error.h"

namespace halfstep::config {

/// Reports unknown keys of sections that one other section has, such as training.validation_split,
/// with the key that is meant. The reader's own message of the same text then is not kept.
void report_misplaced_keys(const Node& root, Diagnostics& diagnostics);

}  // namespace halfstep::config
