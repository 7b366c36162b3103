#pragma once
// The threads that run oneDNN's parallel loops.

#include <span>
#include <string_view>

namespace halfstep::backend::cpu::onednn {

/// Gives oneDNN thread_count() threads: those of core/thread_pool where onednn_threads() says so,
/// else threads of its own runtime. To be called before the first primitive and after each
/// set_thread_count(); an OpenMP runtime of oneDNN's own applies the number to the calling thread
/// only.
void share_threads();

/// A function of the GNU OpenMP interface that the program exports, so that the loader prefers it
/// to libgomp's.
struct OpenMpFunction {
  std::string_view name;
  const void* address;
};

/// All of them; none where the program was built to leave oneDNN its own OpenMP runtime.
std::span<const OpenMpFunction> own_openmp_functions();

/// Whether those functions run oneDNN's loops on core/thread_pool, or report one thread. Initially
/// the latter.
void run_openmp_on_pool(bool on);

/// Number of loops they ran on more than one thread, to test that oneDNN calls them.
long openmp_teams();

}  // namespace halfstep::backend::cpu::onednn
