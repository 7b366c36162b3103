// The reference kernels themselves: in every dtype against float64 on the same rounded inputs.

#include <doctest/doctest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string_view>

#include "backend/cpu/kernels.h"
#include "core/parallel.h"
#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "support/evaluate.h"
#include "support/kernels.h"
#include "support/op_cases.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using graph::Value;

}  // namespace

TEST_CASE("op table: every executable op has a reference kernel and a case") {
  // Ops that a plan provides without a launch.
  const std::set<std::string_view> k_provided{
      "Const", "Placeholder", "ReadVariableOp", "VarHandleOp"};
  // Its masks are a library's own; tests/cuda_run holds pairs of it to the ops that they replace.
  const std::set<std::string_view> k_opaque{"FusedMatMul"};
  // They need ranks: see tests/train/ranks_test.cc.
  std::set<std::string> among_ranks;
  for (const graph::OpDef& op : graph::ops::collective_ops()) among_ranks.insert(op.name);
  std::set<std::string_view> kernels;
  for (const backend::Kernel& k : backend::cpu::reference_kernels()) kernels.insert(k.op);
  std::set<std::string_view> cases;
  for (const OpCase& c : op_cases()) cases.insert(c.op);
  for (const graph::OpDef& op : graph::op_table().all()) {
    if (op.infer == nullptr || k_provided.contains(op.name) || k_opaque.contains(op.name) ||
        among_ranks.contains(op.name)) {
      continue;
    }
    CAPTURE(op.name);
    CHECK(kernels.contains(op.name));
    CHECK(cases.contains(op.name));
  }
}

TEST_CASE("reference rows: each names an executable op, once") {
  std::set<std::string_view> ops;
  std::set<std::string_view> names;
  for (const backend::Kernel& k : backend::cpu::reference_kernels()) {
    CAPTURE(k.name);
    const graph::OpDef* op = graph::op_table().find(k.op);
    CHECK((op != nullptr && op->infer != nullptr));
    CHECK(ops.insert(k.op).second);
    CHECK(names.insert(k.name).second);
    CHECK(k.name.starts_with("reference/"));
  }
}

TEST_CASE("reference: float32 and the 16-bit types agree with float64") {
  const backend::Backend backend = backend::cpu_reference();
  for (const OpCase& c : op_cases()) {
    const std::vector<DType> dtypes = dtypes_of(c);
    if (std::find(dtypes.begin(), dtypes.end(), DType::float64) == dtypes.end()) continue;
    for (DType dtype : dtypes) {
      if (!is_floating(dtype) || dtype == DType::float64) continue;
      CAPTURE(c.name);
      CAPTURE(name(dtype));
      BuiltCase narrow = build(c, dtype);
      BuiltCase wide = build(c, DType::float64, dtype);
      const std::vector<Tensor> got = run(narrow, backend);
      const std::vector<Tensor> want = run(wide, backend);
      REQUIRE(got.size() == want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        const Comparison same =
            compare(got[i].view(), want[i].view(), c.accumulated(dtype), c.terms, c.magnitude);
        CHECK_MESSAGE(same, same.text);
      }
    }
  }
}

TEST_CASE("reference: every case runs in every dtype its op allows") {
  const backend::Backend backend = backend::cpu_reference();
  for (const OpCase& c : op_cases()) {
    for (DType dtype : dtypes_of(c)) {
      CAPTURE(c.name);
      CAPTURE(name(dtype));
      BuiltCase built = build(c, dtype);
      CHECK_NOTHROW(graph::verify(built.graph, "build"));
      CHECK_NOTHROW(run(built, backend));
    }
  }
}

TEST_CASE("reference: the number of threads changes no bit") {
  const backend::Backend backend = backend::cpu_reference();
  const int threads = thread_count();
  for (const OpCase& c : op_cases()) {
    CAPTURE(c.name);
    const DType dtype = dtypes_of(c).front();
    BuiltCase one = build(c, dtype);
    BuiltCase three = build(c, dtype);
    set_thread_count(1);
    const std::vector<Tensor> want = run(one, backend);
    set_thread_count(3);
    const std::vector<Tensor> got = run(three, backend);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const Comparison same = compare_bits(got[i].view(), want[i].view());
      CHECK_MESSAGE(same, same.text);
    }
  }
  set_thread_count(threads);
}

TEST_CASE("reference: a kernel that may write over an input gives the same there") {
  const backend::Backend backend = backend::cpu_reference();
  for (const OpCase& c : op_cases()) {
    for (DType dtype : dtypes_of(c)) {
      BuiltCase built = build(c, dtype);
      const backend::NodeView node{built.graph, built.graph.node(built.node)};
      const backend::Kernel* kernel = backend::choose(backend, node).kernel;
      REQUIRE(kernel != nullptr);
      if (kernel->inplace == 0 || !built.variables.empty()) continue;
      CAPTURE(c.name);
      CAPTURE(name(dtype));
      check_in_place(*kernel, backend.capabilities, built);
    }
  }
}

TEST_CASE("gradients: each rule agrees with central differences in float64") {
  const backend::Backend backend = backend::cpu_reference();
  for (const OpCase& c : op_cases()) {
    const graph::OpDef* op = graph::op_table().find(c.op);
    const std::vector<DType> dtypes = dtypes_of(c);
    const bool real = std::find(dtypes.begin(), dtypes.end(), DType::float64) != dtypes.end();
    if (!c.check_gradient || op->gradient == nullptr || !real) continue;
    const BuiltCase built = build(c, DType::float64);
    if (!is_floating(built.graph.node(built.node).outputs[0].dtype)) continue;
    CAPTURE(c.name);
    const std::string misses = gradient_misses(c, backend);
    CHECK_MESSAGE(misses.empty(), misses);
  }
}

}  // namespace halfstep::testing
