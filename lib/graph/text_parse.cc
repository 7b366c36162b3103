#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "core/ranges.h"
#include "graph/text.h"
#include "graph/text_attr.h"
#include "graph/text_raw.h"

namespace halfstep::graph {
namespace {

constexpr std::int64_t k_max_ports = 65536;
constexpr std::size_t k_max_named = 20;  ///< nodes of a cycle shown in the message

template <class E, std::size_t N>
constexpr std::array<E, N> first_values() {
  std::array<E, N> values{};
  for (std::size_t i = 0; i < N; ++i) values[i] = static_cast<E>(i);
  return values;
}

constexpr auto k_phases = first_values<Phase, 8>();
constexpr auto k_roles = first_values<Role, 8>();

class Parser {
 public:
  Parser(RawGraph raw, const OpTable& ops, Diagnostics& diagnostics)
      : raw_(std::move(raw)), ops_(ops), diagnostics_(diagnostics) {}

  ParsedGraph run() {
    for (const RawName& function : raw_.functions) parsed_.functions.insert(function.name);
    for (const RawNode& node : raw_.nodes) add_node(node);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      connect(parsed_.graph.node(static_cast<int>(i)), *sources_[i]);
    }
    for (const RawName& name : raw_.preserved) {
      const int id = find(name.name, name.where);
      if (id >= 0) parsed_.graph.node(id).preserve = true;
    }
    for (const RawKernel& kernel : raw_.no_kernel) add_no_kernel(kernel);
    for (const RawVariable& variable : raw_.variables) add_variable(variable);
    infer_types(parsed_.graph, diagnostics_);
    for (std::size_t i = 0; i < sources_.size(); ++i) finish(static_cast<int>(i));
    for (const RawResult& result : raw_.results) add_result(result);
    check_cycles();
    return std::move(parsed_);
  }

 private:
  void error(const Where& where, std::string message, std::string hint = {}) {
    if (diagnostics_.problems().size() > k_max_problems) return;
    diagnostics_.error(where, std::move(message), std::move(hint));
  }

  int find(const std::string& name, const Where& where) {
    const int id = parsed_.graph.find(name);
    if (id >= 0) return id;
    // The search for the nearest name is slow in a long file of errors.
    std::vector<std::string> known;
    if (diagnostics_.problems().size() < 20) {
      for (const RawNode& node : raw_.nodes) known.push_back(node.name);
    }
    error(where, fmt::format("there is no node '{}'", name), did_you_mean(name, known));
    return -1;
  }

  void add_node(const RawNode& raw) {
    const int first = parsed_.graph.find(raw.name);
    if (first >= 0) {
      error(raw.where,
            fmt::format("a second node '{}' (the first is on line {})",
                        raw.name,
                        parsed_.graph.node(first).origin.where.line));
      return;
    }
    Node node;
    node.name = raw.name;
    node.op = raw.op;
    node.def = parsed_.functions.contains(raw.op) ? nullptr : ops_.find(raw.op);
    node.device = raw.device;
    node.origin.where = raw.where;
    for (const RawAttr& attr : raw.attrs) add_attr(node, attr);
    parsed_.graph.add(std::move(node));
    sources_.push_back(&raw);
  }

  void add_attr(Node& node, const RawAttr& raw) {
    if (raw.name == "_shape") return;  // needs the outputs; see finish()
    if (raw.name == "_layer") {
      node.origin.layer = raw.value.text;
      return;
    }
    if (raw.name == "_phase") {
      read_word(raw.value, k_phases, node.origin.phase);
      return;
    }
    if (node.attrs.find(raw.name) != nullptr) {
      error(raw.where, fmt::format("attribute '{}' is given twice", raw.name));
      return;
    }
    if (diagnostics_.problems().size() > k_max_problems) return;
    const std::optional<AttrValue> value = read_attr(raw, node.def, diagnostics_);
    if (!value) return;
    if (node.def != nullptr && node.def->is_count(raw.name)) {
      const auto* count = std::get_if<std::int64_t>(&*value);
      if (count == nullptr || *count < 0 || *count > k_max_ports) {
        error(raw.value.where,
              fmt::format(
                  "'{}' must be from 0 to {}, got {}", raw.name, k_max_ports, raw.value.text));
        return;
      }
    }
    node.attrs.set(raw.name, *value);
  }

