#pragma once
// A small graph under test whose inputs and variables hold their tensors: built with the ordinary
// builder, run node by node on the reference kernels.

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "core/parallel.h"
#include "core/tensor.h"
#include "graph/builder.h"
#include "support/op_cases.h"

namespace halfstep::testing {

inline constexpr DType k_floating[] = {
    DType::float32, DType::float16, DType::bfloat16, DType::float64};
inline constexpr double k_nan = std::numeric_limits<double>::quiet_NaN();

/// A tensor of `dtype` with the given values, rounded to it.
Tensor tensor(DType dtype, const Shape& shape, const std::vector<double>& values);
/// Uniform in [low, high), rounded to `dtype`; the same for the same seed.
Tensor random_tensor(
    DType dtype, const Shape& shape, std::uint64_t seed, double low = -1, double high = 1);
/// Stores `value` as element `i`, rounded to the dtype.
void set(Tensor& tensor, std::int64_t i, double value);
/// Every element as a double.
std::vector<double> values(const Tensor& tensor);

/// How far storing `x` as `dtype` may move it: half a unit in the last place.
double rounding(DType dtype, double x);

class Fixture {
 public:
  Fixture();
  /// The same with the rows of one device instead of the reference kernels.
  explicit Fixture(backend::Backend backend);

  graph::Builder& b() { return builder_; }

  /// A placeholder that holds `tensor`.
  graph::Value input(Tensor tensor);
  /// A variable that holds `tensor`; returns its handle.
  graph::Value variable(std::string name, Tensor tensor);
  /// The tensor of a placeholder or variable; may be written.
  Tensor& held(graph::Value value) { return held_.at(value.node); }

  /// Runs all nodes once. Errors: InternalError when no kernel takes a node.
  void run();
  /// An output after run().
  const Tensor& result(graph::Value value) const { return results_.at(value); }
  /// run(), then the output.
  const Tensor& evaluate(graph::Value value);

 private:
  graph::Graph graph_;
  backend::Backend backend_;
  graph::Builder builder_;
  std::map<int, Tensor> held_;
  std::map<graph::Value, Tensor> results_;
};

/// Compares the gradient rule of `node` with central differences, in double, at a random direction
/// of its outputs `ports`: for each input of `inputs` (placeholders of float64) the largest
/// distance between both, relative to the largest derivative.
std::vector<double> gradient_errors(Fixture& fixture,
                                    int node,
                                    const std::vector<std::size_t>& inputs,
                                    const std::vector<int>& ports = {0});

/// The error bound of central differences with the step of gradient_errors(), relative to the
/// largest derivative, for a function with third derivatives of the size of the first.
double difference_tolerance();

/// Whether a kernel convolves in float32 registers, and whether it splits float16 into bfloat16
/// halves.
bool is_direct(const backend::Kernel& kernel);
bool by_halves(const backend::Kernel& kernel);

/// The result in double of the case with the magnitudes of its operands: sums of |x||y|.
Tensor magnitudes(const OpCase& c);

/// Restores the number of threads.
struct ThreadGuard {
  int before = thread_count();
  ~ThreadGuard() { set_thread_count(before); }
};

}  // namespace halfstep::testing
