#include "graph/op_handles.h"
#include "graph/ops/fused_update.h"
#include "plan/memory.h"
#include "plan/plan_impl.h"

namespace halfstep::plan {
namespace {

using graph::Attrs;
using graph::Graph;
using graph::Node;
using graph::Value;

/// Fills an int or float constant from the node's `value`: one element for all, or one each.
void fill_constant(const Node& node, const TensorView& view) {
  const graph::AttrValue* attr = node.attrs.find("value");
  require(attr != nullptr, "{} has no value", node.name);
  std::vector<double> values;
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(attr)) {
    values.assign(integers->begin(), integers->end());
  } else if (const auto* reals = std::get_if<std::vector<double>>(attr)) {
    values = *reals;
  }
  const std::int64_t n = view.elements();
  require(values.size() == 1 || static_cast<std::int64_t>(values.size()) == n,
          "{} has {} values for {} elements",
          node.name,
          values.size(),
          n);
  Tensor source(DType::float64, view.shape);
  for (std::int64_t i = 0; i < n; ++i) {
    source.as<double>()[i] = values.size() == 1 ? values[0] : values[static_cast<std::size_t>(i)];
  }
  convert(source.view(), view);
}

/// Compilation in progress.
class Compiler {
 public:
  Compiler(Graph graph, const backend::Backend& backend) : backend_(backend) {
    impl_->graph = std::move(graph);
    impl_->memory = backend.memory;
    impl_->device = backend.device;
    find_last_uses();
  }

  std::unique_ptr<Plan::Impl> finish() {
    for (int id = 0; id < impl_->graph.size(); ++id) add(id);
    store_constants();
    assign_offsets();
    find_segments();
    find_written_variables();
    return std::move(impl_);
  }

 private:
  static constexpr int k_forever = 1 << 30;

  void find_last_uses() {
    const Graph& graph = impl_->graph;
    for (int id = 0; id < graph.size(); ++id) {
      for (const Value& input : graph.node(id).inputs) last_use_[input] = id;
    }
    for (const auto& [name, value] : graph.fetches()) last_use_[value] = k_forever;
  }

  std::size_t new_slot(Slot slot, int first) {
    impl_->slots.push_back(std::move(slot));
    block_of_slot_.push_back(blocks_.size());
    blocks_.push_back({first, first, 0});
    return impl_->slots.size() - 1;
  }

  static Slot slot_for(Slot::Storage storage, const graph::TensorType& type) {
    return {storage, {type.dtype, type.shape, nullptr}, 0, ""};
  }

  std::size_t new_arena_slot(const graph::TensorType& type, int first) {
    const std::size_t slot = new_slot(slot_for(Slot::Storage::arena, type), first);
    blocks_[block_of_slot_[slot]].bytes = impl_->slots[slot].view.bytes();
    return slot;
  }

  /// An alias of the memory of `slot`.
  std::size_t new_alias(std::size_t slot, const graph::TensorType& type) {
    Slot alias = impl_->slots[slot];
    alias.view = {type.dtype, type.shape, nullptr};
    impl_->slots.push_back(std::move(alias));
    block_of_slot_.push_back(block_of_slot_[slot]);
    alias_targets_.push_back({impl_->slots.size() - 1, slot});
    return impl_->slots.size() - 1;
  }

  void assign(Value value, std::size_t slot) {
    impl_->slot_of[value] = slot;
    const auto it = last_use_.find(value);
    Lifetime& block = blocks_[block_of_slot_[slot]];
    block.last = std::max(block.last, it == last_use_.end() ? value.node : it->second);
  }

  /// Handles ops without a launch: variables, their reads, constants and inputs.
  bool add_without_launch(int id) {
    const Node& node = impl_->graph.node(id);
    const Value value{id, 0};
    if (node.is(graph::ops::k_var_handle_op)) {
      Slot slot = slot_for(Slot::Storage::variable, graph::ops::variable_type(node));
      slot.variable = node.attrs.get<std::string>("shared_name");
      assign(value, new_slot(std::move(slot), id));
    } else if (node.is(graph::ops::k_read_variable_op)) {
      impl_->slot_of[value] = impl_->slot_of.at(node.inputs[0]);
    } else if (node.is(graph::ops::k_const)) {
      assign(value, new_slot(slot_for(Slot::Storage::constant, node.outputs[0]), id));
      constants_.push_back(id);
    } else if (node.is(graph::ops::k_placeholder)) {
      last_use_[value] = k_forever;  // the host may read the memory it wrote
      assign(value, new_arena_slot(node.outputs[0], -1));
    } else {
      return false;
    }
    impl_->kernels.push_back({id, "", {}});
    return true;
  }

