#pragma once
// The threads behind core/parallel.h, and behind oneDNN's OpenMP regions.
//
// A thread that waits spins for a bounded time and then sleeps in the kernel: with other processes
// on the processors a spinning thread would keep from running what it waits for.

#include <cstdint>

#include "core/parallel.h"

namespace halfstep {

/// Where the calling thread stands in the team that it works for.
struct TeamPlace {
  int index = 0;
  int size = 1;
  bool inside = false;  ///< of a team, be it of one
};
TeamPlace team_place();

/// Whether each index of a team needs a thread of its own, or a thread that is done may do the work
/// of one that has not begun.
enum class Team { together, any_order };

inline constexpr int k_most_threads = 1024;

/// Calls body(index) for each index in [0, size); the caller is one of the threads. Returns false,
/// without a call, where the caller is in a team, or another thread's work goes on and any order
/// will do. The body must not throw.
bool run_team(int size, Team team, FunctionRef<void(int index)> body);

/// Calls body with team_place() at index 0 of one.
void as_team_of_one(FunctionRef<void()> body);

/// Returns when all threads of a team that runs together have called it.
void team_barrier();

}  // namespace halfstep
