#include "config/model_spec.h"

namespace halfstep::config {

void ModelSpec::fields(Fields& f) {
  f.field("input", input, {.doc = "extents of one sample, for `layers`", .min = 1});
  f.node("layers", layers, {.doc = "a list of layers, each the input of the next"});
  f.field("inputs", inputs, {.doc = "names and extents of the inputs, for `nodes`", .min = 1});
  f.node("nodes", nodes, {.doc = "layers by name, each with its inputs in `from`"});
  f.field("outputs", outputs, {.doc = "names of the nodes that the model gives"});
}

}  // namespace halfstep::config
