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

std::optional<double> loss_scale(const plan::State& state) {
  if (!state.contains(precision::k_scale_variable)) return std::nullopt;
  return static_cast<double>(state.read<float>(precision::k_scale_variable));
}

OutcomeViews::OutcomeViews(const plan::Plan& plan,
                           const plan::State& state,
                           const nn::StepSpec& step_spec)
    : checks_(plan.graph().has_fetch("ok")), scales_(state.contains(precision::k_scale_variable)) {
  views_ = {plan.fetch("loss"), plan.fetch("learning_rate")};
  for (const std::string& counter : step_spec.counters()) {
    views_.push_back(plan.fetch("metric/" + counter));
  }
  if (checks_) views_.push_back(plan.fetch("ok"));
  if (scales_) views_.push_back(state.view(precision::k_scale_variable));
  for (const TensorView& view : views_) {
    require(view.bytes() <= k_cell, "an outcome of {} bytes", view.bytes());
  }
  cells_.resize(views_.size() * k_cell);
}

void OutcomeViews::decode(const std::byte* cells, StepOutcome& outcome) const {
  outcome.loss = static_cast<double>(take<float>(cells));
  outcome.learning_rate = static_cast<double>(take<float>(cells));
  const std::size_t others = 2U + (checks_ ? 1U : 0U) + (scales_ ? 1U : 0U);
  outcome.metrics.clear();
  for (std::size_t i = others; i < views_.size(); ++i) {
    outcome.metrics.push_back(static_cast<double>(take<float>(cells)));
  }
  outcome.applied = checks_ ? take<bool>(cells) : true;
  if (scales_) outcome.loss_scale = static_cast<double>(take<float>(cells));
}

void OutcomeViews::read(const std::shared_ptr<backend::Memory>& memory, StepOutcome& outcome) {
  if (gathered_.bytes() == 0) gathered_ = backend::Buffer(memory, cells_.size());
  std::byte* cell = gathered_.data();
  for (const TensorView& view : views_) {
    memory->copy(view.data, cell, view.bytes());
    cell += k_cell;
  }
  memory->download(gathered_.data(), cells_.data(), cells_.size());
  decode(cells_.data(), outcome);
}

}  // namespace halfstep::train
