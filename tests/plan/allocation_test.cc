// The loop allocates nothing: every operator new of this program is counted.

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <ostream>
#include <string_view>

#include "plan/steps.h"

namespace {

std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  if (void* memory = std::aligned_alloc(alignment, rounded)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace halfstep::plan {

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
    const std::int64_t before = allocations;
    REQUIRE(before > 0);
    for (int i = 0; i < 5; ++i) plan.run();
    for (int i = 0; i < 5; ++i) plan.run(seconds);
    CHECK(allocations - before == 0);
  }
}

}  // namespace halfstep::plan
