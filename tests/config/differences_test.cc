#include "config/differences.h"

#include <doctest/doctest.h>

#include "config/load.h"
#include "support.h"

namespace halfstep::config::testing {
namespace {

constexpr std::string_view k_config = R"(
data: {name: mnist, scale: 1/4}
model:
  input: [784]
  layers:
    - {type: dense, units: 64, name: hidden}
    - {type: dropout, rate: 0.25}
    - {type: dense, units: 10, name: "1"}
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 1e-3, clipnorm: 1}
training: {epochs: 3, batch_size: 64}
)";

RunSpec with(std::string_view part, std::string_view instead) {
  std::string text(k_config);
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  text.replace(at, part.size(), instead);
  return spec_of(node_of(text));
}

/// "path: before -> after" of every difference from k_config.
std::vector<std::string> changes(std::string_view part, std::string_view instead) {
  std::vector<std::string> lines;
  for (const Difference& d : differences(spec_of(node_of(k_config)), with(part, instead))) {
    lines.push_back(d.path + ": " + d.before + " -> " + d.after);
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("differences: numbers are equal by value, however they are written") {
  CHECK(changes("1e-3", "0.001").empty());
  CHECK(changes("1e-3", "1/1000").empty());
  CHECK(changes("rate: 0.25", "rate: 1/4").empty());
  CHECK(changes("scale: 1/4", "scale: 2.5e-1").empty());
  CHECK(changes("units: 64", "units: 6.4e1").empty());
  CHECK(changes("clipnorm: 1", "clipnorm: 1.0").empty());
  CHECK(changes("input: [784]", "input: [7.84e2]").empty());
}

TEST_CASE("differences: another value is told, in the words of both sides") {
  CHECK(changes("1e-3", "0.0010000001") == Lines{"optimizer.learning_rate: 1e-3 -> 0.0010000001"});
  CHECK(changes("rate: 0.25", "rate: 1/3") == Lines{"model.layers[1].rate: 0.25 -> 1/3"});
  CHECK(changes("units: 64", "units: 65") == Lines{"model.layers[0].units: 64 -> 65"});
  CHECK(changes(", clipnorm: 1", "") == Lines{"optimizer.clipnorm: 1 -> (none)"});
}

TEST_CASE("differences: names that look like numbers are compared as text") {
  CHECK(changes("name: \"1\"", "name: \"1.0\"") == Lines{"model.layers[2].name: 1 -> 1.0"});
  CHECK(changes("name: \"1\"", "name: 1.0") == Lines{"model.layers[2].name: 1 -> 1.0"});
}

TEST_CASE("differences: a resume with the same numbers in other words is no change") {
  const RunSpec before = spec_of(node_of(k_config));
  CHECK(check_resume(before, with("1e-3", "0.001"), {}).empty());
  CHECK_THROWS_AS(check_resume(before, with("1e-3", "0.002"), {}), UserError);
  // The metric of the best checkpoint does not change the weights of a step.
  CHECK(check_resume(before, with("epochs: 3", "epochs: 3, keep_best: loss"), {}).empty());
}

}  // namespace halfstep::config::testing