  /// The input in whose memory the kernel can store output 0, or -1.
  int inplace_input(const backend::Kernel& kernel, int id) {
    const Node& node = impl_->graph.node(id);
    for (std::size_t i = 0; i < node.inputs.size() && i < 32; ++i) {
      if (((kernel.inplace >> i) & 1U) == 0 || node.outputs.empty()) continue;
      const std::size_t slot = impl_->slot_of.at(node.inputs[i]);
      const Slot& memory = impl_->slots[slot];
      const TensorView out{node.outputs[0].dtype, node.outputs[0].shape, nullptr};
      if (memory.storage != Slot::Storage::arena || memory.view.shape != out.shape ||
          memory.view.bytes() != out.bytes()) {
        continue;
      }
      if (blocks_[block_of_slot_[slot]].last == id && !used_twice(node, i))
        return static_cast<int>(i);
    }
    return -1;
  }

  /// Whether another input aliases the block of input `i`.
  bool used_twice(const Node& node, std::size_t i) {
    const std::size_t block = block_of_slot_[impl_->slot_of.at(node.inputs[i])];
    for (std::size_t j = 0; j < node.inputs.size(); ++j) {
      const std::size_t slot = impl_->slot_of.at(node.inputs[j]);
      if (j != i && block_of_slot_[slot] == block && node.inputs[j] != node.inputs[i]) return true;
    }
    return false;
  }

  /// The CPU has a kernel for each executable op; another device may lack one.
  [[noreturn]] void refuse(const Node& node, const backend::Choice& choice) const {
    std::string reasons;
    for (const auto& [kernel, why] : choice.refused) {
      reasons += fmt::format("{} {}: {}", reasons.empty() ? ":" : ";", kernel, why);
    }
    require(backend_.name != "cpu", "no kernel runs {} ({}){}", node.op, node.name, reasons);
    throw UserError(ErrorKind::unavailable,
                    node.origin.where,
                    fmt::format("{} has no kernel for {}{}", backend_.name, node.op, reasons),
                    "use --device cpu");
  }

  void add(int id) {
    if (add_without_launch(id)) return;
    const Node& node = impl_->graph.node(id);
    const backend::NodeView view{impl_->graph, node};
    const backend::Choice choice = backend::choose(backend_, view);
    if (choice.kernel == nullptr) refuse(node, choice);
    const backend::Kernel& kernel = *choice.kernel;
    KernelChoice record{id, node.def->aliases ? "" : std::string(kernel.name), {}};
    for (const auto& [other, why] : choice.refused) record.refused.emplace_back(other, why);
    impl_->kernels.push_back(std::move(record));

    if (node.def->aliases) {
      assign({id, 0}, new_alias(impl_->slot_of.at(node.inputs[0]), node.outputs[0]));
      return;
    }

    PlannedLaunch launch;
    launch.node = id;
    if (node.is(graph::ops::k_packed_variable, graph::ops::k_cast_variable)) {
      const Attrs& variable = impl_->graph.node(node.inputs[0].node).attrs;
      const std::string& source = variable.get<std::string>("shared_name");
      Slot slot = slot_for(Slot::Storage::derived, node.outputs[0]);
      slot.variable = derived_name(source, node);
      assign({id, 0}, new_slot(std::move(slot), id));
      launch.out_slots.push_back(impl_->slot_of.at({id, 0}));
      connect(launch, view, kernel);
      impl_->refreshes.push_back({std::move(launch), source, {}});
      return;
    }
    const int source = inplace_input(kernel, id);
    for (int port = 0; port < static_cast<int>(node.outputs.size()); ++port) {
      const graph::TensorType& type = node.outputs[static_cast<std::size_t>(port)];
      const std::size_t slot =
          port == 0 && source >= 0
              ? new_alias(impl_->slot_of.at(node.inputs[static_cast<std::size_t>(source)]), type)
              : new_arena_slot(type, id);
      assign({id, port}, slot);
      launch.out_slots.push_back(slot);
    }
    workspaces_.push_back(blocks_.size());
    blocks_.push_back({id, id, connect(launch, view, kernel)});
    impl_->kernels.back().algorithm = launch.prepared->algorithm();
    impl_->launches.push_back(std::move(launch));
  }

