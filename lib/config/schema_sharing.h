#pragma once
// Size of the JSON Schema: equal parts of it are described once.

#include <nlohmann/json_fwd.hpp>

namespace halfstep::config {

/// Replaces equal properties of `definitions` (the `$defs` of a schema) by references to one
/// definition named after the first of them. Descriptions and defaults stay with each property.
void share_repeated(nlohmann::ordered_json& definitions);

}  // namespace halfstep::config
