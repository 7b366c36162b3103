// Random tensors as a function of (seed, stream, ordinal): a batch gets the same numbers on every
// backend and with any number of threads.
//   y[i] = to_uniform(word j % 4 of random_words(seed, mix(stream, ordinal), j / 4)), j = first + i
// `first` is the number of elements that the samples of lower ranks have, so that a sample gets the
// same numbers on every rank.

#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

std::vector<Shape> infer_random(const InferContext& c) {
  if (c.input(0).shape.elements() != 1) {
    throw ShapeError("the ordinal must be one number, got shape " + to_string(c.input(0).shape));
  }
  return {c.node.attrs.get<Shape>("shape")};
}

}  // namespace

std::vector<OpDef> random_ops() {
  return {
      define("RandomUniformFromOrdinal",
             "ordinal: int64 -> y: float",
             "shape: shape, seed: int = 0, stream: int = 0, first: int = 0",
             {.infer = infer_random, .gradient = no_gradients, .elementwise = 1}),
  };
}

}  // namespace halfstep::graph::ops
