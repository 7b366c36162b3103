#include "study/turns.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"

namespace halfstep::study {
namespace {

constexpr double k_longest_slice_steps = 1000;

/// Steps per turn, from the fastest step of all lanes so far.
std::int64_t slice_steps(std::span<const Lane> lanes, double slice_seconds) {
  double fastest = 0;
  for (const Lane& lane : lanes) {
    const double seconds = lane.listener->fastest_seconds();
    if (seconds > 0 && (fastest == 0 || seconds < fastest)) fastest = seconds;
  }
  if (fastest == 0) return 1;
  return static_cast<std::int64_t>(
      std::clamp(std::ceil(slice_seconds / fastest), 1.0, k_longest_slice_steps));
}

}  // namespace

void TurnListener::on_step(const train::StepInfo& info) {
  const bool first = blocks_.empty();
  blocks_.push_back(block_);
  const auto ordinal =
      static_cast<std::size_t>((info.epoch - 1) * info.steps_per_epoch + info.step_in_epoch - 1);
  if (losses_.size() <= ordinal) losses_.resize(ordinal + 1, std::nan(""));
  losses_[ordinal] = info.loss;
  if (first) return;
  if (info.time.counted) ++counted_;
  const double seconds = info.time.total;
  fastest_seconds_ = fastest_seconds_ == 0 ? seconds : std::min(fastest_seconds_, seconds);
}

bool take_turns(std::span<const Lane> lanes, const TurnOptions& options) {
  std::vector<std::size_t> order(lanes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto ready = [&](const Lane& lane) {
    return !lane.trainer->done() && !(options.enough && options.enough(lane));
  };
  std::int64_t steps = 1;
  for (std::int64_t round = 0; std::ranges::any_of(lanes, ready); ++round) {
    if (round % 2 == 0) steps = slice_steps(lanes, options.slice_seconds);
    for (const std::size_t index : order) {
      const Lane& lane = lanes[index];
      if (options.stop && options.stop()) return false;
      if (!ready(lane)) continue;
      if (options.before_turn) options.before_turn(index);
      lane.listener->set_block(round / 2);
      lane.trainer->advance(steps);
    }
    std::ranges::reverse(order);
  }
  return true;
}

std::vector<BlockedStep> steady_steps(std::span<const train::StepSample> steps,
                                      std::span<const std::int64_t> blocks,
                                      std::int64_t warmup) {
  require(steps.empty() || steps.size() < blocks.size(),
          "{} steps with {} blocks",
          steps.size(),
          blocks.size());
  std::vector<BlockedStep> steady;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].counted) continue;
    if (warmup-- > 0) continue;
    steady.push_back({blocks[i + 1], steps[i].total * 1e3});
  }
  return steady;
}

void pair_blocks(std::span<const BlockedStep> baseline,
                 std::span<const BlockedStep> variant,
                 std::vector<TimedBlock>& blocks) {
  std::map<std::int64_t, TimedBlock> by_number;
  for (const BlockedStep& step : baseline) {
    by_number[step.block].baseline.push_back(step.milliseconds);
  }
  for (const BlockedStep& step : variant) {
    by_number[step.block].variant.push_back(step.milliseconds);
  }
  for (auto& [number, block] : by_number) {
    if (!block.baseline.empty() && !block.variant.empty()) blocks.push_back(std::move(block));
  }
}

}  // namespace halfstep::study
