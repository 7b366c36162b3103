#include "train/step_pipeline.h"

namespace halfstep::train {
namespace {

constexpr std::size_t k_flag_apart = 64;

/// The op that logs the scalars of a step, and of a step that can be skipped keeps `state` bytes.
DeviceOp log_op(const backend::Backend& backend, const OutcomeViews& views, std::size_t state) {
  const auto values = static_cast<std::int64_t>(views.views().size());
  const auto cell = static_cast<std::int64_t>(OutcomeViews::k_cell);
  const bool keeps = state > 0;
  std::vector<DeviceOp::Port> ports;
  if (keeps) {
    const Shape bytes{static_cast<std::int64_t>(state)};
    ports = {{DType::uint8, bytes, true},
             {DType::boolean, {}, true},
             {DType::uint8, bytes},
             {DType::boolean, {}}};
  }
  ports.push_back({DType::uint8, {StepPipeline::k_max_steps * values * cell}, true});
  ports.push_back({DType::int64, {}});
  std::vector<DType> dtypes;
  for (const TensorView& view : views.views()) {
    ports.push_back({view.dtype, view.shape});
    dtypes.push_back(view.dtype);
  }
  return {backend,
          keeps ? "KeepState" : "LogScalars",
          ports,
          {{"Tin", std::move(dtypes)}, {"slots", std::int64_t{StepPipeline::k_max_steps}}}};
}

}  // namespace

std::unique_ptr<StepPipeline> StepPipeline::make(Session& session, DeviceBatches& batches) {
  const std::int64_t batch = session.spec().training.batch_size;
  if (session.train_split().samples() < batch) return nullptr;
  plan::Plan& plan = session.plan(nn::Purpose::train, batch);
  // Two copies of the variables are allocated here; memory for a third is left to traces.
  const std::size_t copies = plan.graph().has_fetch("ok") ? 3 * session.state().device_bytes() : 0;
  const std::size_t values =
      OutcomeViews(plan, session.state(), session.step_spec()).views().size();
  const std::size_t log = static_cast<std::size_t>(k_max_steps) * values * OutcomeViews::k_cell;
  if (copies + log > session.backend().memory->available_bytes()) return nullptr;
  return std::unique_ptr<StepPipeline>(new StepPipeline(session, batches, plan));
}

StepPipeline::StepPipeline(Session& session, DeviceBatches& batches, plan::Plan& plan)
    : session_(session),
      memory_(*session.backend().memory),
      batches_(batches),
      plan_(plan),
      checks_(plan.graph().has_fetch("ok")),
      views_(plan, session.state(), session.step_spec()),
      row_bytes_(views_.views().size() * OutcomeViews::k_cell),
      log_(session.backend().memory, static_cast<std::size_t>(k_max_steps) * row_bytes_),
      bad_(session.backend().memory, checks_ ? session.state().device_bytes() : 0),
      present_(session.backend().memory, bad_.bytes()),
      snapshot_flags_(session.backend().memory, 2 * k_flag_apart),
      write_log_(log_op(session.backend(), views_, bad_.bytes())),
      rows_(log_.bytes()) {}

void StepPipeline::begin(std::int64_t ordinal) {
  batches_.aim(ordinal, plan_);
  if (!captured_ || captured_ordinal_ != plan_.input("ordinal").data) capture(ordinal);
  plan_.refresh();
  if (checks_)
    memory_.copy(snapshot_flags_.data() + k_flag_apart, snapshot_flags_.data(), sizeof(bool));
}

void StepPipeline::capture(std::int64_t ordinal) {
  views_ = OutcomeViews(plan_, session_.state(), session_.step_spec());
  // The first launch of a kernel loads code, which cannot be captured: run those that the plan has
  // not run. Its own `ok` may still be memory of the batch, so they get the constant flag.
  batches_.advance(plan_);
  enqueue_outcome({DType::boolean, {}, snapshot_flags_.data() + k_flag_apart});
  batches_.aim(ordinal, plan_);
  captured_ = session_.backend().device->capture([this] { enqueue(); });
  captured_ordinal_ = plan_.input("ordinal").data;
}

void StepPipeline::enqueue() {
  plan_.enqueue(batches_.advance(plan_));
  enqueue_outcome(checks_ ? plan_.fetch("ok") : TensorView());
}

void StepPipeline::enqueue_outcome(const TensorView& ok) {
  std::vector<TensorView> in;
  if (checks_) {
    const Shape bytes{static_cast<std::int64_t>(bad_.bytes())};
    in = {{DType::uint8, bytes, bad_.data()},
          {DType::boolean, {}, snapshot_flags_.data()},
          {DType::uint8, bytes, session_.state().device_data()},
          ok};
  }
  in.push_back({DType::uint8, {static_cast<std::int64_t>(log_.bytes())}, log_.data()});
  in.push_back(plan_.input("ordinal"));
  in.insert(in.end(), views_.views().begin(), views_.views().end());
  write_log_.run(in, {});
}

void StepPipeline::run() {
  captured_->launch();
  plan_.mark_written();
}

void StepPipeline::read(std::int64_t first, std::span<StepOutcome> outcomes) {
  batches_.prepare_next_epoch();
  memory_.download(log_.data(), rows_.data(), rows_.size());
  for (StepOutcome& outcome : outcomes) {
    outcome.ordinal = first++;
    const auto slot = static_cast<std::size_t>(outcome.ordinal % k_max_steps);
    views_.decode(rows_.data() + slot * row_bytes_, outcome);
  }
}

void StepPipeline::restore_overflow_snapshot() {
  session_.state().save_device(present_);
  session_.state().restore_device(bad_);
}

void StepPipeline::leave_overflow_snapshot() { session_.state().restore_device(present_); }

}  // namespace halfstep::train
