#pragma once
// The variables of a run: what outlives a step. Plans for training, evaluation and tracing bind to
// one State by variable name.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "graph/graph.h"

namespace halfstep::plan {

class State {
 public:
  struct Entry {
    graph::Variable variable;
    Tensor tensor;
  };

  /// Allocates the variables of `graph` and fills them by their initializers.
  /// Errors: UserError(memory).
  State(const graph::Graph& graph, std::uint64_t seed);

  /// Errors: InternalError when there is none of that name.
  const Tensor& tensor(std::string_view name) const;
  bool contains(std::string_view name) const;
  /// In order of declaration.
  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t bytes() const;

  /// XXH3-128 over name, dtype, shape and float32 value of every weight and statistic, by name:
  /// independent of backend, thread count and policy.
  std::string weights_hash() const;
  /// The same over all variables: equal hashes mean that the runs go on alike.
  std::string full_hash() const;

  /// A copy of the weights and statistics, in order of declaration, and back.
  std::vector<Tensor> weights() const;
  void set_weights(const std::vector<Tensor>& weights);

 private:
  std::string hash(bool all) const;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

/// Fills `tensor` as `initializer` says, keyed by the run's seed and the variable's name.
void initialize(const Tensor& tensor,
                const graph::Initializer& initializer,
                std::uint64_t seed,
                std::string_view name);

}  // namespace halfstep::plan
