#pragma once
// The launch of a node: conversions and oneDNN primitives in order. Memory objects are created when
// the node is prepared; run() only sets their addresses.

#include <initializer_list>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

#include "backend/cpu/vector/convert.h"
#include "backend/cpu/workspace_layout.h"
#include "backend/kernel.h"

namespace halfstep::backend::cpu::onednn {

/// The one CPU engine of the process.
const dnnl::engine& engine();

/// Native: the operands' own dtype, float32 accumulation. By float32: 16-bit operands are widened
/// into the workspace and the result is rounded once. Split: float16 operands are split into
/// bfloat16 parts in the workspace; the result is float32 there and is rounded once.
enum class Arithmetic { native, by_float32, split };

/// An operand seen as [outer, inner]; each row of `inner` values becomes parts.size() rows of its
/// high or low parts.
struct Split {
  std::int64_t outer, inner;
  std::vector<vector::SplitPart> parts;
};

/// The role of a memory object in the primitive: with split arithmetic operands and results have
/// different dtypes. A sum is float32.
enum class Role { operand, result, sum };

/// A finished program. The stages between begin_shared() and begin_chunk() prepare operands that
/// all chunks of a launch share.
class Stages : public Launch {
 public:
  /// On all threads.
  virtual void prepare(const Args& args) = 0;
  /// `shared`: the workspace of the same program's prepare().
  virtual void run_chunk(const Args& args, std::byte* shared) = 0;
  void run(const Args& args) final {
    prepare(args);
    run_chunk(args, args.workspace);
  }
};

struct PreparedStages {
  std::unique_ptr<Stages> stages;
  std::size_t workspace_bytes = 0;
};

class Program {
 public:
  /// A memory object of the program.
  using Memory = std::size_t;

  Program(const NodeView& node, Arithmetic arithmetic, const Capabilities& capabilities);
  ~Program();

  bool takes_bfloat16() const { return operand_type_ == dnnl::memory::data_type::bf16; }

  /// `dims` with dense strides for axes stored in the order `stored` (outermost first).
  dnnl::memory::desc dense(const dnnl::memory::dims& dims,
                           std::initializer_list<std::size_t> stored,
                           Role role = Role::operand) const;
  /// `dims` in a named layout; `any` leaves the choice to oneDNN.
  dnnl::memory::desc tagged(const dnnl::memory::dims& dims,
                            dnnl::memory::format_tag tag,
                            Role role = Role::operand) const;
  dnnl::memory::desc any(const dnnl::memory::dims& dims, Role role = Role::operand) const {
    return tagged(dims, dnnl::memory::format_tag::any, role);
  }

  /// Row-major matrices with leading batch axes; the last two axes may be stored transposed, and
  /// stored rows may have a gap of so many elements between them.
  dnnl::memory::desc matrix(const dnnl::memory::dims& dims,
                            bool transposed,
                            dnnl::memory::dim gap = 0) const;

  /// Input or output port `port` with the descriptor `desc`; converted to the compute dtype if
  /// needed.
  Memory input(std::size_t port, const dnnl::memory::desc& desc);
  Memory output(std::size_t port, const dnnl::memory::desc& desc);
  /// Input port `port`, row-major [rows, columns], in the workspace in rows with a gap.
  Memory spread_input(std::size_t port, const dnnl::memory::dims& dims, dnnl::memory::dim gap);
  /// Input port `port` split into parts, which together have the descriptor `desc`.
  Memory split_input(std::size_t port, const dnnl::memory::desc& desc, Split split);
  /// A result in the workspace, with the offset of its data.
  std::pair<Memory, std::size_t> result(const dnnl::memory::desc& desc);
  /// `from` in the layout `wanted`: itself, or a copy in the workspace.
  Memory in_layout(Memory from, const dnnl::memory::desc& wanted);
  /// The destination of a primitive that writes layout `wanted` on its way to `to`: itself, or
  /// workspace.
  Memory for_layout(Memory to, const dnnl::memory::desc& wanted);

  /// Adds a primitive; `scratchpad` is its primitive descriptor's.
  void run(const dnnl::primitive& primitive,
           const dnnl::memory::desc& scratchpad,
           const std::vector<std::pair<int, Memory>>& args);

  void begin_shared() { section_ = Section::shared; }
  void begin_chunk();
  /// Creates the reorders of shared operands, for as many threads as the caller's team may have.
  void lay_out_shared();
  /// Launches run inside on_calling_thread(), as the primitives must have been created.
  void keep_to_calling_thread();

  PreparedStages finish_stages();
  Prepared finish() {
    PreparedStages done = finish_stages();
    return {std::move(done.stages), done.workspace_bytes};
  }

 private:
  class Run;
  enum class Kind { input, output, workspace, shared_workspace };
  enum class Section { only, shared, chunk };

  Memory add(const dnnl::memory::desc& desc, Kind kind, std::size_t where);
  std::size_t reserve(std::size_t bytes) {
    return static_cast<std::size_t>(workspace_.reserve(static_cast<std::int64_t>(bytes)));
  }
  void reorder(Memory from, Memory to);

  dnnl::memory::data_type type(Role role) const;

  Arithmetic arithmetic_;
  dnnl::memory::data_type operand_type_;
  std::unique_ptr<Run> run_;
  WorkspaceLayout workspace_;
  Section section_ = Section::only;
  std::vector<std::pair<Memory, Memory>> shared_reorders_;
  std::vector<std::pair<Memory, Memory>> late_reorders_;
  std::vector<std::pair<std::size_t, std::size_t>> late_conversions_;  // output port, offset
};

/// The attributes of every primitive: the caller provides the scratchpad.
const dnnl::primitive_attr& attributes();

/// Builds the launch of a node. Throws dnnl::error for configurations that oneDNN does not support.
using Build = Prepared (*)(const NodeView&, const Capabilities&, Arithmetic);

/// Whether this arithmetic applies to the node's dtype and oneDNN supports the node.
Accepts accepts(const NodeView& node,
                const Capabilities& capabilities,
                Arithmetic arithmetic,
                Build build);

template <Build build, Arithmetic arithmetic>
Kernel kernel(std::string_view op, std::string_view name) {
  return {.op = op,
          .name = name,
          .accepts =
              [](const NodeView& node, const Capabilities& capabilities) {
                return accepts(node, capabilities, arithmetic, build);
              },
          .prepare =
              [](const NodeView& node, const Capabilities& capabilities) {
                return build(node, capabilities, arithmetic);
              }};
}

}  // namespace halfstep::backend::cpu::onednn
