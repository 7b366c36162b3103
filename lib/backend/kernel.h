#pragma once
// A kernel is a registry entry: the op it implements, whether it accepts a node, and how it
// prepares a launch. accepts() needs no device; prepare() and the launch belong to the device.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/capabilities.h"
#include "core/error.h"
#include "core/tensor.h"
#include "graph/graph.h"
#include "graph/op_handles.h"

namespace halfstep::backend {

/// The properties of an op that a kernel may use. The op is a node of a graph, or one that a pass
/// could make. The view refers to the node.
struct NodeView {
  const graph::Node& node;

  NodeView(const graph::Graph& graph, const graph::Node& of)
      : node(of), inputs_(graph::inputs_of(graph, of)) {}
  explicit NodeView(const graph::OpInstance& op) : node(op.node), inputs_(op.inputs) {}

  const graph::TensorType& input(std::size_t i) const { return inputs_[i].type; }
  const graph::TensorType& output(std::size_t i = 0) const { return node.outputs[i]; }
  std::size_t inputs() const { return inputs_.size(); }
  std::size_t outputs() const { return node.outputs.size(); }
  const graph::Attrs& attrs() const { return node.attrs; }
  /// The node that computes input `i`. Errors: InternalError when there is none.
  const graph::Node& producer(std::size_t i) const {
    require(inputs_[i].producer != nullptr, "input {} of {} is not known", i, node.op);
    return *inputs_[i].producer;
  }
  bool is_produced_by(std::size_t i, graph::OpHandle op) const {
    return inputs_[i].producer != nullptr && inputs_[i].producer->is(op);
  }
  /// The integers of input `i` when it is a Const, else nothing.
  std::optional<std::vector<std::int64_t>> constant(std::size_t i) const {
    return i < inputs() ? inputs_[i].constant() : std::nullopt;
  }

 private:
  std::vector<graph::OpInput> inputs_;
};

/// The answer of a kernel: yes, or a short reason for no ("K is not a multiple of 32").
struct Accepts {
  std::string refusal;

  static Accepts yes() { return {}; }
  static Accepts no(std::string why) { return {std::move(why)}; }
  explicit operator bool() const { return refusal.empty(); }
};

/// The memory of one launch. Variable handles are passed as views of the variable, which is
/// writable, as are outputs and workspace. Shapes and dtypes are those of prepare().
struct Args {
  std::span<const TensorView> in;
  std::span<const TensorView> out;
  std::byte* workspace = nullptr;
};

/// How a library computes a launch.
struct Algorithm {
  std::string text = {};                  ///< "algorithm 66 tile 20 ..., bias and ReLU fused"
  std::optional<bool> tensor_cores = {};  ///< nothing where the library does not say
};

/// A prepared kernel. run() neither allocates nor throws, except that a wait for other ranks throws
/// comm::RankLost.
class Launch {
 public:
  virtual ~Launch() = default;
  virtual void run(const Args& args) = 0;
  /// Nothing for kernels that have one algorithm.
  virtual std::optional<Algorithm> algorithm() const { return std::nullopt; }
};

struct Prepared {
  std::unique_ptr<Launch> launch;
  std::size_t workspace_bytes = 0;
};

/// A Launch from a callable `void(const Args&)`.
template <class F>
Prepared launch(F f, std::size_t workspace_bytes = 0) {
  class Wrapped final : public Launch {
   public:
    explicit Wrapped(F g) : f_(std::move(g)) {}
    void run(const Args& args) override { f_(args); }

   private:
    F f_;
  };
  return {std::make_unique<Wrapped>(std::move(f)), workspace_bytes};
}

struct Kernel {
  std::string_view op;    ///< "MatMul"
  std::string_view name;  ///< "onednn/matmul": technique and file
  Accepts (*accepts)(const NodeView& node, const Capabilities& capabilities) = nullptr;
  Prepared (*prepare)(const NodeView& node, const Capabilities& capabilities) = nullptr;
  /// Bit i: output 0 may share the memory of input i (elementwise, same shape and element size).
  unsigned inplace = 0;
  /// Plain loops, against which other kernels are tested. A pass does not fuse ops into an op that
  /// only a reference kernel runs.
  bool reference = false;
  /// Converts whole 16-bit operands to float32, computes on these and rounds the result: the op in
  /// float32 between casts has the same bits.
  bool widens = false;
  /// A float32 kernel that is faster than one that packs and widens 16-bit operands.
  bool beats_packing = false;
};

}  // namespace halfstep::backend
