#include "train/gathered_state.h"

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "comm/communicator.h"

namespace halfstep::train {
namespace {

using graph::Role;

/// A tensor from the slices that the ranks have of it.
Tensor gather(const Tensor& slice, const graph::Slice& of, comm::Communicator& ranks) {
  const std::int64_t count = slice.elements() * ranks.size();
  const Tensor all(slice.dtype(), {count});
  auto* numbers = all.as<std::byte>();
  std::memcpy(numbers + static_cast<std::size_t>(ranks.rank()) * slice.bytes(),
              slice.as<std::byte>(),
              slice.bytes());
  const std::unique_ptr<comm::Collective> sum =
      ranks.collective(count, slice.dtype(), comm::CollectiveKind::all_gather);
  sum->start(numbers);
  ranks.wait(numbers);
  Tensor whole(slice.dtype(), of.full_shape);
  std::memcpy(whole.as<std::byte>(), numbers, whole.bytes());
  return whole;
}

}  // namespace

GatheredState::GatheredState(const Session& session, const std::vector<Tensor>& best, bool keep)
    : local_(&session.state()), local_best_(best) {
  if (!session.is_divided()) return;
  local_->to_host();
  const auto all = [&](const graph::Variable& variable, const Tensor& slice, bool) {
    return gather(slice, *variable.slice, *session.ranks());
  };
  gather_all(local_->entries(), all, keep);
}

void GatheredState::gather_all(std::span<const plan::State::Entry> of,
                               const Gather& gather,
                               bool keep) {
  std::vector<plan::State::Entry> entries;
  struct VariableIndex {
    std::size_t entry, best;
  };
  std::map<std::string, VariableIndex> by_name;
  std::size_t next_best = 0;
  for (const plan::State::Entry& entry : of) {
    const graph::Variable& variable = entry.variable;
    const bool in_best = !local_best_.empty() && graph::in_weights(variable.role);
    const auto whole = [&](const Tensor& value, bool of_best) {
      if (variable.slice) return gather(variable, value, of_best);
      return keep ? value.clone() : Tensor();
    };
    Tensor value = whole(entry.tensor, false);
    Tensor best_value = in_best ? whole(local_best_[next_best++], true) : Tensor();
    if (!keep) continue;
    if (variable.role == Role::master) {
      // The weight that it belongs to was declared before.
      const VariableIndex at = by_name.at(variable.slice->tensor);
      entries[at.entry].variable.type = {value.dtype(), value.shape()};
      entries[at.entry].tensor = std::move(value);
      if (in_best) gathered_best_[at.best] = std::move(best_value);
      continue;
    }
    by_name.emplace(variable.name, VariableIndex{entries.size(), gathered_best_.size()});
    graph::Variable full = variable;
    full.type = {value.dtype(), value.shape()};
    full.slice.reset();
    entries.push_back({std::move(full), std::move(value)});
    if (in_best) gathered_best_.push_back(std::move(best_value));
  }
  gathered_.emplace(std::move(entries));
}

}  // namespace halfstep::train
