// The loop allocates nothing: every operator new of this program is counted, except those that
// oneDNN does inside its own calls.

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <ostream>
#include <string_view>

#include "plan/steps.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<std::int64_t> allocations{0};

bool is_onednn(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr &&
         std::string_view(info.dli_fname).find("libdnnl") != std::string_view::npos;
}

void* counted(std::size_t bytes,
              const void* caller,
              std::size_t alignment = alignof(std::max_align_t)) {
  if (counting && !is_onednn(caller)) ++allocations;
  const std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  if (void* memory = std::aligned_alloc(alignment, rounded)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// Inlined, GCC takes the pairs for mismatched.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return counted(bytes, __builtin_return_address(0));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes) {
  return counted(bytes, __builtin_return_address(0));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return counted(bytes, __builtin_return_address(0));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, __builtin_return_address(0), static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, __builtin_return_address(0), static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace halfstep::plan {

TEST_CASE("allocations are counted at all") {
  allocations = 0;
  counting = true;
  ::operator delete(::operator new(100));
  counting = false;
  CHECK(allocations == 1);
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
    allocations = 0;
    counting = true;
    for (int i = 0; i < 5; ++i) plan.run();
    for (int i = 0; i < 5; ++i) plan.run(seconds);
    counting = false;
    CHECK(allocations == 0);
  }
}

}  // namespace halfstep::plan
