#pragma once
// Counts every operator new of a test program that links allocations.cc, on all threads, except
// those that oneDNN does inside its own calls.

#include <cstdint>

namespace halfstep::test {

/// Counts from its construction on; one at a time.
class AllocationCount {
 public:
  AllocationCount();
  ~AllocationCount() { stop(); }
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;

  /// Ends the counting; the allocations so far.
  std::int64_t stop();
};

}  // namespace halfstep::test
