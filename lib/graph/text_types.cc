#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>

#include "core/ranges.h"
#include "graph/ports.h"
#include "graph/text_attr.h"

namespace halfstep::graph {
namespace {

/// Limit on ports beyond the 16 that each node may have: about 50 MB of memory.
constexpr std::int64_t k_max_extra_ports = 1 << 18;

/// The number of outputs in use, per node.
std::vector<int> used_outputs(const Graph& graph) {
  std::vector<int> used(static_cast<std::size_t>(graph.size()), 0);
  for (int id = 0; id < graph.size(); ++id) {
    for (const Value& input : graph.node(id).inputs) {
      if (!input.valid()) continue;
      int& count = used[static_cast<std::size_t>(input.node)];
      count = std::max(count, std::min(input.port, 65535) + 1);
    }
  }
  return used;
}

/// A count or list attribute to infer, and the number of the signature's ports that it sizes.
struct Unknown {
  std::string attr;
  bool is_list = false;
  int ports = 0;
};

/// Sizes the unknown attributes of `ports` so that the ports number `wanted` in all.
void size_ports(Node& node, const std::vector<Port>& ports, int wanted) {
  std::vector<Unknown> unknown;
  std::int64_t known = 0;
  for (const Port& port : ports) {
    const TypeAttr* type = port.fixed ? nullptr : node.def->type_attr(port.type_attr);
    const bool is_list = type != nullptr && type->is_list;
    const std::string& attr = is_list ? type->name : port.count_attr;
    if (attr.empty()) {
      ++known;
      continue;
    }
    if (const AttrValue* value = node.attrs.find(attr)) {
      if (const auto* list = std::get_if<std::vector<DType>>(value)) {
        known += static_cast<std::int64_t>(list->size());
      } else if (const auto* count = std::get_if<std::int64_t>(value)) {
        known += *count;
      }
      continue;
    }
    const auto it = std::ranges::find(unknown, attr, &Unknown::attr);
    if (it == unknown.end()) {
      unknown.push_back({attr, is_list, 1});
    } else {
      ++it->ports;
    }
  }
  std::int64_t left = std::max<std::int64_t>(0, wanted - known);
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const Unknown& u = unknown[i];
    std::int64_t size = i + 1 == unknown.size() ? left / u.ports : 1;
    if (!u.is_list) size = std::max<std::int64_t>(1, size);
    left = std::max<std::int64_t>(0, left - size * u.ports);
    if (u.is_list) {
      node.attrs.set(u.attr, std::vector<DType>(static_cast<std::size_t>(size)));
    } else {
      node.attrs.set(u.attr, size);
    }
  }
}

/// A type attribute, or an element of one, whose dtype is to be inferred.
struct Slot {
  int node = -1;
  const TypeAttr* attr = nullptr;
  int index = -1;
  std::vector<Value> inputs;  ///< the values it types
  std::optional<DType> dtype;
};

constexpr int k_no_slot = -1;

class Inference {
 public:
  Inference(Graph& graph, Diagnostics& diagnostics)
      : graph_(graph), diagnostics_(diagnostics), nodes_(static_cast<std::size_t>(graph.size())) {
    const std::vector<int> used = used_outputs(graph);
    for (int id = 0; id < graph.size(); ++id) open(id, used[static_cast<std::size_t>(id)]);
    for (int id = 0; id < graph.size(); ++id) {
      if (graph.node(id).def != nullptr) collect_inputs(id);
    }
    ask_consumers();
  }

  /// Each slot takes the dtype of its first typed input. Every dtype found is propagated to the
  /// slots that depend on it, so the time is linear in the number of ports.
  void run() {
    followers_.resize(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      for (const Value& input : slots_[i].inputs) {
        const int producer = producer_of(input);
        if (producer != k_no_slot) {
          followers_[static_cast<std::size_t>(producer)].push_back(static_cast<int>(i));
        } else if (known_dtype(input)) {
          partly_known_.insert(static_cast<int>(i));
        }
      }
      if (slots_[i].inputs.empty()) {
        set(static_cast<int>(i), slots_[i].attr->default_dtype.value_or(DType::float32));
      } else if (const std::optional<DType> first = dtype(slots_[i].inputs.front())) {
        set(static_cast<int>(i), *first);
      }
    }
    spread();
    // The remaining slots are on a loop: take the dtype of any typed input, else the default.
    for (int slot = stuck(); slot != k_no_slot; slot = stuck()) {
      settle(slot);
      spread();
    }
    write_back();
  }

