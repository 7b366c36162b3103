// oneDNN's parallel loops on core/thread_pool. A libdnnl built with GNU OpenMP calls libgomp
// through the functions below (scripts/Gomp.cmake checks that); the loader resolves them to the
// program's. So there is one set of threads, and no libgomp thread spins for milliseconds between
// two loops.

#include <array>
#include <atomic>

#include "backend/cpu/onednn/onednn.h"
#include "core/parallel.h"
#include "core/thread_pool.h"

namespace {

std::atomic<bool> g_on_pool{false};
std::atomic<long> g_teams{0};
thread_local bool t_independent = false;

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): GNU OpenMP gives the names.
extern "C" {

/// Calls body(data) on each member of a team. threads = 0: omp_get_max_threads() of them. Inside of
/// a team: on the calling thread alone.
[[gnu::visibility("default")]] void GOMP_parallel(void (*body)(void*),
                                                  void* data,
                                                  unsigned threads,
                                                  unsigned flags);
/// Blocks until all members of the team have called it.
[[gnu::visibility("default")]] void GOMP_barrier();
[[gnu::visibility("default")]] int omp_get_thread_num();
[[gnu::visibility("default")]] int omp_get_num_threads();
[[gnu::visibility("default")]] int omp_in_parallel();
[[gnu::visibility("default")]] int omp_get_max_threads();
/// Has no effect: thread_count() alone decides. Of oneDNN, only attention in the Graph API of 3.4
/// and newer calls it, and no kernel uses that.
[[gnu::visibility("default")]] void omp_set_num_threads(int threads);

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned /*flags*/) {
  // oneDNN requests at most omp_get_max_threads(), but stores the number in a primitive.
  const int size = threads == 0 ? omp_get_max_threads() : static_cast<int>(threads);
  const bool alone = size == 1 || !g_on_pool.load(std::memory_order_relaxed);
  const auto team = t_independent ? halfstep::Team::independent : halfstep::Team::cooperating;
  if (!alone && halfstep::run_team(size, team, [=](int) { body(data); })) {
    if (!t_independent) g_teams.fetch_add(1, std::memory_order_relaxed);
  } else {
    halfstep::run_alone([=] { body(data); });
  }
}

void GOMP_barrier() { halfstep::team_barrier(); }
int omp_get_thread_num() { return halfstep::team_member().index; }
int omp_get_num_threads() { return halfstep::team_member().size; }
int omp_in_parallel() { return halfstep::team_member().in_team ? 1 : 0; }
// A member of a team starts no other team, so that a primitive created by it needs one thread.
int omp_get_max_threads() {
  if (!g_on_pool.load(std::memory_order_relaxed) || halfstep::team_member().in_team) return 1;
  return halfstep::start_threads(halfstep::thread_count());
}
void omp_set_num_threads(int /*threads*/) {}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

namespace halfstep::backend::cpu::onednn {

std::span<const OpenMpFunction> exported_openmp_functions() {
  const auto address = [](auto* function) { return reinterpret_cast<const void*>(function); };
  static const std::array k_functions{
      OpenMpFunction{"GOMP_parallel", address(&GOMP_parallel)},
      OpenMpFunction{"GOMP_barrier", address(&GOMP_barrier)},
      OpenMpFunction{"omp_get_thread_num", address(&omp_get_thread_num)},
      OpenMpFunction{"omp_get_num_threads", address(&omp_get_num_threads)},
      OpenMpFunction{"omp_in_parallel", address(&omp_in_parallel)},
      OpenMpFunction{"omp_get_max_threads", address(&omp_get_max_threads)},
      OpenMpFunction{"omp_set_num_threads", address(&omp_set_num_threads)},
  };
  return k_functions;
}

void run_openmp_on_pool(bool on) { g_on_pool = on; }

void run_independent_loops(FunctionRef<void()> body) {
  t_independent = true;
  body();
  t_independent = false;
}

long openmp_teams() { return g_teams; }

}  // namespace halfstep::backend::cpu::onednn
