#pragma once
// The interface of this folder without oneDNN headers: kernels, instruction set, threads.

#include <span>
#include <string_view>
#include <vector>

#include "backend/capabilities.h"
#include "backend/kernel.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu::onednn {

/// The kernels of this folder.
std::vector<Kernel> conv_kernels();
std::vector<Kernel> matmul_kernels();

/// Limits oneDNN to `isa`. Has an effect only before the process's first primitive.
void limit(Isa isa);

/// The instruction set that oneDNN uses: at most the limit.
Isa effective_isa();

/// Gives oneDNN thread_count() threads: those of core/thread_pool if onednn_threads() says so, else
/// threads of its own runtime. Called before the first primitive and after each
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
std::span<const OpenMpFunction> exported_openmp_functions();

/// Whether those functions run oneDNN's loops on core/thread_pool, or report one thread. Initially
/// the latter.
void run_openmp_on_pool(bool on);

/// Whether oneDNN keeps to the calling thread inside run_alone(), for primitives that were created
/// inside it too: it runs on core/thread_pool, or has no threads.
bool keeps_to_calling_thread();

/// Calls body, inside run_alone() where keeps_to_calling_thread().
void on_calling_thread(FunctionRef<void()> body);

/// Calls body, whose primitives have loops without barriers, as reorders have: on a pool these run
/// on the threads that are free.
void run_independent_loops(FunctionRef<void()> body);

/// Number of loops they ran on more than one thread, all of which they needed.
long openmp_teams();

/// Names of the undefined symbols of GNU (GOMP_, omp_), LLVM and Intel OpenMP (__kmpc_, kmp_) in
/// the dynamic symbol table of the loaded object that contains `address`. They are valid as long as
/// the object is loaded. Empty where that object has no such table.
std::vector<std::string_view> openmp_imports(const void* address);

}  // namespace halfstep::backend::cpu::onednn