 private:
  /// The slots of one type attribute of a node, which follow each other.
  struct SlotRange {
    const TypeAttr* attr = nullptr;
    int first = k_no_slot;
    int size = 0;
  };
  struct NodeInfo {
    std::vector<PortType> in;
    std::vector<PortType> out;
    std::vector<std::optional<DType>> asked;  ///< outputs of an op without def
    std::vector<SlotRange> slots;
  };

  NodeInfo& facts(int id) { return nodes_[static_cast<std::size_t>(id)]; }
  Slot& slot(int index) { return slots_[static_cast<std::size_t>(index)]; }

  void open(int id, int used) {
    Node& node = graph_.node(id);
    NodeInfo& f = facts(id);
    if (!take_ports(node, used)) used = 1;
    if (node.def == nullptr) {
      open_unknown(node, f, used);
      return;
    }
    const auto given =
        mapped<std::string>(node.attrs, [](const auto& entry) { return entry.first; });
    size_ports(node, node.def->inputs, static_cast<int>(node.inputs.size()));
    size_ports(node, node.def->outputs, used);
    for (const TypeAttr& type : node.def->types) {
      if (contains(given, type.name)) continue;
      int size = 1;
      if (type.is_list) {
        if (node.attrs.find(type.name) == nullptr) node.attrs.set(type.name, std::vector<DType>{});
        size = static_cast<int>(node.attrs.get<std::vector<DType>>(type.name).size());
      }
      f.slots.push_back({&type, static_cast<int>(slots_.size()), size});
      for (int i = 0; i < size; ++i) {
        slots_.push_back({id, &type, type.is_list ? i : -1, {}, std::nullopt});
      }
    }
    f.in = input_port_types(*node.def, node.attrs);
    f.out = output_port_types(*node.def, node.attrs);
  }

  /// Charges the ports that a count attribute or the index of a used output gives the node: a short
  /// text can declare many of them. False, with an error, when the graph has too many; the count
  /// attributes are then erased.
  bool take_ports(Node& node, int used) {
    constexpr std::int64_t k_free = 16;  // of each node
    std::int64_t ports = used;
    std::vector<std::string> counts;
    for (const auto& entry : node.attrs) {
      if (node.def == nullptr || !node.def->is_count(entry.first)) continue;
      counts.push_back(entry.first);
      ports += node.attrs.get<std::int64_t>(entry.first);
    }
    const std::int64_t taken = std::max<std::int64_t>(0, ports - k_free);
    if (taken <= ports_left_) {
      ports_left_ -= taken;
      return true;
    }
    for (const std::string& attr : counts) node.attrs.erase(attr);
    diagnostics_.error(
        node.origin.where,
        fmt::format("'{}' has {} ports; beyond {} a node, the nodes of a graph may have {} in all",
                    node.name,
                    ports,
                    k_free,
                    k_max_extra_ports));
    return false;
  }

  /// A function may declare its output types by an attribute Tout.
  void open_unknown(const Node& node, NodeInfo& f, int used) {
    f.asked.resize(static_cast<std::size_t>(std::max(1, used)));
    const AttrValue* given = node.attrs.find("Tout");
    const auto* dtypes = given != nullptr ? std::get_if<std::vector<DType>>(given) : nullptr;
    if (dtypes == nullptr) return;
    f.asked.resize(std::max(f.asked.size(), dtypes->size()));
    std::copy(dtypes->begin(), dtypes->end(), f.asked.begin());
  }

  void collect_inputs(int id) {
    const Node& node = graph_.node(id);
    const std::vector<PortType>& in = facts(id).in;
    for (std::size_t i = 0; i < std::min(in.size(), node.inputs.size()); ++i) {
      const int typed_by = slot_of(id, in[i]);
      if (typed_by != k_no_slot && node.inputs[i].valid()) {
        slot(typed_by).inputs.push_back(node.inputs[i]);
      }
    }
  }

  /// Outputs of ops without def take the dtypes that their consumers declare.
  void ask_consumers() {
    for (int id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      const std::vector<PortType>& in = facts(id).in;
      for (std::size_t i = 0; i < std::min(in.size(), node.inputs.size()); ++i) {
        const Value from = node.inputs[i];
        if (!from.valid() || graph_.node(from.node).def != nullptr) continue;
        std::vector<std::optional<DType>>& asked = facts(from.node).asked;
        const auto port = static_cast<std::size_t>(from.port);
        if (port >= asked.size() || asked[port]) continue;
        if (slot_of(id, in[i]) == k_no_slot) asked[port] = dtype_of(in[i], node.attrs);
      }
    }
  }

