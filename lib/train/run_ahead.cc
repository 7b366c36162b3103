#include "train/run_ahead.h"

namespace halfstep::train {

std::unique_ptr<RunAhead> RunAhead::make(Session& session) {
  const backend::Backend& backend = session.backend();
  const std::int64_t batch = session.spec().training.batch_size;
  if (!backend.device || session.train_rows().samples() < batch) return nullptr;
  plan::Plan& plan = session.plan(nn::Purpose::train, batch);
  const bool keeps = plan.graph().has_fetch("ok");
  // As much again is left for traces.
  if (keeps && 2 * session.state().device_bytes() > backend.memory->left()) return nullptr;
  return std::unique_ptr<RunAhead>(new RunAhead(session, plan, keeps));
}

RunAhead::RunAhead(Session& session, plan::Plan& plan, bool keeps)
    : session_(session),
      memory_(*session.backend().memory),
      row_bytes_(OutcomeViews(plan, session.state(), session.blueprint()).views().size() *
                 OutcomeViews::k_cell),
      log_(session.backend().memory, static_cast<std::size_t>(k_most_steps) * row_bytes_),
      kept_(session.backend().memory, keeps ? session.state().device_bytes() : 0) {}

void RunAhead::begin() {
  steps_.clear();
  if (kept_.bytes() > 0) session_.state().keep(kept_);
}

void RunAhead::run(plan::Plan& plan) {
  plan.run();
  const OutcomeViews& step = steps_.emplace_back(plan, session_.state(), session_.blueprint());
  std::byte* cell = log_.data() + (steps_.size() - 1) * row_bytes_;
  for (const TensorView& view : step.views()) {
    memory_.copy(view.data, cell, view.bytes());
    cell += OutcomeViews::k_cell;
  }
}

std::vector<StepOutcome> RunAhead::outcomes() {
  std::vector<std::byte> rows(steps_.size() * row_bytes_);
  memory_.download(log_.data(), rows.data(), rows.size());
  std::vector<StepOutcome> outcomes;
  for (const OutcomeViews& step : steps_) {
    outcomes.push_back(step.decode(rows.data() + outcomes.size() * row_bytes_));
  }
  return outcomes;
}

void RunAhead::take_back() { session_.state().set_back(kept_); }

}  // namespace halfstep::train
