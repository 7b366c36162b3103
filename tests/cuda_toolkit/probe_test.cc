// The real vendor on a machine with or without a GPU: it reports the components, and why no device
// is available.

#include <doctest/doctest.h>

#include <ostream>

#include "backend/cuda/vendor/vendor.h"

namespace halfstep::backend::cuda {
namespace {

TEST_CASE("probe: versions are told anyhow, a reason where there is no device") {
  const DeviceProbe found = probe();
  CHECK_FALSE(found.runtime.empty());
  CHECK(found.cublas.find('.') != std::string::npos);
  CHECK(found.cudnn.find('.') != std::string::npos);
  if (found.devices.empty()) {
    REQUIRE(found.unavailable);
    CHECK(found.unavailable->reason.find("NVIDIA") != std::string::npos);
    try {
      open_vendor({.cache_folder = {}});
      FAIL("opened a device that is not there");
    } catch (const VendorError& e) {
      CHECK(e.failure() == Failure::unavailable);
      CHECK(e.what() == found.unavailable->reason);
    }
  } else {
    CHECK(found.devices.front().compute_capability > 0);
    CHECK(found.devices.front().memory_bytes > 0);
  }
}

TEST_CASE("probe: NCCL has a version, or is not there") {
  const std::string version = probe().nccl;
  CAPTURE(version);
  CHECK((version.empty() ||
         (version.starts_with("2.") && version.find('.', 2) != std::string::npos)));
}

}  // namespace
}  // namespace halfstep::backend::cuda