  /// The slot that types a port of a node, or k_no_slot.
  int slot_of(int id, const PortType& port) {
    for (const SlotRange& range : facts(id).slots) {
      if (range.attr->name != port.attr) continue;
      const int index = range.attr->is_list ? port.index : 0;
      return index >= 0 && index < range.size ? range.first + index : k_no_slot;
    }
    return k_no_slot;
  }

  /// The slot that types a value, or k_no_slot.
  int producer_of(Value value) {
    const std::vector<PortType>& out = facts(value.node).out;
    const auto port = static_cast<std::size_t>(value.port);
    return port < out.size() ? slot_of(value.node, out[port]) : k_no_slot;
  }

  /// The dtype of a value that no slot types; nothing when an attribute for it is missing.
  std::optional<DType> known_dtype(Value value) {
    const auto port = static_cast<std::size_t>(value.port);
    const NodeInfo& f = facts(value.node);
    const Node& node = graph_.node(value.node);
    if (node.def == nullptr) {
      return port < f.asked.size() ? f.asked[port].value_or(DType::float32) : DType::float32;
    }
    if (port >= f.out.size()) return DType::float32;
    return dtype_of(f.out[port], node.attrs);
  }

  std::optional<DType> dtype(Value value) {
    const int producer = producer_of(value);
    return producer != k_no_slot ? slot(producer).dtype : known_dtype(value);
  }

  void set(int index, DType dtype) {
    slot(index).dtype = dtype;
    queue_.push_back(index);
  }

  void spread() {
    while (!queue_.empty()) {
      const int from = queue_.front();
      queue_.pop_front();
      for (const int index : followers_[static_cast<std::size_t>(from)]) {
        if (slot(index).dtype) continue;
        partly_known_.insert(index);
        if (producer_of(slot(index).inputs.front()) == from) set(index, *slot(from).dtype);
      }
    }
  }

  /// The first slot without dtype that has an input with one, else the first without dtype.
  int stuck() {
    while (!partly_known_.empty()) {
      const int index = *partly_known_.begin();
      if (!slot(index).dtype) return index;
      partly_known_.erase(partly_known_.begin());
    }
    while (first_open_ < slots_.size() && slots_[first_open_].dtype) ++first_open_;
    return first_open_ < slots_.size() ? static_cast<int>(first_open_) : k_no_slot;
  }

  void settle(int index) {
    for (const Value& input : slot(index).inputs) {
      if (const std::optional<DType> known = dtype(input)) {
        set(index, *known);
        return;
      }
    }
    set(index, slot(index).attr->default_dtype.value_or(DType::float32));
  }

  void write_back() {
    for (int id = 0; id < graph_.size(); ++id) {
      Node& node = graph_.node(id);
      const NodeInfo& f = facts(id);
      for (const SlotRange& range : f.slots) {
        if (!range.attr->is_list) {
          node.attrs.set(range.attr->name, *slot(range.first).dtype);
          continue;
        }
        std::vector<DType> list;
        for (int i = 0; i < range.size; ++i) list.push_back(*slot(range.first + i).dtype);
        node.attrs.set(range.attr->name, std::move(list));
      }
      if (node.def == nullptr) {
        for (const auto& asked : f.asked)
          node.outputs.push_back({asked.value_or(DType::float32), Shape{}});
        continue;
      }
      for (const PortType& port : f.out) {
        node.outputs.push_back({dtype_of(port, node.attrs).value_or(DType::float32), Shape{}});
      }
    }
  }

  Graph& graph_;
  Diagnostics& diagnostics_;
  std::vector<NodeInfo> nodes_;
  std::vector<Slot> slots_;
  std::vector<std::vector<int>> followers_;  ///< of each slot: slots with an input that it types
  std::set<int> partly_known_;               ///< slots with an input whose dtype is known
  std::size_t first_open_ = 0;               ///< no slot before it is without dtype
  std::deque<int> queue_;                    ///< slots whose dtype is to be passed on
  std::int64_t ports_left_ = k_max_extra_ports;
};

}  // namespace

void infer_types(Graph& graph, Diagnostics& diagnostics) { Inference(graph, diagnostics).run(); }

}  // namespace halfstep::graph
