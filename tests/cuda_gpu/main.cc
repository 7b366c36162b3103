// The device tests on a GPU of this machine; without one they report it and exit successfully.
//
//   test_cuda_gpu [doctest's options]
//   test_cuda_gpu --properties    prints the device properties that cuDNN needs, for
//                                 tests/cuda/devices

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <string_view>

#include "backend/cuda/vendor/real/conv_plans.h"
#include "backend/cuda/vendor/vendor.h"

int main(int argc, char** argv) {
  namespace cuda = halfstep::backend::cuda;
  const cuda::DeviceProbe probe = cuda::probe();
  if (probe.unavailable) {
    std::printf("no GPU to test on: %s\n", probe.unavailable->reason.c_str());
    return 0;
  }
  if (argc == 2 && std::string_view(argv[1]) == "--properties") {
    std::printf("%s\n", cuda::real::device_properties_json(0).c_str());
    return 0;
  }
  return doctest::Context(argc, argv).run();
}
