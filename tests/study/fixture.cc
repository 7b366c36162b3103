#include "fixture.h"

#include "train/fixture.h"

namespace halfstep::study {

config::RunSpec tiny_spec() {
  train::TinyRun tiny;
  tiny.layers = R"(
    - {type: flatten}
    - {name: hidden, type: dense, units: 16, activation: relu}
    - {type: dropout, rate: 0.3}
    - {name: logits, type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  return tiny.spec();
}

Variant tiny_variant(const std::string& word) {
  return make_variant(tiny_spec(), word, "--policies");
}

const data::Dataset& tiny_data() { return train::digits(); }

}  // namespace halfstep::study
