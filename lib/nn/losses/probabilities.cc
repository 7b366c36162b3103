#include "nn/losses/probabilities.h"

namespace halfstep::nn {

graph::Value clip_probabilities(graph::Builder& b, graph::Value p) {
  constexpr double k_epsilon = 1e-7;
  return b.add("ClipByValue",
               {p, b.scalar(DType::float32, k_epsilon), b.scalar(DType::float32, 1 - k_epsilon)});
}

}  // namespace halfstep::nn