  template <class E, std::size_t N>
  void read_word(const RawValue& raw, const std::array<E, N>& values, E& result) {
    std::vector<std::string> known;
    for (E value : values) {
      if (raw.text == name(value)) {
        result = value;
        return;
      }
      known.emplace_back(name(value));
    }
    error(raw.where,
          fmt::format("'{}' is none of {}", raw.text, fmt::join(known, ", ")),
          did_you_mean(raw.text, known));
  }

  void connect(Node& node, const RawNode& raw) {
    for (const RawReference& input : raw.inputs) {
      const int id = find(input.name, input.where);
      if (input.control) {
        if (id >= 0) node.control.push_back(id);
      } else {
        node.inputs.push_back({id, input.port});
      }
    }
  }

  void add_no_kernel(const RawKernel& raw) {
    const std::optional<DType> dtype = dtype_named(raw.dtype.name);
    if (!dtype) error(raw.dtype.where, fmt::format("'{}' is not a dtype", raw.dtype.name));
    if (ops_.find(raw.op.name) == nullptr && !parsed_.functions.contains(raw.op.name)) {
      const auto known = mapped<std::string>(ops_.all(), &OpDef::name);
      error(raw.op.where,
            fmt::format("there is no op '{}'", raw.op.name),
            did_you_mean(raw.op.name, known));
    } else if (dtype) {
      parsed_.no_kernel.emplace(raw.op.name, *dtype);
    }
  }

  void add_variable(const RawVariable& raw) {
    Variable variable;
    variable.name = raw.name.name;
    if (!variable_names_.insert(variable.name).second) {
      error(raw.name.where, fmt::format("a second variable '{}'", variable.name));
      return;
    }
    for (const RawAttr& attr : raw.attrs) {
      if (!read_variable_attr(attr, variable)) {
        error(attr.where, fmt::format("'{}' of a variable is wrong or unknown", attr.name));
      }
    }
    parsed_.graph.variables().push_back(std::move(variable));
  }

  bool read_variable_attr(const RawAttr& attr, Variable& variable) {
    const auto take = [](auto value, auto& target) {
      if (value) target = static_cast<std::remove_reference_t<decltype(target)>>(*value);
      return value.has_value();
    };
    const RawValue& value = attr.value;
    if (attr.name == "dtype") return take(dtype_named(value.text), variable.type.dtype);
    if (attr.name == "shape") return take(read_shape(value), variable.type.shape);
    if (attr.name == "trainable") return take(read_boolean(value), variable.trainable);
    if (attr.name == "a") return take(read_real(value), variable.initializer.a);
    if (attr.name == "b") return take(read_real(value), variable.initializer.b);
    if (attr.name == "seed") return take(read_integer(value), variable.initializer.seed);
    if (attr.name == "ones_begin")
      return take(read_integer(value), variable.initializer.ones_begin);
    if (attr.name == "ones_end") return take(read_integer(value), variable.initializer.ones_end);
    const auto slice = [&]() -> Slice& {
      return variable.slice ? *variable.slice : variable.slice.emplace();
    };
    if (attr.name == "slice_of") {
      slice().tensor = value.text;
      return true;
    }
    if (attr.name == "whole") return take(read_shape(value), slice().full_shape);
    if (attr.name == "begin") return take(read_integer(value), slice().begin);
    if (attr.name == "layer") {
      variable.layer = value.text;
      return true;
    }
    if (attr.name == "role") {
      read_word(value, k_roles, variable.role);
      return true;
    }
    if (attr.name == "init") {
      const auto it = std::ranges::find(k_initializer_kinds, value.text);
      variable.initializer.kind = static_cast<Initializer::Kind>(it - k_initializer_kinds.begin());
      return it != k_initializer_kinds.end();
    }
    return false;
  }

