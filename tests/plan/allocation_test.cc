// A plan's step allocates nothing.

#include <doctest/doctest.h>

#include <new>
#include <ostream>
#include <string_view>

#include "plan/steps.h"
#include "support/allocations.h"

namespace halfstep::plan {

TEST_CASE("allocations are counted at all") {
  test::AllocationCount count;
  ::operator delete(::operator new(100));
  CHECK(count.stop() == 1);
}

TEST_CASE("plan: a step allocates nothing") {
  for (std::string_view policy : {"float32", "mixed_float16", "mixed_bfloat16"}) {
    CAPTURE(policy);
    const graph::Graph graph = step_graph(policy, 12);
    State state(graph, 7);
    Plan plan = compile(graph, cpu());
    Arena arena;
    arena.reserve(plan.arena_bytes());
    plan.bind(state, arena);
    feed(plan, 1);
    plan.run();  // kernels may set themselves up on first use
    PhaseSeconds seconds{};
    test::AllocationCount count;
    for (int i = 0; i < 5; ++i) plan.run();
    for (int i = 0; i < 5; ++i) plan.run(seconds);
    CHECK(count.stop() == 0);
  }
}

}  // namespace halfstep::plan
