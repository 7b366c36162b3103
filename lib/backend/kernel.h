#pragma once
// A kernel is a row: which op it runs, whether it accepts a node, and how it prepares a launch.
// accepts() needs no device; prepare() and the launch belong to the device.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/capabilities.h"
#include "core/tensor.h"
#include "graph/graph.h"

namespace halfstep::backend {

/// What a kernel may know of the node it is asked to run.
struct NodeView {
  const graph::Graph& graph;
  const graph::Node& node;

  const graph::TensorType& input(std::size_t i) const { return graph.type(node.inputs[i]); }
  const graph::TensorType& output(std::size_t i = 0) const { return node.outputs[i]; }
  std::size_t inputs() const { return node.inputs.size(); }
  std::size_t outputs() const { return node.outputs.size(); }
  const graph::Attrs& attrs() const { return node.attrs; }
  /// The integers of input `i` when it is a Const, else nothing.
  std::optional<std::vector<std::int64_t>> constant(std::size_t i) const;
  /// True when every floating input and output has this dtype.
  bool all_floating(DType dtype) const;
};

/// Yes, or a short reason why not ("K is not a multiple of 32").
struct Accepts {
  std::string refusal;

  static Accepts yes() { return {}; }
  static Accepts no(std::string why) { return {std::move(why)}; }
  explicit operator bool() const { return refusal.empty(); }
};

/// The memory of one launch. Variable handles arrive as views of the variable, which may be
/// written; so may outputs and workspace. Sizes were fixed by prepare().
struct Args {
  std::span<const TensorView> in;
  std::span<const TensorView> out;
  std::byte* workspace = nullptr;
};

/// A prepared kernel. run() neither allocates nor throws.
class Launch {
 public:
  virtual ~Launch() = default;
  virtual void run(const Args& args) = 0;
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
  /// Bit i: output 0 may share the memory of input i (element by element, same shape and size).
  unsigned inplace = 0;
  /// No launch at all: output 0 is input 0's memory (Identity, Reshape, ...).
  bool alias = false;
  /// Plain loops: what other kernels are tested against, and never a reason to prefer an op.
  bool reference = false;
};

}  // namespace halfstep::backend
