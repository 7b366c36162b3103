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
  enum class Home { arena, constant, variable, derived };
  Home home = Home::arena;
  TensorView view;
  std::size_t offset = 0;
  std::string variable;  ///< or the name of the copy derived from it
};

struct Step {
  int node = -1;
  std::unique_ptr<backend::Launch> launch;
  std::vector<std::size_t> in_slots, out_slots;
  std::vector<TensorView> in, out;
  std::size_t workspace_offset = 0;
  std::byte* workspace = nullptr;

  void run() const { launch->run({in, out, workspace}); }
};

/// Recomputes a copy derived from a variable.
struct Refresh {
  Step step;
  std::string source;
  State::Derived* derived = nullptr;
};

/// A variable that the plan writes.
struct Written {
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
  std::vector<Step> steps;
  std::vector<Segment> segments;
  std::vector<Refresh> refreshes;
  std::vector<Written> written;
  backend::Buffer constants;
  std::size_t arena_bytes = 0;

  /// Sets the addresses of the views of a launch to those of its slots.
  void connect(Step& step) const {
    for (std::size_t i = 0; i < step.in_slots.size(); ++i) {
      step.in[i].data = slots[step.in_slots[i]].view.data;
    }
    for (std::size_t i = 0; i < step.out_slots.size(); ++i) {
      step.out[i].data = slots[step.out_slots[i]].view.data;
    }
  }

  /// Before a step: recomputes derived copies that are older than their variables.
  void refresh() {
    for (Refresh& r : refreshes) {
      if (r.derived->made_from == *r.derived->version) continue;
      r.step.run();
      r.derived->made_from = *r.derived->version;
    }
  }
  void note_written() {
    for (const Written& w : written) ++*w.version;
    // The updates of this plan have written the derived copies, too.
    for (const Refresh& r : refreshes) r.derived->made_from = *r.derived->version;
  }

  void launch_all(std::size_t first = 0) {
    for (std::size_t i = first; i < steps.size(); ++i) steps[i].run();
  }

  /// Enqueues all launches: the first time eagerly, since a device then loads kernels and
  /// libraries, which cannot be captured; later as `step`, a captured graph.
  template <class Enqueue>
  void launch_captured(std::unique_ptr<backend::CapturedGraph>& step, const Enqueue& enqueue) {
    if (!warm) {
      enqueue();
      warm = true;
      return;
    }
    if (!step) step = device->capture(enqueue);
    step->launch();
  }

  void profile_device(std::span<double> seconds) {
    while (events.size() <= steps.size()) events.push_back(device->make_event());
    launch_captured(profiled, [this] {
      events[0]->record();
      for (std::size_t i = 0; i < steps.size(); ++i) {
        steps[i].run();
        events[i + 1]->record();
      }
    });
    device->synchronize();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      seconds[static_cast<std::size_t>(steps[i].node)] += events[i + 1]->seconds_since(*events[i]);
    }
  }

  TensorView view(graph::Value value) const {
    const auto it = slot_of.find(value);
    require(it != slot_of.end(), "a value of {} has no memory", graph.node(value.node).name);
    return slots[it->second].view;
  }
};

}  // namespace halfstep::plan
