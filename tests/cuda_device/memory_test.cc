// Memory, order and captured graphs of the device.

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <ostream>
#include <vector>

#include "cuda_device/device.h"

namespace halfstep::testing {
namespace {

TEST_CASE("device memory: copies keep their order and their bytes") {
  backend::cuda::Vendor& vendor = device();
  std::vector<std::uint8_t> up(100'003);
  std::iota(up.begin(), up.end(), std::uint8_t{0});
  std::vector<std::uint8_t> down(up.size());
  const OnDevice a(up.size()), b(up.size());
  vendor.upload(a.address(), up.data(), up.size());
  vendor.copy(b.address(), a.address(), up.size());
  vendor.fill(a.address(), 7, 3);
  vendor.download(down.data(), b.address(), down.size());
  vendor.synchronize();
  CHECK(down == up);
  vendor.download(down.data(), a.address(), down.size());
  vendor.synchronize();
  CHECK(down[2] == 7);
  CHECK(down[3] == 3);
}

TEST_CASE("device memory: what cannot be had is a null pointer, and the device stays usable") {
  backend::cuda::Vendor& vendor = device();
  CHECK(vendor.allocate(vendor.memory().total * 2) == nullptr);
  const OnDevice still(1024);
  CHECK(still.address() != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(still.address()) % backend::cuda::k_alignment == 0);
}

TEST_CASE("device graphs: a captured copy runs each time it is launched") {
  backend::cuda::Vendor& vendor = device();
  auto* host = static_cast<std::uint32_t*>(vendor.allocate_host(8));
  const OnDevice memory(8);
  const auto* word = static_cast<std::uint32_t*>(memory.address());
  vendor.begin_capture();
  vendor.upload(memory.address(), host, 4);
  vendor.copy(static_cast<std::uint32_t*>(memory.address()) + 1, word, 4);
  vendor.download(host + 1, word + 1, 4);
  const auto graph = vendor.end_capture();
  CHECK(graph->nodes() == 3);
  for (const std::uint32_t value : {5U, 77U}) {
    host[0] = value;
    graph->launch();
    vendor.synchronize();
    CHECK(host[1] == value);
  }
  vendor.release_host(host);
}

TEST_CASE("device memory: the host may write to page-locked memory once its copy has passed") {
  backend::cuda::Vendor& vendor = device();
  constexpr std::size_t k_bytes = std::size_t{1} << 22;
  auto* host = static_cast<std::uint8_t*>(vendor.allocate_host(k_bytes));
  const OnDevice memory(k_bytes);
  const auto uploaded = vendor.event();
  uploaded->wait();  // nothing was recorded
  for (std::uint8_t value = 1; value <= 3; ++value) {
    uploaded->wait();
    std::fill_n(host, k_bytes, value);
    vendor.upload(memory.address(), host, k_bytes);
    uploaded->record();
  }
  uploaded->wait();
  std::fill_n(host, k_bytes, std::uint8_t{9});
  std::vector<std::uint8_t> found(k_bytes);
  vendor.download(found.data(), memory.address(), k_bytes);
  vendor.synchronize();
  CHECK(found == std::vector<std::uint8_t>(k_bytes, 3));
  vendor.release_host(host);
}

TEST_CASE("device events: time passes between them") {
  const auto begin = device().event();
  const auto end = device().event();
  const OnDevice memory(1 << 20);
  begin->record();
  device().fill(memory.address(), 1, 1 << 20);
  end->record();
  end->wait();
  CHECK(end->seconds_since(*begin) >= 0);
}

}  // namespace
}  // namespace halfstep::testing
