#include "plan/plan.h"

#include <algorithm>
#include <chrono>

#include "graph/elementwise_body.h"
#include "graph/op_handles.h"
#include "plan/plan_impl.h"

namespace halfstep::plan {

void Arena::reserve(std::size_t bytes) {
  if (bytes > buffer_.bytes()) {
    buffer_ = {};
    buffer_ = backend::Buffer(memory_, bytes);
  }
}

namespace {

constexpr graph::OpHandle k_fused_elementwise{"FusedElementwise"};

}  // namespace

std::optional<ScaledInput> scaled_input(const graph::Graph& graph, std::string_view name) {
  const int input = graph.find(name);
  if (input < 0 || graph.node(input).outputs[0].dtype != DType::uint8) return std::nullopt;
  std::optional<ScaledInput> found;
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    if (std::find(node.inputs.begin(), node.inputs.end(), graph::Value{input, 0}) ==
        node.inputs.end()) {
      continue;
    }
    if (found || !node.is(k_fused_elementwise) || node.outputs.size() != 1 ||
        node.inputs.size() != 2) {
      return {};
    }
    const graph::Node& factor = graph.node(node.inputs.back().node);
    // Cast x0 : float; Mul t0 x1 : float; and for 16 bits Cast t1.
    const auto& steps = node.attrs.get<graph::ElementwiseBody>("body").steps;
    const bool scales =
        node.inputs[0] == graph::Value{input, 0} && factor.is(graph::ops::k_const) &&
        factor.outputs[0] == graph::TensorType{DType::float32, {}} &&
        (steps.size() == 2 || steps.size() == 3) && steps[0].op == graph::ops::k_cast &&
        steps[0].dtype == DType::float32 && steps[1].op == graph::ops::k_mul &&
        steps[1].operands == std::vector<int>{2, 1} && steps[1].dtype == DType::float32 &&
        (steps.size() == 2 ||
         (steps[2].op == graph::ops::k_cast && steps[2].operands == std::vector<int>{3}));
    if (!scales) return {};
    found = ScaledInput{id, factor.attrs.get<std::vector<double>>("value").at(0)};
  }
  return found;
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
  impl_->profiled = nullptr;
  require(arena.bytes() >= impl_->arena_bytes,
          "an arena of {} bytes for a plan of {}",
          arena.bytes(),
          impl_->arena_bytes);
  for (DerivedRefresh& r : impl_->refreshes) {
    const Slot& slot = impl_->slots[r.launch.out_slots[0]];
    r.derived = &state.derived(slot.variable, r.source, slot.view.bytes());
  }
  for (WrittenVariable& w : impl_->written) w.version = &state.version(w.name);
  for (Slot& slot : impl_->slots) {
    switch (slot.storage) {
      case Slot::Storage::arena:
        slot.view.data = arena.data() + slot.offset;
        break;
      case Slot::Storage::constant:
        slot.view.data = impl_->constants.data() + slot.offset;
        break;
      case Slot::Storage::variable: {
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
      case Slot::Storage::derived:
        slot.view.data = state.derived(slot.variable).buffer.data();
        break;
    }
  }
  for (PlannedLaunch& launch : impl_->launches) {
    impl_->connect(launch);
    launch.workspace = arena.data() + launch.workspace_offset;
  }
  for (DerivedRefresh& r : impl_->refreshes) impl_->connect(r.launch);
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
  if (impl_->device) {
    impl_->launch_captured(impl_->captured, [this] { impl_->launch_all(); });
  } else {
    impl_->launch_all();
  }
  impl_->mark_written();
}

void Plan::enqueue(bool scaled) { impl_->launch_all(scaled ? 1 : 0); }

std::optional<Plan::Scaled> Plan::scaled(std::string_view input) const {
  const auto found = scaled_input(impl_->graph, input);
  if (!found || impl_->launches.empty() || impl_->launches[0].node != found->node)
    return std::nullopt;
  return Scaled{impl_->launches[0].out[0], found->scale};
}

void Plan::refresh() { impl_->refresh(); }
void Plan::mark_written() { impl_->mark_written(); }

void Plan::run(PhaseSeconds& seconds) {
  if (impl_->device) return run();
  using Clock = std::chrono::steady_clock;
  impl_->refresh();
  Clock::time_point begin = Clock::now();
  for (const Segment& segment : impl_->segments) {
    for (std::size_t i = segment.first; i < segment.last; ++i) impl_->launches[i].run();
    const Clock::time_point end = Clock::now();
    seconds[static_cast<std::size_t>(segment.phase)] +=
        std::chrono::duration<double>(end - begin).count();
    begin = end;
  }
  impl_->mark_written();
}

void Plan::trace(const Observer& observer) {
  impl_->refresh();
  for (PlannedLaunch& launch : impl_->launches) {
    const graph::Node& node = impl_->graph.node(launch.node);
    if (node.origin.phase == graph::Phase::update) continue;
    launch.run();
    observer(node, launch.in, launch.out);
  }
}

void Plan::profile(std::span<double> seconds) {
  using Clock = std::chrono::steady_clock;
  impl_->refresh();
  if (impl_->device) {
    impl_->profile_device(seconds);
    return impl_->mark_written();
  }
  for (PlannedLaunch& launch : impl_->launches) {
    const Clock::time_point start = Clock::now();
    launch.run();
    seconds[static_cast<std::size_t>(launch.node)] +=
        std::chrono::duration<double>(Clock::now() - start).count();
  }
  impl_->mark_written();
}

}  // namespace halfstep::plan
