// Which row runs a node.

#include "backend/backend.h"

#include <doctest/doctest.h>

#include <ostream>
#include <set>
#include <string_view>

#include "backend/cpu/kernels.h"
#include "support/op_cases.h"

namespace halfstep::testing {
namespace {

using backend::Isa;

BuiltCase matmul(DType dtype) {
  return build(
      {.name = "MatMul/choice", .op = "MatMul", .inputs = {uniform({4, 8}), uniform({8, 2})}},
      dtype);
}

backend::Choice choose(const backend::Backend& backend, const BuiltCase& built) {
  return backend::choose(backend, {built.graph, built.graph.node(built.node)});
}

}  // namespace

TEST_CASE("instruction sets: ordered, and each has a name of its own") {
  std::set<std::string_view> names;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    CHECK(names.insert(backend::name(isa)).second);
  }
}

TEST_CASE("cpu backend: never has more than the limit") {
  // Without a limit first: oneDNN keeps the first for the process, and all its rows are to be
  // tested.
  const Isa most = backend::cpu_backend(1).capabilities.isa;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    const backend::Backend cpu = backend::cpu_backend(1, isa);
    CHECK(cpu.capabilities.isa <= isa);
    CHECK(cpu.capabilities.isa <= most);
  }
}

TEST_CASE("choose: the first row that accepts, and why those before it did not") {
  const backend::Backend cpu = backend::cpu_backend(1);
  const BuiltCase f64 = matmul(DType::float64);
  const backend::Choice choice = choose(cpu, f64);
  REQUIRE(choice.kernel != nullptr);
  CHECK(choice.kernel->name == "reference/matmul");
  REQUIRE(choice.refused.size() >= 2);
  for (const auto& [kernel, why] : choice.refused) {
    CHECK((kernel.starts_with("packed/") || kernel.starts_with("onednn/")));
    CHECK(why != "");
  }
  CHECK(choose(cpu, matmul(DType::float32)).kernel->name == "onednn/matmul");
  CHECK(choose(cpu, matmul(DType::float16)).kernel->name == "onednn/matmul by float32");
  CHECK(choose(backend::cpu_reference(), matmul(DType::float32)).kernel->name ==
        "reference/matmul");
}

TEST_CASE("choose: nothing where no row accepts") {
  backend::Backend cpu = backend::cpu_backend(1);
  cpu.kernels = backend::cpu::onednn_kernels();
  const backend::Choice choice = choose(cpu, matmul(DType::float64));
  CHECK(choice.kernel == nullptr);
  CHECK(choice.refused.size() == 2);
}

TEST_CASE("choose: bfloat16 without instructions for it goes by float32") {
  const backend::Backend cpu = backend::cpu_backend(1, Isa::avx512);
  CHECK(choose(cpu, matmul(DType::bfloat16)).kernel->name == "onednn/matmul by float32");
}

TEST_CASE("node view: constants are read, other inputs are not") {
  const BuiltCase built = build(
      {.name = "Sum/view", .op = "Sum", .inputs = {uniform({3, 4}), ints({1})}}, DType::float16);
  const backend::NodeView node{built.graph, built.graph.node(built.node)};
  CHECK(!node.constant(0));
  CHECK(!node.constant(7));
  CHECK(node.constant(1) == std::vector<std::int64_t>{1});
}

}  // namespace halfstep::testing
