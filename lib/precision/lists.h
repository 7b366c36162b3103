#pragma once
// The op lists of the automatic rewrite. allow: always converted; infer: converted on a path
// between converted ops unless a deny op is upstream; deny: never converted; clear: converted
// between or next to converted ops. An op on no list keeps float32, and paint does not propagate
// through it.

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "graph/op_def.h"

namespace halfstep::precision {

/// The mode of the rewrite: float16 on CUDA devices, bfloat16 on CPUs, float16 emulated on CPUs
/// (values rounded, ops in float32), float16 on CPUs with native float16 arithmetic.
enum class Mode { cuda, bf16, cpu, fp16_cpu };
enum class Level { standard, treat_infer_as_deny, tensor_cores_only, unsafe_force_all };
enum class List { allow, infer, deny, clear };

std::span<const std::string_view> names_of(Mode);
std::string_view name(Mode mode);
std::string_view name(Level level);
std::string_view name(List list);
std::optional<Mode> mode_named(std::string_view text);
/// Case-insensitive; "" and "standard" are the standard level.
std::optional<Level> level_named(std::string_view text);
std::vector<std::string> level_names();

/// One round of edits: for each list first everything in `add`, then everything in `remove`. Moving
/// an op needs both, on two lists.
struct ListEdits {
  struct Item {
    std::string op;
    Where where;
  };
  std::array<std::vector<Item>, 4> add;  ///< by List
  std::array<std::vector<Item>, 4> remove;
  bool lenient = false;  ///< from TensorFlow's variables, where an unknown op is not an error

  bool empty() const;
};

/// Versions as one number (CUDA 11.5: 11050, cuDNN 8.3.2: 8302), 0 when unknown. Some ops are on
/// the allow list only for versions with fast 16-bit kernels.
struct LibraryVersions {
  int cuda = 0;
  int cudnn = 0;
  bool rocm = false;
};

class OpLists {
 public:
  using Ops = std::set<std::string, std::less<>>;

  bool on(List list, std::string_view op) const { return ops(list).contains(op); }
  /// The list of an op; the first one when an edit put it on several.
  std::optional<List> of(std::string_view op) const;
  const Ops& ops(List list) const { return lists_[static_cast<std::size_t>(list)]; }
  Ops& ops(List list) { return lists_[static_cast<std::size_t>(list)]; }
  /// One line for each op that is on more than one list.
  std::vector<std::string> conflicts() const;

 private:
  std::array<Ops, 4> lists_;
};

/// The lists of a mode after all edits, in the order of the rounds, and the level.
OpLists make_lists(Mode mode,
                   const LibraryVersions& libraries,
                   Level level,
                   std::span<const ListEdits> edits);

/// Edits that name an op which is neither in `ops` nor in `others` nor on any list, with the
/// nearest name. Those of lenient rounds become warnings.
struct UnknownEdits {
  std::vector<Problem> errors;
  std::vector<Problem> warnings;
};
UnknownEdits unknown_ops(std::span<const ListEdits> edits,
                         const graph::OpTable& ops,
                         const std::set<std::string>& others = {});

}  // namespace halfstep::precision
