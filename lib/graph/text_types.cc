#include "graph/text_types.h"

#include <algorithm>
#include <deque>

#include "graph/ports.h"

namespace halfstep::graph {
namespace {

/// For each node: how many of its outputs are in use.
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

/// A count or list attribute that is not given, and how many ports of the signature it sizes.
struct Unknown {
  std::string attr;
  bool is_list = false;
  int ports = 0;
};

/// Sizes the unknown attributes of `ports` so that they make `wanted` ports in all.
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
    const auto it = std::find_if(
        unknown.begin(), unknown.end(), [&](const Unknown& u) { return u.attr == attr; });
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

/// A type attribute, or an element of one, whose dtype is looked for.
struct Slot {
  int node = -1;
  const TypeAttr* attr = nullptr;
  int index = -1;
  std::vector<Value> inputs;  ///< the values it types
  std::optional<DType> dtype;
};

class Inference {
 public:
  explicit Inference(Graph& graph) : graph_(graph), nodes_(static_cast<std::size_t>(graph.size())) {
    const std::vector<int> used = used_outputs(graph);
    for (int id = 0; id < graph.size(); ++id) open(id, used[static_cast<std::size_t>(id)]);
    for (int id = 0; id < graph.size(); ++id) {
      for (const Value& input : graph.node(id).inputs) {
        if (input.valid()) facts(input.node).users.push_back(id);
      }
      if (graph.node(id).def == nullptr) continue;
      for (int slot : facts(id).slots) collect_inputs(slots_[static_cast<std::size_t>(slot)]);
    }
    ask_consumers();
  }

  void run() {
    for (int id = 0; id < graph_.size(); ++id) queue_.push_back(id);
    for (Slot& slot : slots_) {
      if (slot.inputs.empty()) slot.dtype = slot.attr->default_dtype.value_or(DType::float32);
    }
    spread();
    // What is left hangs on a loop: take any typed input that is known, else the default.
    while (Slot* slot = stuck()) {
      settle(*slot);
      spread();
    }
    write_back();
  }

 private:
  struct Facts {
    std::vector<PortType> in;
    std::vector<PortType> out;
    std::vector<std::optional<DType>> asked;  ///< outputs of an op without def
    std::vector<int> slots;
    std::vector<int> users;
  };

  Facts& facts(int id) { return nodes_[static_cast<std::size_t>(id)]; }

  void open(int id, int used) {
    Node& node = graph_.node(id);
    Facts& f = facts(id);
    if (node.def == nullptr) {
      open_unknown(node, f, used);
      return;
    }
    std::vector<std::string> given;
    for (const auto& entry : node.attrs) given.push_back(entry.first);
    size_ports(node, node.def->inputs, static_cast<int>(node.inputs.size()));
    size_ports(node, node.def->outputs, used);
    for (const TypeAttr& type : node.def->types) {
      if (std::find(given.begin(), given.end(), type.name) != given.end()) continue;
      int size = 1;
      if (type.is_list) {
        if (node.attrs.find(type.name) == nullptr) node.attrs.set(type.name, std::vector<DType>{});
        size = static_cast<int>(node.attrs.get<std::vector<DType>>(type.name).size());
      }
      for (int i = 0; i < size; ++i) {
        f.slots.push_back(static_cast<int>(slots_.size()));
        slots_.push_back({id, &type, type.is_list ? i : -1, {}, std::nullopt});
      }
    }
    f.in = input_port_types(*node.def, node.attrs);
    f.out = output_port_types(*node.def, node.attrs);
  }

  /// A function may say its output types by an attribute Tout.
  void open_unknown(const Node& node, Facts& f, int used) {
    f.asked.resize(static_cast<std::size_t>(std::max(1, used)));
    const AttrValue* given = node.attrs.find("Tout");
    const auto* dtypes = given != nullptr ? std::get_if<std::vector<DType>>(given) : nullptr;
    if (dtypes == nullptr) return;
    f.asked.resize(std::max(f.asked.size(), dtypes->size()));
    std::copy(dtypes->begin(), dtypes->end(), f.asked.begin());
  }

  void collect_inputs(Slot& slot) {
    const Node& node = graph_.node(slot.node);
    const std::vector<PortType>& in = facts(slot.node).in;
    for (std::size_t i = 0; i < std::min(in.size(), node.inputs.size()); ++i) {
      if (in[i].attr == slot.attr->name && in[i].index == slot.index && node.inputs[i].valid()) {
        slot.inputs.push_back(node.inputs[i]);
      }
    }
  }

  /// Outputs of ops without def are what their consumers declare.
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
        if (slot_of(id, in[i]) == nullptr) asked[port] = dtype_of(in[i], node.attrs);
      }
    }
  }

  Slot* slot_of(int id, const PortType& port) {
    for (int index : facts(id).slots) {
      Slot& slot = slots_[static_cast<std::size_t>(index)];
      if (slot.attr->name == port.attr && slot.index == port.index) return &slot;
    }
    return nullptr;
  }

  std::optional<DType> dtype(Value value) {
    const auto port = static_cast<std::size_t>(value.port);
    Facts& f = facts(value.node);
    const Node& node = graph_.node(value.node);
    if (node.def == nullptr) {
      return port < f.asked.size() ? f.asked[port].value_or(DType::float32) : DType::float32;
    }
    if (port >= f.out.size()) return DType::float32;
    const Slot* slot = slot_of(value.node, f.out[port]);
    return slot != nullptr ? slot->dtype : dtype_of(f.out[port], node.attrs);
  }

  void set(Slot& slot, DType dtype) {
    slot.dtype = dtype;
    for (int user : facts(slot.node).users) queue_.push_back(user);
  }

  void spread() {
    while (!queue_.empty()) {
      const int id = queue_.front();
      queue_.pop_front();
      for (int index : facts(id).slots) {
        Slot& slot = slots_[static_cast<std::size_t>(index)];
        if (slot.dtype) continue;
        if (const std::optional<DType> first = dtype(slot.inputs.front())) set(slot, *first);
      }
    }
  }

  Slot* stuck() {
    for (Slot& slot : slots_) {
      if (slot.dtype) continue;
      for (const Value& input : slot.inputs) {
        if (dtype(input)) return &slot;
      }
    }
    for (Slot& slot : slots_) {
      if (!slot.dtype) return &slot;
    }
    return nullptr;
  }

  void settle(Slot& slot) {
    for (const Value& input : slot.inputs) {
      if (const std::optional<DType> known = dtype(input)) {
        set(slot, *known);
        return;
      }
    }
    set(slot, slot.attr->default_dtype.value_or(DType::float32));
  }

  void write_back() {
    for (const Slot& slot : slots_) {
      Attrs& attrs = graph_.node(slot.node).attrs;
      if (slot.index < 0) {
        attrs.set(slot.attr->name, *slot.dtype);
      } else {
        auto list = attrs.get<std::vector<DType>>(slot.attr->name);
        list[static_cast<std::size_t>(slot.index)] = *slot.dtype;
        attrs.set(slot.attr->name, std::move(list));
      }
    }
    for (int id = 0; id < graph_.size(); ++id) {
      Node& node = graph_.node(id);
      Facts& f = facts(id);
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
  std::vector<Facts> nodes_;
  std::vector<Slot> slots_;
  std::deque<int> queue_;
};

}  // namespace

void infer_types(Graph& graph) { Inference(graph).run(); }

}  // namespace halfstep::graph
