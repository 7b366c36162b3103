#include "precision/rewrite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/parse_number.h"
#include "core/printable.h"
#include "core/ranges.h"
#include "graph/op_def.h"
#include "graph/op_handles.h"
#include "graph/ports.h"
#include "precision/casts.h"

namespace halfstep::precision {
namespace {

using graph::Graph;
using graph::Node;
using graph::OpTable;

/// Names of CPUs whose vector or matrix units do not compute in float16.
bool is_cpu_without_float16(std::string_view arch) {
  static constexpr std::array<std::string_view, 6> k_names{
      "sse4", "avx2", "avx512", "avx512_bf16", "amx", "amx_bf16"};
  return contains(k_names, arch);
}

/// Why the device gates exclude the graph, or "".
std::string ruled_out(const RewriteOptions& options) {
  if (options.waive_device_gates) return {};
  if (options.mode == Mode::cuda) {
    if (options.device.arch.empty()) return "no GPU: the graph is left as it is";
    if (!options.ignore_performance && !is_suitable_gpu(options.device.arch)) {
      return fmt::format("no suitable GPU: {} is below compute capability 7.0",
                         options.device.arch);
    }
  }
  if (options.mode == Mode::fp16_cpu && is_cpu_without_float16(options.device.arch)) {
    return "this CPU has neither AMX-FP16 nor AVX-NE-CONVERT: the graph is left as it is";
  }
  return {};
}

/// Whether a node is assigned to the kind of device that the mode rewrites.
bool on_device(const Node& node, const RewriteOptions& options) {
  if (options.waive_device_gates || node.device.empty()) return true;
  std::string_view device = node.device;
  const std::size_t slash = device.rfind('/');
  if (slash != std::string_view::npos) device.remove_prefix(slash + 1);
  return lower_case(device).find(options.mode == Mode::cuda ? "gpu" : "cpu") != std::string::npos;
}

std::vector<bool> processed_nodes(const Graph& graph, const RewriteOptions& options) {
  std::vector<bool> processed;
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    processed.push_back(!node.preserve && on_device(node, options));
  }
  return processed;
}

/// FusedBatchNorm has one type attribute for data and statistics; V2 has two.
void upgrade_batch_norms(Graph& graph, const OpTable& ops, const std::vector<bool>& processed) {
  for (int id = 0; id < graph.size(); ++id) {
    Node& node = graph.node(id);
    if (!processed[static_cast<std::size_t>(id)]) continue;
    if (!node.is(graph::ops::k_fused_batch_norm, graph::ops::k_fused_batch_norm_grad)) continue;
    node.op += "V2";
    node.def = ops.find(node.op);
    node.attrs.set("U", DType::float32);
  }
}

void retype(Graph& graph, const Vertex& vertex, DType target) {
  Node& node = graph.node(vertex.node);
  if (vertex.index < 0) {
    node.attrs.set(vertex.attr, target);
  } else {
    auto list = node.attrs.get<std::vector<DType>>(vertex.attr);
    list[static_cast<std::size_t>(vertex.index)] = target;
    node.attrs.set(vertex.attr, std::move(list));
  }
  const std::vector<graph::PortType> ports = graph::output_port_types(*node.def, node.attrs);
  for (std::size_t i = 0; i < ports.size() && i < node.outputs.size(); ++i) {
    node.outputs[i].dtype = graph::dtype_of(ports[i], node.attrs).value_or(node.outputs[i].dtype);
  }
}

/// Builds the rewritten graph: the old nodes in their order, every cast right before the first of
/// its consumers after its producer.
class Assembler {
 public:
  Assembler(const Graph& old, const CastPlan& plan, const OpTable& ops, DType target)
      : old_(old),
        plan_(plan),
        cast_def_(ops.find("Cast")),
        target_(target),
        readers_(plan.casts.size()),
        before_(static_cast<std::size_t>(old.size()) + 1),
        new_id_(static_cast<std::size_t>(old.size()) + plan.casts.size(), -1) {}

