#pragma once
// A graph made ready to run: launches in a fixed order over one arena. Nothing is decided,
// allocated or looked up while it runs.

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

/// Sees each launch as it is done. An output may stand in the memory of an input that nothing else
/// needs; an input of another size than all outputs is still whole.
using Observer = std::function<void(const graph::Node& node,
                                    std::span<const TensorView> inputs,
                                    std::span<const TensorView> outputs)>;

/// Which kernel a node got, and why better ones passed.
struct KernelChoice {
  int node = -1;
  std::string kernel;  ///< "" for nodes without a launch
  std::vector<std::pair<std::string, std::string>> refused;
};

/// The memory all plans of a run share; grows to the largest one's need before the first step.
class Arena {
 public:
  explicit Arena(std::shared_ptr<backend::Memory> memory = backend::host_memory())
      : memory_(std::move(memory)) {}

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
  /// Bytes of constants it holds itself.
  std::size_t constant_bytes() const;
  /// Whether lowering has left values out, or packed them, so that trace() cannot show them.
  bool hides_values() const;

  /// Connects the plan to the variables and the arena (of at least arena_bytes()); must be called
  /// before run() and again when the arena has grown.
  /// Errors: InternalError when the state lacks a variable or has it with another type.
  void bind(State& state, const Arena& arena);

  /// The place of an input slot (Placeholder) and of a fetch in the backend's memory; valid after
  /// bind().
  TensorView input(std::string_view name) const;
  bool has_input(std::string_view name) const;
  TensorView fetch(std::string_view name) const;

  /// Fills an input from the host, and brings a fetch to it: as many bytes as the tensor has.
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
  /// Fills the inputs with what those of `other`, a plan over the same memory, hold.
  void copy_inputs(const Plan& other);

  /// One step. A device goes on with it after this returns; from the second step on it gets the
  /// launches as one recording.
  void run();
  /// The launches of one step, one after the other, for a recording that holds more than them.
  void enqueue();
  /// One step with the seconds of each phase added to `seconds`; a device does not tell them.
  void run(PhaseSeconds& seconds);
  /// The same launches with a look at each one, in host memory; launches of `Phase::update` are
  /// left out, so that the state stays as it is.
  void trace(const Observer& observer);
  /// One step with the seconds of each launch added to `seconds` (one per node).
  void profile(std::span<double> seconds);

  struct Impl;
  explicit Plan(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

/// Lowers `graph`, picks a kernel for each node and lays out memory.
/// Errors: InternalError when a pass breaks the graph or no kernel takes a node.
Plan compile(const graph::Graph& graph,
             const backend::Backend& backend,
             const Lowering& lowering = {});

}  // namespace halfstep::plan
