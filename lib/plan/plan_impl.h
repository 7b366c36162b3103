#pragma once
// The state of a Plan; compile.cc fills it, plan.cc runs it.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "plan/plan.h"

namespace halfstep::plan {

/// A memory range with dtype and shape; several values may share one (aliases).
struct Slot {
  enum class Storage { arena, constant, variable, derived };
  Storage storage = Storage::arena;
  TensorView view;
  std::size_t offset = 0;
  std::string variable;  ///< or the name of the copy derived from it
};

/// A launch of the plan: its kernel, with the slots and views of its tensors.
struct PlannedLaunch {
  int node = -1;
  std::unique_ptr<backend::Launch> prepared;
  std::vector<std::size_t> in_slots, out_slots;
  std::vector<TensorView> in, out;
  std::size_t workspace_offset = 0;
  std::byte* workspace = nullptr;

  void run() const { prepared->run({in, out, workspace}); }
};

/// The launch that recomputes a copy derived from a variable.
struct DerivedRefresh {
  PlannedLaunch launch;
  std::string source;
  State::Derived* derived = nullptr;
};

/// A variable that the plan writes.
struct WrittenVariable {
  std::string name;
  std::uint64_t* version = nullptr;
};

/// Consecutive launches of one phase, [first, last).
struct Segment {
  graph::Phase phase = graph::Phase::forward;
  std::size_t first = 0;
  std::size_t last = 0;
};

struct Plan::Impl {
  graph::Graph graph;
  std::shared_ptr<backend::Memory> memory;
  std::shared_ptr<backend::Device> device;  ///< outlives the launches that it has prepared
  bool hides_values = false;                ///< see Pass::hides_values
  std::vector<KernelChoice> kernels;
  std::unique_ptr<backend::CapturedGraph>
      captured;       ///< of all launches, with the addresses of the last bind()
  bool warm = false;  ///< whether each launch has run once
  std::vector<std::unique_ptr<backend::Event>> events;  ///< of profiles: around each launch
  std::unique_ptr<backend::CapturedGraph> profiled;     ///< like `captured`, with the events
  std::vector<Slot> slots;
  std::map<graph::Value, std::size_t> slot_of;
  std::vector<PlannedLaunch> launches;
  std::vector<Segment> segments;
  std::vector<DerivedRefresh> refreshes;
  std::vector<WrittenVariable> written;
  backend::Buffer constants;
  std::size_t arena_bytes = 0;

  /// Sets the addresses of the views of a launch to those of its slots.
  void connect(PlannedLaunch& launch) const {
    for (std::size_t i = 0; i < launch.in_slots.size(); ++i) {
      launch.in[i].data = slots[launch.in_slots[i]].view.data;
    }
    for (std::size_t i = 0; i < launch.out_slots.size(); ++i) {
      launch.out[i].data = slots[launch.out_slots[i]].view.data;
    }
  }

  /// Recomputes derived copies that are older than their variables, before a step.
  void refresh() {
    for (DerivedRefresh& r : refreshes) {
      if (r.derived->source_version == *r.derived->version) continue;
      r.launch.run();
      r.derived->source_version = *r.derived->version;
    }
  }
  void mark_written() {
    for (const WrittenVariable& w : written) ++*w.version;
    // The updates of this plan also wrote the derived copies.
    for (const DerivedRefresh& r : refreshes) r.derived->source_version = *r.derived->version;
  }

  void launch_all(std::size_t first = 0) {
    for (std::size_t i = first; i < launches.size(); ++i) launches[i].run();
  }

  /// Enqueues all launches: the first time eagerly, since a device then loads kernels and
  /// libraries, which cannot be captured; later as the captured graph `captured_step`.
  template <class Enqueue>
  void launch_captured(std::unique_ptr<backend::CapturedGraph>& captured_step,
                       const Enqueue& enqueue) {
    if (!warm) {
      enqueue();
      warm = true;
      return;
    }
    if (!captured_step) captured_step = device->capture(enqueue);
    captured_step->launch();
  }

  void profile_device(std::span<double> seconds) {
    while (events.size() <= launches.size()) events.push_back(device->make_event());
    launch_captured(profiled, [this] {
      events[0]->record();
      for (std::size_t i = 0; i < launches.size(); ++i) {
        launches[i].run();
        events[i + 1]->record();
      }
    });
    device->synchronize();
    for (std::size_t i = 0; i < launches.size(); ++i) {
      seconds[static_cast<std::size_t>(launches[i].node)] +=
          events[i + 1]->seconds_since(*events[i]);
    }
  }

  TensorView view(graph::Value value) const {
    const auto it = slot_of.find(value);
    require(it != slot_of.end(), "a value of {} has no memory", graph.node(value.node).name);
    return slots[it->second].view;
  }
};

}  // namespace halfstep::plan
