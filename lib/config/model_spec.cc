#include "config/model_spec.h"

namespace halfstep::config {

void ModelSpec::fields(Fields& f) {
  f.field("input",
          input,
          {.doc = "Extents of one sample, without the batch, for `layers`: [height, width, "
                  "channels] for images, [values] for vectors. Samples with as many values are "
                  "reshaped to it. [elements]",
           .min = 1});
  f.node("layers",
         layers,
         {.doc = "A list of layers, each the input of the next: maps with `type` and the layer's "
                 "arguments."});
  f.field("inputs",
          inputs,
          {.doc = "Names and extents of the inputs, for `nodes`: {image: [28, 28, 1]}. Training "
                  "takes one input. [elements]",
           .min = 1});
  f.node("nodes",
         nodes,
         {.doc = "Layers by name, each with its inputs in `from`: {c1: {type: conv2d, filters: 32, "
                 "kernel_size: 3, from: image}}."});
  f.field("outputs",
          outputs,
          {.doc = "Names of the nodes that are the model's outputs. Training takes one output."});
}

}  // namespace halfstep::config
