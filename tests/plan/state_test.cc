#include "plan/state.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>

#include "core/error.h"

namespace halfstep::plan {
namespace {

using graph::Initializer;
using graph::Role;

graph::Variable variable(std::string name,
                         Role role = Role::weight,
                         DType dtype = DType::float32,
                         const Shape& shape = {3, 4}) {
  graph::Variable v;
  v.name = std::move(name);
  v.type = {dtype, shape};
  v.role = role;
  v.initializer = {Initializer::Kind::normal, 0, 1, 0};
  return v;
}

graph::Graph graph_of(std::vector<graph::Variable> variables) {
  graph::Graph graph;
  graph.variables() = std::move(variables);
  return graph;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.view().data, b.view().data, a.bytes()) == 0;
}

}  // namespace

TEST_CASE("state: a variable's start depends on seed and name, not on its neighbours") {
  const State both(graph_of({variable("a"), variable("b")}), 1);
  const State turned(graph_of({variable("b"), variable("a")}), 1);
  const State other(graph_of({variable("a"), variable("b")}), 2);
  CHECK(same(both.tensor("a"), turned.tensor("a")));
  CHECK_FALSE(same(both.tensor("a"), both.tensor("b")));
  CHECK_FALSE(same(both.tensor("a"), other.tensor("a")));
  CHECK(both.weights_hash() == turned.weights_hash());
  CHECK(both.weights_hash() != other.weights_hash());
  graph::Variable seeded = variable("a");
  seeded.initializer.seed = 9;
  CHECK_FALSE(same(State(graph_of({seeded}), 1).tensor("a"), both.tensor("a")));
}

TEST_CASE("state: initializers keep to their bounds") {
  graph::Variable uniform = variable("u", Role::weight, DType::float32, {1000});
  uniform.initializer = {Initializer::Kind::uniform, -0.5, 0.25, 0};
  graph::Variable truncated = variable("t", Role::weight, DType::float32, {1000});
  truncated.initializer = {Initializer::Kind::truncated_normal, 1, 0.5, 0};
  graph::Variable constant = variable("c", Role::statistic, DType::float16, {5});
  constant.initializer = {Initializer::Kind::constant, 0.1, 0, 0};
  const State state(graph_of({uniform, truncated, constant}), 3);
  for (float x : state.tensor("u").span<float>()) {
    CHECK(x >= -0.5F);
    CHECK(x < 0.25F);
  }
  double sum = 0;
  for (float x : state.tensor("t").span<float>()) {
    CHECK(std::abs(x - 1) <= 1);
    sum += static_cast<double>(x);
  }
  CHECK(std::abs(sum / 1000 - 1) < 4 * 0.5 / std::sqrt(1000.0));
  CHECK(element_as_double(state.tensor("c").view(), 4) == doctest::Approx(0.1).epsilon(0x1p-11));
}

TEST_CASE("state: an orthogonal matrix has orthonormal rows or columns, times its gain") {
  struct Case {
    Shape shape;
    std::int64_t rows, columns;  // of the matrix that the shape is taken as
  };
  for (const Case& c : {Case{{4, 12}, 4, 12},
                        Case{{12, 4}, 12, 4},
                        Case{{7, 7}, 7, 7},
                        Case{{2, 3, 5}, 6, 5},
                        Case{{5}, 1, 5},
                        Case{{64, 256}, 64, 256}}) {
    CAPTURE(to_string(c.shape));
    graph::Variable v = variable("v", Role::weight, DType::float32, c.shape);
    v.initializer = {Initializer::Kind::orthogonal, 2, 0, 0};
    const State state(graph_of({v}), 3);
    const float* x = state.tensor("v").span<float>().data();
    const bool of_rows = c.rows < c.columns;
    const std::int64_t vectors = std::min(c.rows, c.columns), length = std::max(c.rows, c.columns);
    const auto at = [&](std::int64_t i, std::int64_t k) {
      return static_cast<double>(of_rows ? x[i * c.columns + k] : x[k * c.columns + i]);
    };
    for (std::int64_t i = 0; i < vectors; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        double dot = 0;
        for (std::int64_t k = 0; k < length; ++k) dot += at(i, k) * at(j, k);
        // Each element is rounded to float32 once.
        CHECK(std::abs(dot - (i == j ? 4 : 0)) < 8 * 0x1p-24 * static_cast<double>(length));
      }
    }
  }
}

TEST_CASE("state: the ones of an initializer replace the elements in their range alone") {
  graph::Variable v = variable("v", Role::weight, DType::float32, {8});
  v.initializer = {Initializer::Kind::constant, 0.25, 0, 0, 2, 4};
  const State state(graph_of({v}), 3);
  for (std::int64_t i = 0; i < 8; ++i) {
    CHECK(element_as_double(state.tensor("v").view(), i) == (i == 2 || i == 3 ? 1 : 0.25));
  }
}

TEST_CASE("state: the hash of the weights leaves out what is not of the model") {
  const auto hash = [](const std::vector<graph::Variable>& variables) {
    return State(graph_of(variables), 1).weights_hash();
  };
  const std::string model = hash({variable("w"), variable("s", Role::statistic)});
  CHECK(hash({variable("w"), variable("s", Role::statistic), variable("m", Role::slot)}) == model);
  CHECK(hash({variable("w"), variable("s", Role::statistic), variable("x")}) != model);
  CHECK(hash({variable("w")}) != model);
  State state(graph_of({variable("w"), variable("m", Role::slot)}), 1);
  const std::string weights = state.weights_hash(), all = state.full_hash();
  state.tensor("m").as<float>()[0] += 1;
  CHECK(state.weights_hash() == weights);
  CHECK(state.full_hash() != all);
  state.tensor("w").as<float>()[11] = std::nextafter(state.tensor("w").as<float>()[11], 9.0F);
  CHECK(state.weights_hash() != weights);
}

TEST_CASE("state: weights and statistics can be kept and set back, slots stay") {
  State state(graph_of({variable("w"),
                        variable("m", Role::slot),
                        variable("s", Role::statistic, DType::bfloat16),
                        variable("empty", Role::weight, DType::float32, {0})}),
              1);
  const std::vector<Tensor> kept = state.weights();
  CHECK(kept.size() == 3);
  const std::string weights = state.weights_hash();
  for (const State::Entry& entry : state.entries()) {
    if (entry.tensor.bytes() > 0) std::memset(entry.tensor.view().data, 1, entry.tensor.bytes());
  }
  CHECK(state.weights_hash() != weights);
  const Tensor slot = state.tensor("m").clone();
  state.set_weights(kept);
  CHECK(state.weights_hash() == weights);
  CHECK(same(state.tensor("m"), slot));
  State other(graph_of({variable("w")}), 1);
  CHECK_THROWS_AS(other.set_weights(kept), InternalError);
  CHECK_THROWS_AS(other.tensor("m"), InternalError);
}

}  // namespace halfstep::plan
