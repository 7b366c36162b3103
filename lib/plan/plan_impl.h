#pragma once
// What a Plan holds; shared by compile.cc, which fills it, and plan.cc, which runs it.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "plan/plan.h"

namespace halfstep::plan {

/// A piece of memory with the type it is seen as; several values may share one (aliases).
struct Slot {
  enum class Home { arena, constant, variable };
  Home home = Home::arena;
  TensorView view;
  std::size_t offset = 0;
  std::string variable;
};

struct Step {
  int node = -1;
  std::unique_ptr<backend::Launch> launch;
  std::vector<std::size_t> in_slots, out_slots;
  std::vector<TensorView> in, out;
  std::size_t workspace_offset = 0;
  std::byte* workspace = nullptr;
};

/// A run of steps of one phase, [first, last).
struct Segment {
  graph::Phase phase = graph::Phase::forward;
  std::size_t first = 0;
  std::size_t last = 0;
};

struct Plan::Impl {
  graph::Graph graph;
  std::shared_ptr<backend::Memory> memory;
  std::shared_ptr<backend::Device> device;  ///< outlives the launches that it has prepared
  std::vector<KernelChoice> kernels;
  std::unique_ptr<backend::Recording> recording;  ///< of all launches, as bound last
  bool warm = false;                              ///< whether each launch has run once
  std::vector<Slot> slots;
  std::map<graph::Value, std::size_t> slot_of;
  std::vector<Step> steps;
  std::vector<Segment> segments;
  backend::Buffer constants;
  std::size_t arena_bytes = 0;

  void launch_all() {
    for (Step& step : steps) step.launch->run({step.in, step.out, step.workspace});
  }

  TensorView view(graph::Value value) const {
    const auto it = slot_of.find(value);
    require(it != slot_of.end(), "a value of {} has no memory", graph.node(value.node).name);
    return slots[it->second].view;
  }
};

}  // namespace halfstep::plan
