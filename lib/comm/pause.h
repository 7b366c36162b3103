#pragma once
// The pause between two polls of a thread that waits for other ranks.

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace halfstep::comm {

/// Backoff of a polling loop: spins for 0.2 ms, then yields the processor, since there may be more
/// ranks than processors, and after 1 ms sleeps for a twentieth of the wait so far, at most 1 ms.
/// Yielding alone keeps processors busy: runs of three ranks on two processors, beside two builds,
/// took 616 s instead of 17.
inline void pause_after(std::chrono::steady_clock::duration waited) {
  using std::chrono::microseconds;
  if (waited > microseconds(1000)) {
    std::this_thread::sleep_for(
        std::min<std::chrono::steady_clock::duration>(waited / 20, microseconds(1000)));
  } else if (waited > microseconds(200)) {
    ::sched_yield();
  }
}

}  // namespace halfstep::comm
