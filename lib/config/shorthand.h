#pragma once
// Maps that may be written as one word or number: `optimizer: sgd`, `loss_scale: 1024`,
// `device: cuda:1`. Spelled out, they can be merged and set key by key.

#include <string_view>

#include "config/node.h"

namespace halfstep::config {

/// Turns the scalar at config path `path` into the map it stands for. False: it stands for none,
/// and the node stays as it is.
bool spell_out(Node& node, std::string_view path);

/// Whether a word laid over the map at `path` replaces only the keys that it stands for: `device:
/// cpu` leaves `device.threads` alone, while `optimizer: sgd` means a fresh optimizer.
bool word_joins_map(std::string_view path);

}  // namespace halfstep::config
