#pragma once
// The variables of a run, which persist across steps. Plans for training, evaluation and tracing
// bind to one State by variable name. The host copy is initialized, saved and hashed; a backend
// with its own memory also has a device copy in one block. On the host both are the same memory.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backend/memory.h"
#include "core/tensor.h"
#include "graph/graph.h"

namespace halfstep::plan {

class State {
 public:
  struct Entry {
    graph::Variable variable;
    Tensor tensor;           ///< the host copy
    std::size_t offset = 0;  ///< in the block of the device copy
  };

  /// Allocates the variables of `graph` and fills them by their initializers.
  /// Errors: UserError(memory).
  State(const graph::Graph& graph,
        std::uint64_t seed,
        std::shared_ptr<backend::Memory> memory = backend::host_memory());

  /// Variables with these values, in host memory.
  explicit State(std::vector<Entry> entries);

  /// Copy the device copy to the host copy (blocks until all steps have completed) and back;
  /// to_device() must be called after each write to the host copy.
  void to_host() const;
  void to_device();

  /// The memory that plans read and write. Errors: InternalError when there is no variable of that
  /// name.
  TensorView view(std::string_view name) const;
  /// Reads or writes a variable of one element; T is the storage type of its dtype.
  template <class T>
  T read(std::string_view name) const {
    T value{};
    memory_->download(view(name).data, &value, sizeof(T));
    return value;
  }
  template <class T>
  void write(std::string_view name, T value) {
    memory_->upload(&value, view(name).data, sizeof(T));
    ++version(name);
  }

  /// The host copy; to_host() updates it.
  const Tensor& tensor(std::string_view name) const;
  bool contains(std::string_view name) const;
  /// In order of declaration; the tensors are the host copy.
  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t bytes() const;

  /// XXH3-128 over name, shape and values of every weight and statistic, by name. Floating-point
  /// values are hashed as float32: independent of backend, thread count and policy.
  std::string weights_hash() const;
  /// The same over all variables: equal hashes mean that the runs continue identically.
  std::string full_hash() const;

  /// Whether every weight and statistic is finite.
  bool finite() const;

  /// A copy of the weights, masters and statistics, in order of declaration, and its inverse.
  std::vector<Tensor> weights() const;
  void set_weights(const std::vector<Tensor>& weights);

  /// Sets the states of stateful layers to 0, in both copies.
  void reset_states();

  /// Number of writes to a variable by plans and by the host.
  std::uint64_t& version(std::string_view name);
  /// A value derived from a variable and stored in the backend's memory, such as its packed copy;
  /// never saved. It is valid if it was computed from the variable's present version.
  struct Derived {
    backend::Buffer buffer;
    const std::uint64_t* version = nullptr;  ///< of the variable
    std::uint64_t source_version = 0;        ///< the version it was computed from; 0: none yet
  };
  /// The copy `name` derived from `variable`; allocated at the first call. The reference stays
  /// valid. Errors: UserError(memory).
  Derived& derived(const std::string& name, std::string_view variable, std::size_t bytes);
  const Derived& derived(const std::string& name) const { return derived_.at(name); }
  std::size_t derived_bytes() const;

  /// The address and size of the device copy.
  std::byte* device_data() const { return device_.data(); }
  std::size_t device_bytes() const { return device_.bytes(); }
  /// Copy the device copy into a buffer of its memory of that size, and back. Asynchronous.
  void save_device(const backend::Buffer& copy) const;
  void restore_device(const backend::Buffer& copy);

 private:
  std::string hash(bool all) const;
  /// Errors: InternalError when there is no variable of that name.
  std::size_t index_of(std::string_view name) const;
  void mark_written();

  std::shared_ptr<backend::Memory> memory_;
  backend::Buffer device_;  ///< empty where the backend computes in host memory
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<std::uint64_t> versions_;  ///< of the entries
  std::map<std::string, Derived> derived_;
};

/// Copies a rank's slice of a tensor to `to`, cast to its dtype and padded with zeros.
void copy_slice(const Tensor& full, const graph::Slice& slice, const Tensor& to);

/// Fills `tensor` by `initializer`, keyed by the run's seed and the variable's name.
void initialize(const Tensor& tensor,
                const graph::Initializer& initializer,
                std::uint64_t seed,
                std::string_view name);

}  // namespace halfstep::plan
