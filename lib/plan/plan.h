#pragma once
// A compiled graph: launches in a fixed order over one arena. Running it makes no decisions,
// allocations or lookups.

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "core/error.h"
#include "graph/graph.h"
#include "plan/pipeline.h"
#include "plan/state.h"

namespace halfstep::plan {

/// Seconds of one step by Phase of its launches.
using PhaseSeconds = std::array<double, 8>;

/// A launch that is the only reader of an input and only converts and scales it: float32(x) * scale
/// in float32, rounded to the dtype of the result.
struct ScaledInput {
  int node = -1;
  double scale = 1;
};
/// The launch of a lowered graph that scales its uint8 input `name`; none if there is no such input
/// or launch.
std::optional<ScaledInput> scaled_input(const graph::Graph& graph, std::string_view name);

/// Called after each launch. An output may alias an input without further uses; an input whose size
/// differs from all outputs is intact.
using Observer = std::function<void(const graph::Node& node,
                                    std::span<const TensorView> inputs,
                                    std::span<const TensorView> outputs)>;

/// The kernel chosen for a node, and why kernels preferred to it refused.
struct KernelChoice {
  int node = -1;
  std::string kernel;  ///< "" for nodes without a launch
  std::vector<std::pair<std::string, std::string>> refused;
  std::optional<backend::Algorithm> algorithm = {};  ///< chosen by a library
};

/// The memory shared by all plans of a run; grows to the largest need before the first step.
class Arena {
 public:
  explicit Arena(std::shared_ptr<backend::Memory> memory = backend::host_memory())
      : memory_(std::move(memory)) {}

  /// Grows to `bytes`; addresses change then, and plans must be bound again. Errors:
  /// UserError(memory).
  void reserve(std::size_t bytes);
  std::byte* data() const { return buffer_.data(); }
  std::size_t bytes() const { return buffer_.bytes(); }

 private:
  std::shared_ptr<backend::Memory> memory_;
  backend::Buffer buffer_;
};

class Plan {
 public:
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();

  const graph::Graph& graph() const;
  std::span<const KernelChoice> kernels() const;
  /// Bytes of the arena this plan needs, workspaces included.
  std::size_t arena_bytes() const;
  /// Bytes of the plan's constants.
  std::size_t constant_bytes() const;
  /// Whether lowering removed values or keeps them in packed form only, so that trace() cannot show
  /// them.
  bool hides_values() const;

  /// Connects the plan to the variables and the arena (of at least arena_bytes()); must be called
  /// before run() and again when the arena has grown.
  /// Errors: InternalError when the state lacks a variable or has it with another type.
  void bind(State& state, const Arena& arena);

  /// The memory of an input slot (Placeholder) and of a fetch, in the backend's memory; valid after
  /// bind().
  TensorView input(std::string_view name) const;
  bool has_input(std::string_view name) const;
  TensorView fetch(std::string_view name) const;

  /// Copies an input from the host, and a fetch to it: as many bytes as the tensor has. read()
  /// blocks until the step has completed.
  void write(std::string_view input, const void* from);
  void read(std::string_view fetch, void* to) const;
  /// A fetch of one element; T is the storage type of its dtype.
  template <class T>
  T read(std::string_view fetch) const {
    require(this->fetch(fetch).bytes() == sizeof(T), "{} is no such scalar", fetch);
    T value{};
    read(fetch, &value);
    return value;
  }
  /// Copies the inputs of `other`, a plan over the same memory.
  void copy_inputs(const Plan& other);

  /// Runs one step. Asynchronous on a device: from the second call on, launches the captured graph.
  void run();
  /// Enqueues the launches of one step, for a captured graph that includes further launches; call
  /// refresh() before such a graph is launched. `scaled`: skips the launch of scaled(), whose
  /// result the caller has written.
  void enqueue(bool scaled = false);
  /// The result of scaled_input() and its scale, for launches that gather and scale an input in one
  /// pass over it.
  struct Scaled {
    TensorView result;
    double scale = 1;
  };
  std::optional<Scaled> scaled(std::string_view input) const;
  /// Recomputes copies derived from variables that something other than this plan has written.
  void refresh();
  /// Marks the variables of this plan as written, after such a graph was launched.
  void mark_written();
  /// Runs one step and adds the seconds of each phase to `seconds`; a device does not report them.
  void run(PhaseSeconds& seconds);
  /// Runs one step and calls `observer` after each launch, with tensors in the backend's memory, in
  /// which launches may be waiting; launches of `Phase::update` are skipped, so the state is
  /// unchanged.
  void trace(const Observer& observer);
  /// Runs one step and adds the seconds of each launch to `seconds` (one per node). A device takes
  /// them by events between the launches, from the second call on inside of a captured graph.
  void profile(std::span<double> seconds);

  struct Impl;
  explicit Plan(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

/// Lowers `graph`, chooses a kernel for each node and lays out memory. Errors: InternalError when a
/// pass breaks the graph or no kernel accepts a node.
Plan compile(const graph::Graph& graph,
             const backend::Backend& backend,
             const Lowering& lowering = {});

}  // namespace halfstep::plan
