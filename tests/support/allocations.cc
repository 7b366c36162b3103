#include "support/allocations.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string_view>

namespace halfstep::test {
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
}  // namespace halfstep::test

// Inlined, GCC takes the pairs for mismatched.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return halfstep::test::counted(bytes, __builtin_return_address(0));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes) {
  return halfstep::test::counted(bytes, __builtin_return_address(0));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return halfstep::test::counted(bytes, __builtin_return_address(0));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return halfstep::test::counted(
      bytes, __builtin_return_address(0), static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return halfstep::test::counted(
      bytes, __builtin_return_address(0), static_cast<std::size_t>(alignment));
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

namespace halfstep::test {

AllocationCount::AllocationCount() {
  allocations = 0;
  counting = true;
}

std::int64_t AllocationCount::stop() {
  counting = false;
  return allocations;
}

}  // namespace halfstep::test
