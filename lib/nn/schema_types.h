#pragma once
// The types of lib/nn in the JSON Schema of a config: layers, losses, optimizers, schedules and
// initializers with their fields.

#include "config/schema.h"

namespace halfstep::nn {

config::SchemaTypes schema_types();

}  // namespace halfstep::nn
