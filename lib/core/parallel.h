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

/// Threads that a parallel_for may be cut for; at least 1. Unless set, available_processors().
/// Where the system refuses to start so many, fewer threads do the same pieces.
int thread_count();

/// Sets thread_count() for all threads of the process; starts none. Errors: InternalError if n < 1.
void set_thread_count(int n);

/// Processors this process may use: affinity mask, capped by the cgroup's CPU quota; at least 1.
int available_processors();

/// Calls body(begin, end) on disjoint ranges that cover [0, n). The cut depends on n, grain and
/// thread_count() alone; ranges hold at least `grain` elements, so small work stays on one thread.
/// Inside another parallel_for the body gets [0, n) at once; while another thread runs a team the
/// calling thread does all ranges. Errors: those of the body, once all other ranges are done; of
/// several the one of the earliest range.
void parallel_for(std::int64_t n,
                  std::int64_t grain,
                  FunctionRef<void(std::int64_t begin, std::int64_t end)> body);

/// Calls body(piece, part) once for each piece in [0, n), in their order, as threads become free;
/// calls with the same part in [0, parts) come one after the other. For work whose result does not
/// depend on who does it: a thread that is held up by others takes fewer pieces.
void parallel_pieces(std::int64_t n,
                     std::int64_t parts,
                     FunctionRef<void(std::int64_t piece, std::int64_t part)> body);

}  // namespace halfstep
