#pragma once
// Maps that may be written as one scalar: `optimizer: sgd`, `loss_scale: 1024`, `device: cuda:1`.
// In their full form they can be merged and set key by key.

#include <string_view>

#include "config/node.h"

namespace halfstep::config {

/// Expands the scalar at config path `path` into its map. False, with the node unchanged: the
/// scalar is no shorthand.
bool spell_out(Node& node, std::string_view path);

/// Whether a shorthand merged into the map at `path` replaces only the keys that it gives: `device:
/// cpu` leaves `device.threads` alone, while `optimizer: sgd` replaces the whole optimizer.
bool word_joins_map(std::string_view path);

}  // namespace halfstep::config
