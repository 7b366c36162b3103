#pragma once
// The variables of a run: what outlives a step. Plans for training, evaluation and tracing bind to
// one State by variable name. It has a host side, which is what is initialized, saved and hashed,
// and, where the backend computes in memory of its own, a device side in one block. On the host
// both are the same memory.

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
    Tensor tensor;           ///< the host side
    std::size_t offset = 0;  ///< in the block of the device
  };

  /// Allocates the variables of `graph` and fills them by their initializers.
  /// Errors: UserError(memory).
  State(const graph::Graph& graph,
        std::uint64_t seed,
        std::shared_ptr<backend::Memory> memory = backend::host_memory());

  /// Brings what steps have made to the host side, and what the host has written to where plans
  /// see it; to be called after each write to the host side.
  void to_host() const;
  void to_device();

  /// Where plans read and write a variable. Errors: InternalError when there is none of that name.
  TensorView view(std::string_view name) const;
  /// A variable of one element as it is now, and a new value for it; T is the storage type of its
  /// dtype.
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

  /// The host side; to_host() brings it up to date.
  const Tensor& tensor(std::string_view name) const;
  bool contains(std::string_view name) const;
  /// In order of declaration; the tensors are the host side.
  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t bytes() const;

  /// XXH3-128 over name, dtype, shape and float32 value of every weight and statistic, by name:
  /// independent of backend, thread count and policy.
  std::string weights_hash() const;
  /// The same over all variables: equal hashes mean that the runs go on alike.
  std::string full_hash() const;

  /// Whether every weight and statistic is finite.
  bool finite() const;

  /// A copy of the weights and statistics, in order of declaration, and back.
  std::vector<Tensor> weights() const;
  void set_weights(const std::vector<Tensor>& weights);

  /// Counts the writes to a variable that plans and the host make.
  std::uint64_t& version(std::string_view name);
  /// Something made of a variable and kept beside it in the backend's memory, such as its packed
  /// form; never saved. It holds when it was made from the variable's present version.
  struct Derived {
    backend::Buffer buffer;
    const std::uint64_t* version = nullptr;  ///< of the variable
    std::uint64_t made_from = 0;             ///< the version it follows; 0: none yet
  };
  /// What `name` stands for, made of `variable`; reserved by the first who asks. Stays where it is.
  /// Errors: UserError(memory).
  Derived& derived(const std::string& name, std::string_view variable, std::size_t bytes);
  const Derived& derived(const std::string& name) const { return derived_.at(name); }
  std::size_t derived_bytes() const;

  /// The device side and its bytes.
  std::byte* device_data() const { return device_.data(); }
  std::size_t device_bytes() const { return device_.bytes(); }
  /// Copies the device side into a buffer of its memory of that size, and back. Neither waits.
  void keep(const backend::Buffer& copy) const;
  void set_back(const backend::Buffer& copy);

 private:
  std::string hash(bool all) const;
  const Entry& entry(std::string_view name) const;
  void note_written();

  std::shared_ptr<backend::Memory> memory_;
  backend::Buffer device_;  ///< empty where the memory is the host's
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<std::uint64_t> versions_;  ///< of the entries
  std::map<std::string, Derived> derived_;
};

/// Fills `tensor` as `initializer` says, keyed by the run's seed and the variable's name.
void initialize(const Tensor& tensor,
                const graph::Initializer& initializer,
                std::uint64_t seed,
                std::string_view name);

}  // namespace halfstep::plan
