#pragma once
// The worker threads of core/parallel.h and of oneDNN's OpenMP regions.
//
// A waiting thread spins for at most 200 us and then sleeps in the kernel: where other processes
// use the processors, a spinning thread would keep the thread that it waits for from running.
//
// Workers are started when a team first needs them and live as long as the process. A child of
// fork() has no workers: it must call exec() or _exit().

#include <cstdint>
#include <functional>
#include <thread>

#include "core/parallel.h"

namespace halfstep {

/// Upper limit of thread_count() and of the size of a team.
inline constexpr int k_max_threads = 1024;

/// The calling thread as a member of its team; a thread outside of teams is a team of one.
struct TeamMember {
  int index = 0;         ///< in [0, size); 0 is the thread that called run_team()
  int size = 1;          ///< members of the team
  bool in_team = false;  ///< inside run_team() or run_alone(), whatever the team's size
};
TeamMember team_member();

/// A thread outside of teams. Errors: UserError (memory) where the system refuses it.
std::jthread start_thread(std::function<void()> body);

/// Whether members of a team block on each other.
enum class Team {
  independent,  ///< they do not: any number of threads, even one, completes the team
  cooperating   ///< they may, by team_barrier() or otherwise: each index needs a thread of its own
};

/// Starts workers until each of `size` members of a team can have a thread. Returns the largest
/// such team, at most `size`: smaller where the system refuses to start a thread (the first refusal
/// is logged as a warning). Thread-safe; two loads where the workers exist.
int start_threads(int size);

/// Calls body(index) once for each index in [0, size), size <= k_max_threads, on the calling thread
/// and on workers; returns when all calls have returned, whose writes are then visible to the
/// caller. Index i begins on worker i, or earlier on a thread that has finished another index: if
/// members wait for each other, none finishes before those it waits for have begun. Returns false
/// without a call where the caller is in a team already, or, for independent members, where another
/// thread's team is running. Teams of cooperating members wait for their turn. The program ends if
/// the body throws. Errors: UserError (unavailable) if cooperating members cannot have a thread
/// each.
bool run_team(int size, Team team, FunctionRef<void(int index)> body);

/// Calls body on the calling thread as the only member of a team of one, which starts no other
/// team. Errors: those of the body.
void run_alone(FunctionRef<void()> body);

/// Blocks until all members of the caller's team, which cooperate, have called it. Returns at once
/// in a team of one.
void team_barrier();

}  // namespace halfstep