  void run(RewriteResult& result) {
    for (int id = 0; id < old_.size(); ++id) {
      for (const CastSource& input : plan_.inputs[at(id)]) add_reader(input, id);
    }
    for (std::size_t c = 0; c < plan_.casts.size(); ++c) {
      add_reader(plan_.casts[c].source, old_.size() + static_cast<int>(c));
    }
    for (std::size_t c = 0; c < plan_.casts.size(); ++c) {
      before_[at(insertion_point(static_cast<int>(c)))].push_back(static_cast<int>(c));
    }
    for (int id = 0; id < old_.size(); ++id) {
      for (int c : before_[at(id)]) add_cast(c);
      new_id_[at(id)] = graph_.add(old_.node(id));
    }
    for (int c : before_[at(old_.size())]) add_cast(c);
    connect();
    graph_.variables() = old_.variables();
    for (const auto& [name, value] : old_.fetches()) {
      graph_.fetches().emplace_back(name, moved(value));
    }
    report(result);
    result.graph = std::move(graph_);
    result.nodes.assign(new_id_.begin(), new_id_.begin() + old_.size());
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  bool is_cast(int id) const { return id >= old_.size(); }
  const PlannedCast& cast(int id) const { return plan_.casts[at(id - old_.size())]; }

  void add_reader(const CastSource& source, int id) {
    if (!is_cast(source.node)) return;
    std::vector<int>& readers = readers_[at(source.node - old_.size())];
    if (readers.empty() || readers.back() != id) readers.push_back(id);
  }

  /// The node whose output a cast or a chain of casts converts.
  graph::Value origin(CastSource source) const {
    while (is_cast(source.node)) source = cast(source.node).source;
    return source;
  }

  /// The old node before which cast `c` is inserted.
  int insertion_point(int c) const {
    const int producer = origin({old_.size() + c, 0}).node;
    int first = old_.size();
    for (int reader : readers_[at(c)]) {
      const int stand = is_cast(reader) ? insertion_point(reader - old_.size()) : reader;
      if (stand > producer) first = std::min(first, stand);
    }
    return first == old_.size() ? producer + 1 : first;
  }

  void add_cast(int c) {
    int& id = new_id_[at(old_.size() + c)];
    if (id >= 0) return;
    const PlannedCast& planned = plan_.casts[at(c)];
    if (is_cast(planned.source.node)) add_cast(planned.source.node - old_.size());
    const graph::Value producer = origin(planned.source);
    const Node& from = old_.node(producer.node);
    Node node;
    node.name = planned.name;
    node.op = "Cast";
    node.def = cast_def_;
    node.attrs = {{"SrcT", planned.to_half ? DType::float32 : target_},
                  {"DstT", planned.to_half ? target_ : DType::float32},
                  {"Truncate", false}};
    node.outputs = {{node.attrs.get<DType>("DstT"), from.outputs[at(producer.port)].shape}};
    node.device = from.device;
    const int reader = readers_[at(c)].empty() ? producer.node : readers_[at(c)].front();
    node.origin = planned.to_half && !is_cast(reader) ? old_.node(reader).origin : from.origin;
    node.origin.composite = nullptr;
    node.origin.reason = fmt::format("the rewrite casts {} for its readers", from.name);
    id = graph_.add(std::move(node));
  }

  graph::Value moved(CastSource source) const { return {new_id_[at(source.node)], source.port}; }

  void connect() {
    for (int id = 0; id < old_.size(); ++id) {
      Node& node = graph_.node(new_id_[at(id)]);
      node.inputs.clear();
      for (const CastSource& input : plan_.inputs[at(id)]) node.inputs.push_back(moved(input));
      for (int& control : node.control) control = new_id_[at(control)];
    }
    for (std::size_t c = 0; c < plan_.casts.size(); ++c) {
      Node& node = graph_.node(new_id_[at(old_.size()) + c]);
      node.inputs = {moved(plan_.casts[c].source)};
    }
  }

  void report(RewriteResult& result) const {
    for (std::size_t c = 0; c < plan_.casts.size(); ++c) {
      InsertedCast inserted;
      inserted.node = new_id_[at(old_.size()) + c];
      const Node& node = graph_.node(inserted.node);
      inserted.name = node.name;
      inserted.from = node.attrs.get<DType>("SrcT");
      inserted.to = node.attrs.get<DType>("DstT");
      const graph::Value input = node.inputs[0];
      inserted.input = fmt::format("{}:{}", graph_.node(input.node).name, input.port);
      std::vector<int> readers;
      for (int reader : readers_[c]) readers.push_back(new_id_[at(reader)]);
      std::ranges::sort(readers);
      for (int reader : readers) inserted.consumers.push_back(graph_.node(reader).name);
      result.casts.push_back(std::move(inserted));
    }
  }

  const Graph& old_;
  const CastPlan& plan_;
  const graph::OpDef* cast_def_;
  DType target_;
  Graph graph_;
  std::vector<std::vector<int>> readers_;  ///< of each cast: nodes, then casts
  std::vector<std::vector<int>> before_;   ///< casts in front of each old node
  std::vector<int> new_id_;                ///< of old nodes and casts
};

/// The paint of a graph that the device gates exclude, in which no node is processed. TensorFlow
/// skips such a graph, so an unknown op is no failure.
std::vector<PaintedVertex> untouched_paint(const Graph& graph, const RewriteOptions& options) {
  try {
    const std::vector<bool> none(static_cast<std::size_t>(graph.size()));
    TypeGraph types = build_type_graph(graph, options.functions);
    const OpLists lists;
    return paint({graph, types, lists, none, options.functions}).vertices;
  } catch (const RewriteFailure&) {
    return {};
  }
}

void run(Graph graph, const OpTable& ops, const RewriteOptions& options, RewriteResult& result) {
  for (const auto& [name, value] : graph.fetches()) graph.node(value.node).preserve = true;
  const std::string gate = ruled_out(options);
  if (!gate.empty()) {
    result.message = gate;
    result.paint = untouched_paint(graph, options);
    return;
  }
  const bool force_all = options.level == Level::unsafe_force_all;
  if (force_all && (options.mode == Mode::bf16 || options.mode == Mode::fp16_cpu)) {
    throw RewriteFailure(fmt::format(
        "level {} cannot be used with mode {}", name(options.level), name(options.mode)));
  }
  const std::string& arch = options.device.arch;
  const OpLists lists = make_lists(
      options.mode,
      {options.device.cuda_version, options.device.cudnn_version, arch.starts_with("gfx")},
      options.level,
      options.edits);
  const std::vector<std::string> conflicts = lists.conflicts();
  if (!conflicts.empty()) {
    throw RewriteFailure(
        fmt::format("Op lists have conflicting entries\n{}", fmt::join(conflicts, "\n")));
  }

  const std::vector<bool> processed = processed_nodes(graph, options);
  upgrade_batch_norms(graph, ops, processed);
  TypeGraph types = build_type_graph(graph, options.functions);
  PaintResult painting = paint({.graph = graph,
                                .types = types,
                                .lists = lists,
                                .processed = processed,
                                .functions = options.functions,
                                .target = options.target(),
                                .force_all = force_all,
                                .infer_follows = options.infer_follows(),
                                .supports = options.supports});
  CastPlan plan;
  if (painting.nothing_to_do) {
    result.status = RewriteStatus::nothing_to_do;
    result.message = "no op of the graph is on the allow list";
    for (int id = 0; id < graph.size(); ++id) plan.inputs.push_back(graph.node(id).inputs);
  } else {
    const bool emulate = options.mode == Mode::cpu && options.emulate;
    plan = plan_casts(graph, types, painting.allow, options.target(), emulate);
  }
  std::vector<bool> converted(static_cast<std::size_t>(graph.size()));
  for (int v : plan.retyped) {
    retype(graph, types.vertex(v), options.target());
    Node& node = graph.node(types.vertex(v).node);
    node.origin.reason = painting.vertices[static_cast<std::size_t>(v)].reason;
    converted[static_cast<std::size_t>(types.vertex(v).node)] = true;
  }
  result.converted_attrs = static_cast<int>(plan.retyped.size());
  result.nodes_converted = static_cast<int>(std::ranges::count(converted, true));
  result.casts_counted = plan.counted_casts;
  result.paint = std::move(painting.vertices);
  Assembler(graph, plan, ops, options.target()).run(result);
}

constexpr std::array<std::string_view, 3> k_statuses{"ok", "nothing_to_do", "failed"};

}  // namespace

std::span<const std::string_view> names_of(RewriteStatus) { return k_statuses; }
std::string_view name(RewriteStatus status) { return k_statuses[static_cast<std::size_t>(status)]; }

RewriteOptions training_options(DType target) {
  RewriteOptions options;
  options.mode = target == DType::bfloat16 ? Mode::bf16 : Mode::cuda;
  options.device.cuda_version = std::numeric_limits<int>::max();
  options.device.cudnn_version = std::numeric_limits<int>::max();
  options.waive_device_gates = true;
  return options;
}

RewriteResult rewrite(Graph graph, const OpTable& ops, const RewriteOptions& options) {
  RewriteResult result;
  result.graph = std::move(graph);
  for (int id = 0; id < result.graph.size(); ++id) result.nodes.push_back(id);
  try {
    run(result.graph, ops, options, result);
  } catch (const RewriteFailure& failure) {
    result.status = RewriteStatus::failed;
    result.message = failure.what();
  }
  return result;
}

bool is_suitable_gpu(std::string_view arch) {
  if (arch.starts_with("gfx")) {
    const std::string_view chip = arch.substr(0, arch.find(':'));
    return chip == "gfx906" || chip == "gfx908";
  }
  if (arch.starts_with("sm_")) {
    // sm_70 is 7.0, sm_100 is 10.0, sm_90a a variant of 9.0.
    arch.remove_prefix(3);
    while (!arch.empty() && arch.back() >= 'a' && arch.back() <= 'z') arch.remove_suffix(1);
    const std::optional<int> both = parse_number<int>(arch);
    return both && *both >= 70;
  }
  const std::size_t dot = arch.find('.');
  const std::optional<int> major = parse_number<int>(arch.substr(0, dot));
  if (!major) return false;
  if (dot == std::string_view::npos) return *major >= 7;
  std::string_view rest = arch.substr(dot + 1);
  const std::optional<int> minor = parse_number<int>(rest.substr(0, rest.find('.')));
  return minor && std::pair(*major, *minor) >= std::pair(7, 0);
}

}  // namespace halfstep::precision