  /// Sets the inputs, the views and the kernel of a launch; returns its workspace in bytes.
  std::size_t connect(PlannedLaunch& launch,
                      const backend::NodeView& view,
                      const backend::Kernel& kernel) {
    for (const Value& input : view.node.inputs) {
      launch.in_slots.push_back(impl_->slot_of.at(input));
    }
    for (std::size_t s : launch.in_slots) launch.in.push_back(impl_->slots[s].view);
    for (std::size_t s : launch.out_slots) launch.out.push_back(impl_->slots[s].view);
    backend::Prepared prepared = backend_.prepare(kernel, view);
    launch.prepared = std::move(prepared.launch);
    return prepared.workspace_bytes;
  }

  /// The name is equal for all plans that cast a variable to the same dtype, or pack it in the same
  /// dtype for the same operand. It does not hold the number of parts: State::derived() throws if
  /// that differs.
  static std::string derived_name(const std::string& variable, const Node& node) {
    if (node.is(graph::ops::k_cast_variable)) {
      const auto columns = node.attrs.get<std::int64_t>("columns");
      return fmt::format("{} as {}{}",
                         variable,
                         name(node.outputs[0].dtype),
                         columns == 0 ? "" : fmt::format(", rows of {}", columns));
    }
    const Attrs& packing = node.attrs;
    return fmt::format("{} as {} on side {}{}",
                       variable,
                       name(packing.get<DType>("dtype")),
                       packing.get<std::string>("side"),
                       packing.get<bool>("transpose") ? ", transposed" : "");
  }

  void find_written_variables() {
    const Graph& graph = impl_->graph;
    for (const PlannedLaunch& launch : impl_->launches) {
      const Node& node = graph.node(launch.node);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (graph.type(node.inputs[i]).dtype != DType::resource) continue;
        const std::string& variable =
            graph.node(node.inputs[i].node).attrs.get<std::string>("shared_name");
        impl_->written.push_back({variable, nullptr});
      }
    }
  }

  void store_constants() {
    const std::size_t alignment = impl_->memory->alignment();
    std::size_t bytes = 0;
    for (int id : constants_) {
      Slot& slot = impl_->slots[impl_->slot_of.at({id, 0})];
      slot.offset = bytes;
      bytes += aligned(slot.view.bytes(), alignment);
    }
    impl_->constants = backend::Buffer(impl_->memory, bytes);
    for (int id : constants_) {
      const Slot& slot = impl_->slots[impl_->slot_of.at({id, 0})];
      const Tensor host(slot.view.dtype, slot.view.shape);
      fill_constant(impl_->graph.node(id), host.view());
      impl_->memory->upload(
          host.view().data, impl_->constants.data() + slot.offset, slot.view.bytes());
    }
    // Aliases of constants were created before their offsets were known.
    for (const auto& [alias, target] : alias_targets_)
      impl_->slots[alias].offset = impl_->slots[target].offset;
  }

  void assign_offsets() {
    const Layout layout = assign_offsets_by_lifetime(blocks_, backend_.memory->alignment());
    impl_->arena_bytes = layout.bytes;
    for (std::size_t i = 0; i < impl_->slots.size(); ++i) {
      if (impl_->slots[i].storage != Slot::Storage::arena) continue;
      impl_->slots[i].offset = layout.offsets[block_of_slot_[i]];
    }
    for (std::size_t i = 0; i < impl_->launches.size(); ++i) {
      impl_->launches[i].workspace_offset = layout.offsets[workspaces_[i]];
    }
  }

  void find_segments() {
    for (std::size_t i = 0; i < impl_->launches.size(); ++i) {
      const graph::Phase phase = impl_->graph.node(impl_->launches[i].node).origin.phase;
      if (impl_->segments.empty() || impl_->segments.back().phase != phase) {
        impl_->segments.push_back({phase, i, i});
      }
      impl_->segments.back().last = i + 1;
    }
  }

  const backend::Backend& backend_;
  std::unique_ptr<Plan::Impl> impl_ = std::make_unique<Plan::Impl>();
  std::map<Value, int> last_use_;
  std::vector<Lifetime> blocks_;
  std::vector<std::size_t> block_of_slot_;
  std::vector<std::pair<std::size_t, std::size_t>> alias_targets_;
  std::vector<std::size_t> workspaces_;  // block of each launch
  std::vector<int> constants_;
};

}  // namespace

Plan compile(const Graph& graph, const backend::Backend& backend, const Lowering& lowering) {
  Lowered lowered = lower(graph, backend, lowering);
  std::unique_ptr<Plan::Impl> impl = Compiler(std::move(lowered.graph), backend).finish();
  impl->hides_values = lowered.hides_values;
  return Plan(std::move(impl));
}

}  // namespace halfstep::plan
