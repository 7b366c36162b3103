#include "train/state_copies.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include "comm/communicator.h"
#include "core/files.h"
#include "data/tensor_files.h"
#include "train/checkpoint.h"
#include "train/gathered_state.h"
#include "train/step_time.h"

namespace halfstep::train {
namespace {

namespace fs = std::filesystem;
using graph::Role;

/// Entries for all variables; those that the ranks divide, and weights whose masters they divide,
/// have no elements.
std::vector<plan::State::Entry> undivided(const plan::State& state) {
  std::set<std::string> of_slices;
  for (const plan::State::Entry& entry : state.entries()) {
    if (entry.variable.slice) of_slices.insert(entry.variable.slice->tensor);
  }
  std::vector<plan::State::Entry> entries;
  for (const plan::State::Entry& entry : state.entries()) {
    const bool in_slices = entry.variable.slice || of_slices.contains(entry.variable.name);
    const graph::TensorType& type = entry.variable.type;
    entries.push_back({entry.variable, Tensor(type.dtype, in_slices ? Shape{0} : type.shape)});
  }
  return entries;
}

/// The names of a copy's tensors in the file of a rank.
std::string name_of(std::int64_t ordinal, int rank, bool of_best) {
  return fmt::format("step {} rank {}{}", ordinal, rank, of_best ? " best" : "");
}

TensorView bytes_of(const AlignedBuffer& buffer) {
  return {DType::uint8, Shape{static_cast<std::int64_t>(buffer.bytes())}, buffer.data()};
}

/// Polls until `done` returns true, for at most so many seconds.
void wait_until(double seconds, const std::function<bool()>& done) {
  const auto begin = std::chrono::steady_clock::now();
  while (!done() && seconds_since(begin) < seconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

std::string file_of(const std::string& folder, int rank) {
  return (fs::path(folder) / fmt::format("rank-{}", rank)).string();
}

/// Allocates only where the size differs, so that pages are touched once.
void resize(AlignedBuffer& buffer, std::size_t bytes) {
  if (buffer.bytes() != bytes) buffer = AlignedBuffer(bytes);
}

void pack(const std::vector<const Tensor*>& slices, AlignedBuffer& to) {
  std::size_t bytes = 0;
  for (const Tensor* slice : slices) bytes += slice->bytes();
  resize(to, bytes);
  std::byte* at = to.data();
  for (const Tensor* slice : slices) {
    std::memcpy(at, slice->view().data, slice->bytes());
    at += slice->bytes();
  }
}

}  // namespace

StateCopies::StateCopies(Session& session) : session_(session) {
  comm::Communicator* ranks = session.ranks();
  needed_ = ranks != nullptr && (session.is_divided() || session.backend().device);
  if (!needed_) return;
  every_ = session.spec().parallel.copy_every.value_or(0);
  if (session.is_divided()) {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    id_ = ranks->gather(fmt::format("{}{:x}-{:x}", k_copies_folder, now, ::getpid())).front();
    return;
  }
  // Leaves the same amount for the device's libraries, which allocate in the first steps.
  const std::size_t bytes = session.state().device_bytes();
  if (2 * bytes > session.backend().memory->available_bytes()) every_ = 0;
  if (every_ > 0) copies_[newest_].on_device = backend::Buffer(session.backend().memory, bytes);
}

void StateCopies::after_step(const RunState& run) {
  if (every_ == 0) return;
  const std::int64_t ordinal = run.progress.counters.ordinal;
  if (ordinal / every_ == std::exchange(last_, ordinal) / every_) return;
  // All ranks have completed a step since the newest copy, so each of them has it.
  if (session_.is_divided()) newest_ = 1 - newest_;
  Copy& copy = copies_[newest_];
  copy.ordinal = -1;
  copy.has_before = false;
  copy.progress = run.progress;
  copy.progress.wall_seconds = run.clock.seconds();
  if (session_.is_divided()) {
    copy_divided(run, copy);
    return;
  }
  session_.state().save_device(copy.on_device);
  copy.best = run.best.share();
  copy.ordinal = ordinal;
}

void StateCopies::copy_divided(const RunState& run, Copy& copy) {
  const plan::State& state = session_.state();
  state.to_host();
  if (copy.entries.empty()) copy.entries = undivided(state);
  const bool new_best = copy.best != run.best.share();
  copy.best = run.best.share();
  std::vector<const Tensor*> slices, slices_of_best;
  std::size_t next_best = 0;
  for (std::size_t i = 0; i < copy.entries.size(); ++i) {
    const plan::State::Entry& entry = state.entries()[i];
    const bool in_best = !copy.best->empty() && graph::in_weights(entry.variable.role);
    const Tensor* best = in_best ? &(*copy.best)[next_best++] : nullptr;
    if (entry.variable.slice) {
      slices.push_back(&entry.tensor);
      if (in_best && new_best) slices_of_best.push_back(best);
    } else if (const Tensor& to = copy.entries[i].tensor; to.bytes() > 0) {
      std::memcpy(to.view().data, entry.tensor.view().data, to.bytes());
    }
  }
  pack(slices, copy.slices.own);
  if (new_best) pack(slices_of_best, copy.slices_of_best.own);
  copy.ordinal = run.progress.counters.ordinal;
  exchange(copy.slices);
  if (new_best) exchange(copy.slices_of_best);
  copy.has_before = true;
}

void StateCopies::exchange(SlicePair& slices) {
  resize(slices.before, slices.own.bytes());
  session_.ranks()->shift(slices.own.data(), slices.before.data(), slices.own.bytes());
}

void StateCopies::save(const comm::RankLost& lost, const std::string& directory) {
  const int own = session_.ranks()->rank();
  const bool saves = own == lost.lowest_left();
  if (!session_.is_divided()) {
    const Copy& copy = copies_[newest_];
    if (!saves || copy.ordinal <= newest_step(directory).value_or(-1)) return;
    session_.state().restore_device(copy.on_device);
    save_checkpoint(directory, session_.state(), copy.progress, *copy.best);
    return;
  }
  const std::string folder = (fs::path(directory) / k_checkpoints_folder / id_).string();
  const double patience = session_.spec().parallel.timeout;
  if (!saves) {
    write_slices(folder);
    wait_until(patience, [&] { return !fs::exists(file_of(folder, own)); });
    return;
  }
  wait_until(patience, [&] {
    for (int r = 0; r < session_.ranks()->size(); ++r) {
      if (r != own && !lost.has(r) && !fs::exists(file_of(folder, r))) return false;
    }
    return true;
  });
  gather_slices(folder, directory);
  std::error_code error;
  fs::remove_all(folder, error);
}

void StateCopies::write_slices(const std::string& folder) {
  const int ranks = session_.ranks()->size(), own = session_.ranks()->rank();
  std::vector<data::NamedTensor> tensors;
  for (const Copy& copy : copies_) {
    if (copy.ordinal < 0) continue;
    const auto add = [&](int rank, AlignedBuffer SlicePair::*of) {
      tensors.push_back({name_of(copy.ordinal, rank, false), bytes_of(copy.slices.*of)});
      tensors.push_back({name_of(copy.ordinal, rank, true), bytes_of(copy.slices_of_best.*of)});
    };
    add(own, &SlicePair::own);
    if (copy.has_before) add((own + ranks - 1) % ranks, &SlicePair::before);
  }
  make_folder(folder);
  data::write_safetensors(file_of(folder, own), tensors);
}

void StateCopies::gather_slices(const std::string& folder, const std::string& directory) {
  const int ranks = session_.ranks()->size(), own = session_.ranks()->rank();
  std::vector<data::SafetensorsReader> files;
  for (int r = 0; r < ranks; ++r) {
    if (fs::exists(file_of(folder, r))) files.emplace_back(file_of(folder, r));
  }
  for (const std::size_t which : {newest_, 1 - newest_}) {
    const Copy& copy = copies_[which];
    if (copy.ordinal <= newest_step(directory).value_or(-1)) continue;
    std::vector<Tensor> read;
    // The slices of a rank, or nullptr where it and its copy are lost.
    const auto slice_of = [&](int rank, bool of_best) -> const std::byte* {
      const SlicePair& here = of_best ? copy.slices_of_best : copy.slices;
      if (rank == own) return here.own.data();
      if (rank == (own + ranks - 1) % ranks && copy.has_before) return here.before.data();
      for (const data::SafetensorsReader& file : files) {
        const auto* entry = file.find(name_of(copy.ordinal, rank, of_best));
        if (entry != nullptr) return read.emplace_back(file.read(*entry)).as<const std::byte>();
      }
      return nullptr;
    };
    std::array<std::vector<const std::byte*>, 2> at;
    for (int r = 0; r < ranks; ++r) {
      at[0].push_back(slice_of(r, false));
      at[1].push_back(slice_of(r, true));
    }
    if (std::ranges::find(at[0], nullptr) != at[0].end()) continue;
    const auto gather = [&](const graph::Variable& variable, const Tensor&, bool of_best) {
      Tensor full(variable.type.dtype, variable.slice->full_shape);
      const auto bytes = static_cast<std::size_t>(variable.type.shape.elements()) *
                         size_bytes(variable.type.dtype);
      std::size_t done = 0;
      for (const std::byte*& from : at[of_best]) {
        const std::size_t count = std::min(bytes, full.bytes() - done);
        std::memcpy(full.as<std::byte>() + done, from, count);
        done += count;
        from += bytes;
      }
      return full;
    };
    const GatheredState gathered(copy.entries, *copy.best, gather);
    save_checkpoint(directory, gathered.state(), copy.progress, gathered.best());
    return;
  }
}

}  // namespace halfstep::train
