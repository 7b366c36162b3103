#include "precision/casts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "core/ranges.h"
#include "precision/paint.h"

namespace halfstep::precision {
namespace {

using graph::Graph;
using graph::Node;

/// Ops whose casts TensorFlow does not count.
constexpr std::array<std::string_view, 8> k_uncounted{"Const",
                                                      "Variable",
                                                      "VariableV2",
                                                      "AutoReloadVariable",
                                                      "VarHandleOp",
                                                      "ReadVariableOp",
                                                      "_VarHandlesOp",
                                                      "_ReadVariablesOp"};

class Planner {
 public:
  Planner(const Graph& graph,
          const TypeGraph& types,
          const std::vector<bool>& allow,
          DType target,
          bool emulate)
      : graph_(graph), types_(types), allow_(allow), target_(target), emulate_(emulate) {
    readers_.resize(at(graph.size()));
    for (int id = 0; id < graph.size(); ++id) {
      readers_[at(id)].resize(types.outputs[at(id)].size());
    }
    for (int id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(id);
      plan_.inputs.push_back(node.inputs);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        readers(node.inputs[i]).push_back({id, static_cast<int>(i)});
      }
    }
  }

  CastPlan run() {
    for (int id = 0; id < graph_.size(); ++id) {
      for (int v = types_.first[at(id)]; v < types_.first[at(id) + 1]; ++v) {
        if (types_.vertex(v).dtype == DType::float32) visit(id, v);
      }
    }
    return std::move(plan_);
  }

 private:
  /// Input `input` of a node or cast (numbered as in CastSource).
  struct Reader {
    int id;
    int input;
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  bool is_cast(int id) const { return id >= graph_.size(); }
  PlannedCast& cast(int id) { return plan_.casts[at(id - graph_.size())]; }
  std::vector<Reader>& readers(CastSource source) {
    return readers_[at(source.node)][at(source.port)];
  }

  /// A cast that reads belongs to an allowed vertex already: only emulation makes them.
  bool wants_half(const Reader& reader) const {
    return is_cast(reader.id) || allow_[at(types_.inputs[at(reader.id)][at(reader.input)])];
  }

  void visit(int id, int v) {
    const bool allowed = allow_[at(v)];
    std::vector<CastSource> borders;
    if (allowed && emulate_) {
      emulate(id, v, borders);
    } else {
      if (allowed) {
        if (types_.vertex(v).fixed) throw RewriteFailure("Failed to set type attribute");
        plan_.retyped.push_back(v);
      }
      borders = outputs_of(id, v);
    }
    for (CastSource source : borders) {
      std::vector<Reader> different;
      for (const Reader& reader : readers(source)) {
        if (wants_half(reader) != allowed) different.push_back(reader);
      }
      insert(source, !allowed, different);
    }
  }

  std::vector<CastSource> outputs_of(int id, int v) const {
    std::vector<CastSource> sources;
    const std::vector<int>& outputs = types_.outputs[at(id)];
    for (std::size_t port = 0; port < outputs.size(); ++port) {
      if (outputs[port] == v) sources.push_back({id, static_cast<int>(port)});
    }
    return sources;
  }

  /// The op computes in float32, between a cast to float32 at each input and a cast back at each
  /// output.
  void emulate(int id, int v, std::vector<CastSource>& borders) {
    const std::vector<int>& inputs = types_.inputs[at(id)];
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == v) insert(plan_.inputs[at(id)][i], false, {{id, static_cast<int>(i)}});
    }
    for (CastSource source : outputs_of(id, v)) {
      const int down = insert(source, true, readers(source));
      if (down >= 0) borders.push_back({down, 0});
    }
  }

  /// Inserts a cast between `source` and some of its readers; returns it, or -1 without readers.
  int insert(CastSource source, bool to_half, std::vector<Reader> moved) {
    if (moved.empty()) return -1;
    const int id = graph_.size() + static_cast<int>(plan_.casts.size());
    const std::string name = unique_name(source, to_half);
    plan_.casts.push_back({name, source, to_half});
    if (to_half && is_counted(source.node)) ++plan_.counted_casts;

    std::vector<Reader>& old = readers(source);
    std::erase_if(old, [&](const Reader& reader) {
      return std::ranges::any_of(
          moved, [&](const Reader& m) { return m.id == reader.id && m.input == reader.input; });
    });
    old.push_back({id, 0});
    for (const Reader& reader : moved) {
      if (is_cast(reader.id)) {
        cast(reader.id).source = {id, 0};
      } else {
        plan_.inputs[at(reader.id)][at(reader.input)] = {id, 0};
      }
    }
    readers_.push_back({std::move(moved)});
    return id;
  }

  bool is_counted(int id) const {
    if (is_cast(id)) return true;
    const Node& node = graph_.node(id);
    return !contains(k_uncounted, node.op) && !reads_ref_variable(graph_, node);
  }

  std::string unique_name(CastSource source, bool to_half) {
    const std::string& from =
        is_cast(source.node) ? cast(source.node).name : graph_.node(source.node).name;
    const std::string_view kind = !to_half                    ? "CastToFp32"
                                  : target_ == DType::float16 ? "CastToFp16"
                                                              : "CastToBf16";
    for (int k = 0;; ++k) {
      std::string name = fmt::format("{}-{}-{}-{}-AutoMixedPrecision", from, source.port, kind, k);
      if (graph_.find(name) < 0 && names_.insert(name).second) return name;
    }
  }

  const Graph& graph_;
  const TypeGraph& types_;
  const std::vector<bool>& allow_;
  DType target_;
  bool emulate_;
  CastPlan plan_;
  std::vector<std::vector<std::vector<Reader>>> readers_;  ///< by node or cast, by port
  std::set<std::string> names_;
};

}  // namespace

CastPlan plan_casts(const Graph& graph,
                    const TypeGraph& types,
                    const std::vector<bool>& allow,
                    DType target,
                    bool emulate) {
  return Planner(graph, types, allow, target, emulate).run();
}

}  // namespace halfstep::precision
