#include "plan/plan.h"

#include <chrono>

#include "graph/op_handles.h"
#include "plan/plan_impl.h"

namespace halfstep::plan {
namespace {

/// Host copies of device tensors.
struct HostCopies {
  HostCopies(backend::Memory& memory, std::span<const TensorView> tensors) {
    for (const TensorView& from : tensors) {
      Tensor& copy = copies.emplace_back(from.dtype, from.shape);
      memory.download(from.data, copy.view().data, from.bytes());
      views.push_back(copy.view());
    }
  }

  std::vector<Tensor> copies;
  std::vector<TensorView> views;
};

}  // namespace

void Arena::reserve(std::size_t bytes) {
  if (bytes > buffer_.bytes()) {
    buffer_ = {};
    buffer_ = backend::Buffer(memory_, bytes);
  }
}

Plan::Plan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

const graph::Graph& Plan::graph() const { return impl_->graph; }
std::span<const KernelChoice> Plan::kernels() const { return impl_->kernels; }
std::size_t Plan::arena_bytes() const { return impl_->arena_bytes; }
std::size_t Plan::constant_bytes() const { return impl_->constants.bytes(); }
bool Plan::hides_values() const { return impl_->hides_values; }

void Plan::bind(State& state, const Arena& arena) {
  impl_->captured = nullptr;
  require(arena.bytes() >= impl_->arena_bytes,
          "an arena of {} bytes for a plan of {}",
          arena.bytes(),
          impl_->arena_bytes);
  for (Refresh& r : impl_->refreshes) {
    const Slot& slot = impl_->slots[r.step.out_slots[0]];
    r.derived = &state.derived(slot.variable, r.source, slot.view.bytes());
  }
  for (Written& w : impl_->written) w.version = &state.version(w.name);
  for (Slot& slot : impl_->slots) {
    switch (slot.home) {
      case Slot::Home::arena:
        slot.view.data = arena.data() + slot.offset;
        break;
      case Slot::Home::constant:
        slot.view.data = impl_->constants.data() + slot.offset;
        break;
      case Slot::Home::variable: {
        const TensorView variable = state.view(slot.variable);
        require(variable.dtype == slot.view.dtype && variable.elements() == slot.view.elements(),
                "variable '{}' is {} {}, the plan wants {} {}",
                slot.variable,
                name(variable.dtype),
                to_string(variable.shape),
                name(slot.view.dtype),
                to_string(slot.view.shape));
        slot.view.data = variable.data;
        break;
      }
      case Slot::Home::derived:
        slot.view.data = state.derived(slot.variable).buffer.data();
        break;
    }
  }
  for (Step& step : impl_->steps) {
    impl_->connect(step);
    step.workspace = arena.data() + step.workspace_offset;
  }
  for (Refresh& r : impl_->refreshes) impl_->connect(r.step);
}

TensorView Plan::input(std::string_view name) const {
  const int id = impl_->graph.find(name);
  require(id >= 0, "the plan has no input '{}'", name);
  return impl_->view({id, 0});
}

bool Plan::has_input(std::string_view name) const { return impl_->graph.find(name) >= 0; }

TensorView Plan::fetch(std::string_view name) const {
  return impl_->view(impl_->graph.fetch(name));
}

void Plan::write(std::string_view name, const void* from) {
  const TensorView to = input(name);
  impl_->memory->upload(from, to.data, to.bytes());
}

void Plan::read(std::string_view name, void* to) const {
  const TensorView from = fetch(name);
  impl_->memory->download(from.data, to, from.bytes());
}

void Plan::copy_inputs(const Plan& other) {
  const graph::Graph& graph = other.graph();
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    if (!node.is(graph::ops::k_placeholder) || !has_input(node.name)) continue;
    const TensorView from = other.input(node.name);
    impl_->memory->copy(from.data, input(node.name).data, from.bytes());
  }
}

void Plan::run() {
  impl_->refresh();
  if (!impl_->device || !impl_->warm) {
    // The first step of a device loads kernels and libraries, which cannot be captured.
    impl_->launch_all();
    impl_->warm = true;
  } else {
    if (!impl_->captured) {
      impl_->captured = impl_->device->capture([this] { impl_->launch_all(); });
    }
    impl_->captured->launch();
  }
  impl_->note_written();
}

void Plan::enqueue() { impl_->launch_all(); }

void Plan::refresh() { impl_->refresh(); }
void Plan::note_written() { impl_->note_written(); }

void Plan::run(PhaseSeconds& seconds) {
  if (impl_->device) return run();
  using Clock = std::chrono::steady_clock;
  impl_->refresh();
  Clock::time_point begin = Clock::now();
  for (const Segment& segment : impl_->segments) {
    for (std::size_t i = segment.first; i < segment.last; ++i) {
      Step& step = impl_->steps[i];
      step.launch->run({step.in, step.out, step.workspace});
    }
    const Clock::time_point end = Clock::now();
    seconds[static_cast<std::size_t>(segment.phase)] +=
        std::chrono::duration<double>(end - begin).count();
    begin = end;
  }
  impl_->note_written();
}

void Plan::trace(const Observer& observer) {
  impl_->refresh();
  for (Step& step : impl_->steps) {
    const graph::Node& node = impl_->graph.node(step.node);
    if (node.origin.phase == graph::Phase::update) continue;
    step.launch->run({step.in, step.out, step.workspace});
    if (impl_->memory->is_host()) {
      observer(node, step.in, step.out);
    } else {
      const HostCopies in(*impl_->memory, step.in), out(*impl_->memory, step.out);
      observer(node, in.views, out.views);
    }
  }
}

void Plan::profile(std::span<double> seconds) {
  using Clock = std::chrono::steady_clock;
  impl_->refresh();
  for (Step& step : impl_->steps) {
    const Clock::time_point start = Clock::now();
    step.launch->run({step.in, step.out, step.workspace});
    if (impl_->device) impl_->device->synchronize();
    seconds[static_cast<std::size_t>(step.node)] +=
        std::chrono::duration<double>(Clock::now() - start).count();
  }
  impl_->note_written();
}

}  // namespace halfstep::plan
