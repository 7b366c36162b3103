#pragma once
// What this room tells the JSON Schema of a config: the layers, losses, optimizers, schedules and
// initializers with their fields.

#include "config/schema.h"

namespace halfstep::nn {

config::SchemaTypes schema_types();

}  // namespace halfstep::nn
