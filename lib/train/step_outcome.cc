#include "train/step_outcome.h"

#include <cstring>

#include "precision/loss_scale.h"

namespace halfstep::train {
namespace {

template <class T>
T take(const std::byte*& cell) {
  T value{};
  std::memcpy(&value, cell, sizeof(T));
  cell += OutcomeViews::k_cell;
  return value;
}

}  // namespace

OutcomeViews::OutcomeViews(const plan::Plan& plan,
                           const plan::State& state,
                           const nn::StepSpec& step_spec)
    : checks_(plan.graph().has_fetch("ok")), scales_(state.contains(precision::k_scale_variable)) {
  views_ = {plan.fetch("loss"), plan.fetch("learning_rate")};
  for (const std::string& metric : step_spec.metrics) {
    views_.push_back(plan.fetch("metric/" + metric));
  }
  if (checks_) views_.push_back(plan.fetch("ok"));
  if (scales_) views_.push_back(state.view(precision::k_scale_variable));
  for (const TensorView& view : views_) {
    require(view.bytes() <= k_cell, "an outcome of {} bytes", view.bytes());
  }
}

StepOutcome OutcomeViews::decode(const std::byte* cells) const {
  StepOutcome outcome;
  outcome.loss = static_cast<double>(take<float>(cells));
  outcome.learning_rate = static_cast<double>(take<float>(cells));
  const std::size_t others = 2U + (checks_ ? 1U : 0U) + (scales_ ? 1U : 0U);
  for (std::size_t i = others; i < views_.size(); ++i) {
    outcome.metrics.push_back(static_cast<double>(take<float>(cells)));
  }
  if (checks_) outcome.applied = take<bool>(cells);
  if (scales_) outcome.loss_scale = static_cast<double>(take<float>(cells));
  return outcome;
}

StepOutcome OutcomeViews::read(backend::Memory& memory) const {
  std::vector<std::byte> cells(views_.size() * k_cell);
  std::byte* cell = cells.data();
  for (const TensorView& view : views_) {
    memory.download(view.data, cell, view.bytes());
    cell += k_cell;
  }
  return decode(cells.data());
}

}  // namespace halfstep::train