  void add_result(const RawResult& raw) {
    const int id = find(raw.value.name, raw.value.where);
    if (id >= 0 && check_port({id, raw.value.port}, raw.value.where)) {
      parsed_.graph.fetches().emplace_back(raw.name.name, Value{id, raw.value.port});
    }
  }

  bool check_port(Value value, const Where& where) {
    const Node& from = parsed_.graph.node(value.node);
    if (static_cast<std::size_t>(value.port) < from.outputs.size() || from.def == nullptr) {
      return true;
    }
    error(where,
          fmt::format("there is no '{}:{}': {} has {} output{}",
                      from.name,
                      value.port,
                      from.op,
                      from.outputs.size(),
                      from.outputs.size() == 1 ? "" : "s"));
    return false;
  }

  /// The checks that need every node's outputs: ports and shapes.
  void finish(int id) {
    Node& node = parsed_.graph.node(id);
    const RawNode& raw = *sources_[static_cast<std::size_t>(id)];
    std::size_t data = 0;
    for (const RawReference& input : raw.inputs) {
      if (input.control) continue;
      const Value value = node.inputs[data++];
      if (value.valid()) check_port(value, input.where);
    }
    for (const RawAttr& attr : raw.attrs) {
      if (attr.name != "_shape") continue;
      bool good = attr.value.items.size() == node.outputs.size();
      for (std::size_t i = 0; good && i < node.outputs.size(); ++i) {
        const std::optional<Shape> shape = read_shape(attr.value.items[i]);
        good = shape.has_value();
        if (good) node.outputs[i].shape = *shape;
      }
      if (!good) error(attr.where, "'_shape' must be a list of shapes, one for each output");
    }
  }

  /// Loop ops hold the only back edges: out of NextIteration or into Merge.
  void check_cycles() {
    const Graph& graph = parsed_.graph;
    enum : char { fresh, open, closed };
    std::vector<char> state(static_cast<std::size_t>(graph.size()), fresh);
    struct Visit {
      int id;
      std::size_t next = 0;
    };
    for (int root = 0; root < graph.size(); ++root) {
      if (state[static_cast<std::size_t>(root)] != fresh) continue;
      std::vector<Visit> path{{root}};
      state[static_cast<std::size_t>(root)] = open;
      while (!path.empty()) {
        const Node& node = graph.node(path.back().id);
        const std::size_t data = node.op == "Merge" ? 0 : node.inputs.size();
        const std::size_t at = path.back().next++;
        if (at == data + node.control.size()) {
          state[static_cast<std::size_t>(path.back().id)] = closed;
          path.pop_back();
          continue;
        }
        const int from = at < data ? node.inputs[at].node : node.control[at - data];
        if (from < 0 || graph.node(from).op == "NextIteration") continue;
        char& reached = state[static_cast<std::size_t>(from)];
        if (reached == open) {
          std::vector<std::string> names{graph.node(from).name};
          for (std::size_t i = path.size(); i-- > 0 && path[i].id != from;) {
            if (names.size() == k_max_named) {
              names.emplace_back("...");
              break;
            }
            names.push_back(graph.node(path[i].id).name);
          }
          names.push_back(graph.node(from).name);
          error(graph.node(from).origin.where,
                fmt::format("a cycle that passes no loop op: {}", fmt::join(names, " -> ")));
        } else if (reached == fresh) {
          reached = open;
          path.push_back({from});
        }
      }
    }
  }

  RawGraph raw_;
  const OpTable& ops_;
  Diagnostics& diagnostics_;
  ParsedGraph parsed_;
  std::vector<const RawNode*> sources_;  ///< of each node of the graph
  std::unordered_set<std::string> variable_names_;
};

}  // namespace

ParsedGraph parse_graph(std::string_view text, std::string_view file_name, const OpTable& ops) {
  Diagnostics diagnostics;
  RawGraph raw = read_raw(text, file_name, diagnostics);
  ParsedGraph parsed = Parser(std::move(raw), ops, diagnostics).run();
  diagnostics.throw_if_any(ErrorKind::config);
  return parsed;
}

}  // namespace halfstep::graph
