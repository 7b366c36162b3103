// The threads that run oneDNN's parallel loops.

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string_view>

#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn/onednn.h"
#include "core/parallel.h"
#include "fixture.h"
#include "support/kernels.h"

namespace halfstep::testing {
namespace {

namespace onednn = backend::cpu::onednn;

/// Puts the thread count back when a test is over.
struct ThreadCountGuard {
  int before = thread_count();
  ~ThreadCountGuard() { (void)backend::cpu_backend(before); }
};

/// Teams of threads that the program's OpenMP functions run during a float32 matmul by oneDNN of
/// two size x size matrices.
long teams_of_a_matmul(int threads, std::int64_t size) {
  const backend::Backend cpu = backend::cpu_backend(threads);
  const Shape shape{size, size};
  OpCase c{.name = fmt::format("MatMul/{0}x{0}x{0}", size),
           .op = "MatMul",
           .inputs = {uniform(shape), uniform(shape)},
           .terms = size,
           .magnitude = 4 * std::sqrt(static_cast<double>(size))};
  for (const backend::Kernel& kernel : backend::cpu::onednn_kernels()) {
    if (kernel.op != "MatMul") continue;
    BuiltCase built = build(c, DType::float32);
    const OneKernel one(kernel, cpu.capabilities);
    if (!one.takes(built)) continue;
    const long before = onednn::openmp_teams();
    (void)one.run(built);
    return onednn::openmp_teams() - before;
  }
  return 0;
}

}  // namespace

TEST_CASE("onednn threads: convolutions of pieces of a batch agree and start no loops of oneDNN's" *
          doctest::test_suite("slow")) {
  const ThreadCountGuard guard;
  const ConvShape convs[] = {
      {"equal pieces", {24, 14, 14, 16}, {3, 3, 16, 16}},
      {"a smaller last piece", {17, 14, 13, 16}, {3, 3, 16, 24}},
      {"more pieces than threads", {7, 30, 30, 48}, {3, 3, 48, 32}},
      {"an image larger than a piece", {5, 40, 40, 64}, {1, 1, 64, 64}},
      {"first layer", {37, 28, 28, 1}, {5, 5, 1, 16}, {2, 2}},
      {"a large filter", {3, 8, 8, 96}, {3, 3, 96, 80}},
      {"depthwise", {19, 28, 28, 40}, {3, 3, 40, 1}},
  };
  const std::vector<OpCase> cases = conv_cases(convs);
  for (const int threads : {1, 2, 3}) {
    CAPTURE(threads);
    const backend::Backend cpu = backend::cpu_backend(threads);
    const long before = onednn::openmp_teams();
    int runs = 0;
    for (const backend::Kernel& kernel : backend::cpu::onednn_kernels()) {
      if (kernel.op.find("Conv2") == std::string_view::npos || by_halves(kernel)) continue;
      runs += check_against_reference(kernel, cpu.capabilities, cases);
    }
    CHECK(runs > 40);
    if (onednn::keeps_to_calling_thread()) CHECK(onednn::openmp_teams() == before);
  }
}

TEST_CASE("onednn threads: its loops reach the pool exactly where that is said") {
  const ThreadCountGuard guard;
  CHECK(teams_of_a_matmul(1, 512) == 0);
  const bool reached = teams_of_a_matmul(2, 512) > 0;
  const backend::OneDnnThreads threads = backend::onednn_threads();
  CAPTURE(threads.runtime);
  CAPTURE(threads.reason);
  CHECK(reached == (threads.runtime == "halfstep's pool"));
  if (reached) CHECK(threads.count == 2);
  CHECK_FALSE(threads.reason.empty());
}

TEST_CASE("onednn threads: a matmul too small to wake a thread for runs on the calling one") {
  const ThreadCountGuard guard;
  CHECK(teams_of_a_matmul(2, 63) == 0);
}

TEST_CASE(
    "onednn threads: on the pool, each OpenMP function that libdnnl imports is the program's") {
  (void)backend::cpu_backend(thread_count());
  if (backend::onednn_threads().runtime != "halfstep's pool") return;
  const auto imports = onednn::openmp_imports(dlsym(RTLD_DEFAULT, "dnnl_version"));
  CHECK(std::find(imports.begin(), imports.end(), "GOMP_parallel") != imports.end());
  for (std::string_view name : imports) {
    CAPTURE(name);
    const auto exported = onednn::exported_openmp_functions();
    CHECK(
        std::any_of(exported.begin(), exported.end(), [&](const onednn::OpenMpFunction& function) {
          return function.name == name && function.address == dlsym(RTLD_DEFAULT, name.data());
        }));
  }
}

TEST_CASE("onednn threads: a library without OpenMP imports none of its functions") {
  CHECK(onednn::openmp_imports(dlsym(RTLD_DEFAULT, "fopen")).empty());
  CHECK(onednn::openmp_imports(nullptr).empty());
}

}  // namespace halfstep::testing
