#include <dlfcn.h>
#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <string>

#include "backend/backend.h"
#include "backend/cpu/onednn/onednn.h"
#include "core/parallel.h"
#include "core/thread_pool.h"

namespace halfstep::backend {
namespace cpu::onednn {
namespace {

/// A function that the loaded OpenMP runtime may export.
using SetNumber = void(int);
SetNumber* runtime_function(const char* name) {
  return reinterpret_cast<SetNumber*>(dlsym(RTLD_DEFAULT, name));
}

/// The mechanism that sets the number of oneDNN's threads.
enum class Control {
  pool,        ///< core/thread_pool runs the loops
  one,         ///< one thread, by exported_openmp_functions() or by omp_set_num_threads
  set_number,  ///< omp_set_num_threads, kmp_set_blocktime
  none         ///< the runtime decides
};

struct Runtime {
  Control control = Control::none;
  std::string name;
  std::string reason;
};

Runtime openmp_runtime() {
  const auto imports = openmp_imports(reinterpret_cast<const void*>(&dnnl_version));
  const auto exported = exported_openmp_functions();
  const auto imported = [&](std::string_view name) {
    return std::find(imports.begin(), imports.end(), name) != imports.end();
  };
  const auto is_exported = [&](std::string_view name) {
    return std::any_of(exported.begin(), exported.end(), [&](const OpenMpFunction& function) {
      return function.name == name && dlsym(RTLD_DEFAULT, name.data()) == function.address;
    });
  };
  const bool gnu = std::any_of(imports.begin(), imports.end(), [](std::string_view name) {
    return name.starts_with("GOMP_");
  });
  const std::string name = gnu ? "GNU OpenMP" : "LLVM or Intel OpenMP";
  if (!exported.empty()) {
    const auto other = std::find_if_not(imports.begin(), imports.end(), is_exported);
    if (other != imports.end()) {
      return {Control::one,
              name,
              fmt::format("the loaded libdnnl calls {}, which is not halfstep's", *other)};
    }
    if (!imported("GOMP_parallel")) {
      return {Control::one, name, "the loaded libdnnl does not import GOMP_parallel"};
    }
    return {Control::pool, "halfstep's pool", "the loaded libdnnl calls halfstep's GOMP_parallel"};
  }
  if (runtime_function("omp_set_num_threads") == nullptr) {
    return {Control::none, name, "the loaded OpenMP runtime has no omp_set_num_threads"};
  }
  // LLVM's runtime also implements the GNU OpenMP interface.
  if (runtime_function("kmp_set_blocktime") != nullptr) {
    return {Control::set_number, "LLVM or Intel OpenMP", "built without halfstep's GOMP_parallel"};
  }
  return {Control::one,
          name,
          "built without halfstep's GOMP_parallel; waiting threads of GNU OpenMP would spin for "
          "milliseconds"};
}

const Runtime& runtime() {
  static const Runtime k_runtime = [] {
    switch (dnnl_version()->cpu_runtime) {
      case DNNL_RUNTIME_OMP:
        return openmp_runtime();
      case DNNL_RUNTIME_TBB:
        return Runtime{Control::none, "TBB", "TBB sets the number of its threads"};
      case DNNL_RUNTIME_THREADPOOL:
        return Runtime{Control::none, "no threads", "this oneDNN expects a pool with each call"};
      case DNNL_RUNTIME_SEQ:
        return Runtime{Control::none, "no threads", "this oneDNN is sequential"};
      default:
        return Runtime{Control::none, "an unknown runtime", "this oneDNN is not built on OpenMP"};
    }
  }();
  return k_runtime;
}

}  // namespace

void share_threads() {
  const Control control = runtime().control;
  run_openmp_on_pool(control == Control::pool);
  if (!exported_openmp_functions().empty()) return;
  if (control == Control::one) runtime_function("omp_set_num_threads")(1);
  if (control == Control::set_number) {
    // Milliseconds that a waiting thread spins before it sleeps.
    runtime_function("kmp_set_blocktime")(0);
    runtime_function("omp_set_num_threads")(thread_count());
  }
}

bool keeps_to_calling_thread() {
  return runtime().control == Control::pool || runtime().name == "no threads";
}

void on_calling_thread(FunctionRef<void()> body) {
  if (keeps_to_calling_thread()) {
    run_alone(body);
  } else {
    body();
  }
}

}  // namespace cpu::onednn

OneDnnThreads onednn_threads() {
  using cpu::onednn::Control;
  const cpu::onednn::Runtime& runtime = cpu::onednn::runtime();
  OneDnnThreads threads{runtime.name, {}, runtime.reason};
  switch (runtime.control) {
    case Control::pool:
      threads.count = start_threads(thread_count());
      break;
    case Control::one:
      threads.count = 1;
      break;
    case Control::set_number:
      threads.count = thread_count();
      break;
    case Control::none:
      if (runtime.name == "no threads") threads.count = 1;
      break;
  }
  return threads;
}

}  // namespace halfstep::backend
