#include "train/scale_events.h"

#include <array>
#include <string_view>

namespace halfstep::train {
namespace {

constexpr std::array<std::string_view, 2> k_nonfinite_kinds{"inf", "nan"};
constexpr FieldOptions k_attempt{.doc = "attempted step, from 1", .min = 1};
constexpr std::string_view k_first_nonfinite =
    "first tensor of the step that was not finite; null when not traced";

}  // namespace

void FirstNonfinite::fields(Fields& f) {
  f("tensor", tensor, "node that made it");
  f("op", op, "of the node");
  f("layer", layer, "of the config; empty outside of layers");
  f("phase", phase, "forward, backward, ...");
  f("dtype", dtype, "of the tensor");
  f.one_of("kind", kind, k_nonfinite_kinds, "kind of the first nonfinite value found");
  f("count", count, {.doc = "elements that are not finite", .min = 1});
  f("finite_absmax", finite_absmax, "largest finite magnitude in the tensor");
  f("loss_finite", loss_finite, "whether the loss itself was finite");
}

void ScaleEvent::fields(Fields& f) {
  f("step", step, "applied steps before it");
  f("attempt", attempt, k_attempt);
  f("ordinal", ordinal, "of the batch");
  f("from", from, "scale before");
  f("to", to, "scale after");
  f("first_nonfinite", first_nonfinite, k_first_nonfinite);
}

void SkippedStep::fields(Fields& f) {
  f("attempt", attempt, k_attempt);
  f("ordinal", ordinal, "of the batch");
  f("retried", retried, "whether the batch was tried again");
  f("first_nonfinite", first_nonfinite, k_first_nonfinite);
}

}  // namespace halfstep::train
