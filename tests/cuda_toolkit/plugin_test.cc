// The real plugin on a machine with or without a GPU: it carries code for every generation, loads,
// and says why it cannot run; the program needs none of its libraries.

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <ostream>
#include <string>

#include "backend/cuda/cuda.h"
#include "cuda_toolkit/fatbin.h"
#include "support/paths.h"

namespace halfstep::backend::cuda {
namespace {

std::filesystem::path plugin() { return test::program().parent_path() / "libhalfstep_cuda.so"; }

TEST_CASE("plugin: machine code for Turing, Ampere and Hopper, PTX for what comes after") {
  const std::set<std::string> code = testing::gpu_code(plugin());
  for (const char* wanted : {"sm_75", "sm_80", "sm_90", "compute_90"}) {
    CAPTURE(wanted);
    CHECK(code.contains(wanted));
  }
}

TEST_CASE("plugin: it loads, tells its libraries' versions, and why it cannot run") {
  const Detection found = detect({plugin().string(), {}});
  CHECK(found.plugin == plugin().string());
  CHECK(found.flavour == "cuda");
  CHECK(found.runtime.find('.') != std::string::npos);
  CHECK(found.cublas.find('.') != std::string::npos);
  CHECK(found.cudnn.find('.') != std::string::npos);
  if (found.devices.empty()) {
    REQUIRE(found.unavailable);
    CAPTURE(found.unavailable->reason);
    CHECK(found.unavailable->reason.find("NVIDIA driver") != std::string::npos);
    CHECK_FALSE(found.unavailable->remedy.empty());
  } else {
    CHECK_FALSE(found.unavailable);
  }
}

TEST_CASE("plugin: the program and the emulated plugin name no library of CUDA's") {
  for (const auto& file :
       {test::program(), test::program().parent_path() / "libhalfstep_cuda_emulated.so"}) {
    CAPTURE(file.string());
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream),
                            std::istreambuf_iterator<char>()};
    CHECK_FALSE(bytes.empty());
    for (const char* library : {"libcudart.so", "libcublasLt.so", "libcudnn.so"}) {
      CAPTURE(library);
      CHECK(bytes.find(library) == std::string::npos);
    }
    CHECK(testing::gpu_code(file).empty());
  }
}

}  // namespace
}  // namespace halfstep::backend::cuda
