#pragma once
// Loops on several threads. All threads of halfstep's kernels, oneDNN's among them, come from here.

#include <cstdint>
#include <memory>
#include <type_traits>

namespace halfstep {

/// A reference to a callable that outlives the call; costs two pointers.
template <class Signature>
class FunctionRef;
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
      FunctionRef(F&& f)  // NOLINT: implicit on purpose, a parameter type
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(args...);
        }) {}
  R operator()(Args... args) const { return call_(object_, args...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

/// The number of threads that parallel_for partitions its range for; at least 1. The default is
/// available_processors(). Where the system cannot start so many threads, fewer run all ranges.
int thread_count();

/// Sets thread_count() for all threads of the process; starts none. Errors: InternalError if n < 1.
void set_thread_count(int n);

/// Processors this process may use: affinity mask, capped by the cgroup's CPU quota; at least 1.
int available_processors();

/// Calls body(begin, end) on disjoint ranges that cover [0, n). The partition depends on n, grain
/// and thread_count() alone; ranges have at least `grain` elements, so small work stays on one
/// thread. Inside another parallel_for the body gets [0, n) in one call; while another thread runs
/// a team, the calling thread runs all ranges. Errors: the exception of the earliest range that
/// throws, rethrown after all ranges have run.
void parallel_for(std::int64_t n,
                  std::int64_t grain,
                  FunctionRef<void(std::int64_t begin, std::int64_t end)> body);

/// Calls body(i) for each i in [0, n), in ranges of parallel_for().
template <class F>
void parallel_for_each(std::int64_t n, std::int64_t grain, const F& body) {
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

/// Dynamic scheduling: calls body(task, worker) once for each task in [0, n), in order, as threads
/// become free; calls with the same worker in [0, workers) never overlap. Only for work whose
/// result does not depend on the worker: a thread that is descheduled runs fewer tasks.
void parallel_tasks(std::int64_t n,
                    std::int64_t workers,
                    FunctionRef<void(std::int64_t task, std::int64_t worker)> body);

}  // namespace halfstep
