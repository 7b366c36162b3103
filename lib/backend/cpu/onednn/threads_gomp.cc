// oneDNN's parallel regions on the threads of core/parallel. It calls GNU OpenMP by a handful of
// functions; those below are found before the library's. So there is one set of threads, and none
// that spins for milliseconds between two regions, as GNU OpenMP's do.

#include "backend/cpu/onednn/limit.h"
#include "core/parallel.h"
#include "core/thread_pool.h"

extern "C" {

[[gnu::visibility("default")]] void GOMP_parallel(void (*body)(void*),
                                                  void* data,
                                                  unsigned threads,
                                                  unsigned /*flags*/) {
  const int size = threads == 0 ? halfstep::thread_count() : static_cast<int>(threads);
  const bool alone = size == 1 || halfstep::team_member().in_team;
  if (alone || !halfstep::run_team(size, halfstep::Team::cooperating, [=](int) { body(data); })) {
    halfstep::run_alone([=] { body(data); });
  }
}

[[gnu::visibility("default")]] void GOMP_barrier() { halfstep::team_barrier(); }
[[gnu::visibility("default")]] int omp_get_thread_num() { return halfstep::team_member().index; }
[[gnu::visibility("default")]] int omp_get_num_threads() { return halfstep::team_member().size; }
[[gnu::visibility("default")]] int omp_in_parallel() { return halfstep::team_member().in_team; }
[[gnu::visibility("default")]] int omp_get_max_threads() { return halfstep::thread_count(); }

}  // extern "C"

namespace halfstep::backend::cpu::onednn {

void share_threads() {}

}  // namespace halfstep::backend::cpu::onednn
