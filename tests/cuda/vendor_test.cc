// The emulated device follows a real one's rules: work waits until a synchronization, captured
// graphs run in order, memory is limited and has an owner.

#include "backend/cuda/vendor/vendor.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <memory>
#include <ostream>

#include "backend/cuda/vendor/emulated/queue.h"
#include "core/error.h"
#include "core/half.h"

namespace halfstep::backend::cuda {
namespace {

std::unique_ptr<Vendor> device(std::size_t limit = 0) {
  return open_vendor({.cache_folder = {}, .memory_limit = limit});
}

TEST_CASE("emulated vendor: copies happen when the stream reaches them") {
  const auto vendor = device();
  std::array<float, 4> up{1, 2, 3, 4};
  std::array<float, 4> down{};
  auto* a = static_cast<float*>(vendor->allocate(sizeof up));
  auto* b = static_cast<float*>(vendor->allocate(sizeof up));
  REQUIRE(a != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(a) % k_alignment == 0);
  vendor->upload(a, up.data(), sizeof up);
  vendor->copy(b, a, sizeof up);
  vendor->fill(a, 0, sizeof(float));
  vendor->download(down.data(), b, sizeof down);
  CHECK(down == std::array<float, 4>{});
  vendor->synchronize();
  CHECK(down == up);
  vendor->download(down.data(), a, sizeof down);
  vendor->synchronize();
  CHECK(down == std::array<float, 4>{0, 2, 3, 4});
  vendor->release(a);
  vendor->release(b);
}

TEST_CASE("emulated vendor: host memory is read when the stream reaches the copy, and not before") {
  const auto vendor = device();
  auto* host = static_cast<int*>(vendor->allocate_host(sizeof(int)));
  auto* a = static_cast<int*>(vendor->allocate(sizeof(int)));
  const auto uploaded = vendor->event();
  for (const bool waits : {false, true}) {
    *host = 1;
    vendor->upload(a, host, sizeof(int));
    uploaded->record();
    if (waits) uploaded->wait();
    *host = 2;
    int found = 0;
    vendor->download(&found, a, sizeof found);
    vendor->synchronize();
    CHECK(found == (waits ? 1 : 2));
  }
  vendor->release_host(host);
  vendor->release(a);
}

TEST_CASE("emulated vendor: captured work does not run until it is launched, then every time") {
  const auto vendor = device();
  auto* counter = static_cast<int*>(vendor->allocate(sizeof(int)));
  vendor->fill(counter, 0, sizeof(int));
  vendor->begin_capture();
  emulated::enqueue(vendor->stream(), [counter] { *counter += 1; });
  emulated::enqueue(vendor->stream(), [counter] { *counter *= 2; });
  CHECK_THROWS_AS(vendor->synchronize(), VendorError);
  CHECK_THROWS_AS(vendor->allocate(16), VendorError);
  CHECK_THROWS_AS(vendor->begin_capture(), VendorError);
  const auto graph = vendor->end_capture();
  CHECK(graph->nodes() == 2);
  int value = -1;
  vendor->download(&value, counter, sizeof value);
  vendor->synchronize();
  CHECK(value == 0);
  for (int i = 0; i < 3; ++i) graph->launch();
  vendor->download(&value, counter, sizeof value);
  vendor->synchronize();
  CHECK(value == 14);  // ((0+1)*2+1)*2 ...
  CHECK_THROWS_AS(vendor->end_capture(), VendorError);
}

TEST_CASE("emulated vendor: memory is limited, counted and given back") {
  const auto vendor = device(1 << 20);
  CHECK(vendor->memory().total == 1 << 20);
  void* half = vendor->allocate(1 << 19);
  REQUIRE(half != nullptr);
  CHECK(vendor->memory().free == 1 << 19);
  CHECK(vendor->allocate((1 << 19) + 1) == nullptr);
  CHECK(vendor->allocate(0) == nullptr);
  vendor->release(half);
  CHECK(vendor->memory().free == 1 << 20);
  int elsewhere = 0;
  CHECK_THROWS_AS(vendor->release(&elsewhere), InternalError);
}

TEST_CASE("emulated vendor: copies stay inside of device memory") {
  const auto vendor = device();
  std::array<char, 64> host{};
  auto* memory = static_cast<char*>(vendor->allocate(32));
  CHECK_THROWS_AS(vendor->upload(memory, host.data(), 33), VendorError);
  CHECK_THROWS_AS(vendor->download(host.data(), memory + 16, 17), VendorError);
  CHECK_THROWS_AS(vendor->copy(memory, host.data(), 8), VendorError);
  CHECK_NOTHROW(vendor->upload(memory + 16, host.data(), 16));
}

TEST_CASE("emulated vendor: a wait for an event runs the calls before it, and no further ones") {
  const auto vendor = device();
  const auto begin = vendor->event();
  const auto end = vendor->event();
  int calls = 0;
  const auto call = [&] { emulated::enqueue(vendor->stream(), [&calls] { ++calls; }); };
  for (int round = 0; round < 2; ++round) {
    calls = 0;
    call();
    begin->record();
    call();
    end->record();
    call();
    CHECK(calls == 0);
    if (round == 1) {
      begin->wait();
      CHECK(calls == 1);
    }
    end->wait();
    CHECK(calls == 2);
    vendor->synchronize();
  }
  CHECK(end->seconds_since(*begin) >= 0);
}

TEST_CASE("emulated vendor: a matmul waits its turn and wants aligned operands") {
  const auto vendor = device();
  const auto matmul = vendor->matmul({.m = 1, .n = 1, .k = 1});
  auto* memory = static_cast<std::byte*>(vendor->allocate(1024 + matmul->workspace_bytes()));
  auto* a = reinterpret_cast<float*>(memory);
  auto* b = reinterpret_cast<float*>(memory + 256);
  auto* c = reinterpret_cast<float*>(memory + 512);
  const float two = 2;
  const float three = 3;
  float result = 0;
  vendor->upload(a, &two, sizeof two);
  vendor->upload(b, &three, sizeof three);
  matmul->run({.a = a, .b = b, .c = c}, memory + 1024);
  vendor->download(&result, c, sizeof result);
  CHECK(result == 0);
  vendor->synchronize();
  CHECK(result == 6);
  CHECK_THROWS_AS(matmul->run({.a = a + 1, .b = b, .c = c}, memory + 1024), VendorError);
  CHECK_THROWS_AS(matmul->run({.a = a, .b = b, .c = c}, memory + 1040), VendorError);
  CHECK_THROWS_AS(matmul->run({.a = a, .b = b}, memory + 1024), VendorError);
}

TEST_CASE("emulated vendor: there is one device") {
  CHECK_FALSE(probe().unavailable);
  CHECK(probe().devices.size() == 1);
  try {
    open_vendor({.device = 1, .cache_folder = {}});
    FAIL("opened device 1");
  } catch (const VendorError& e) {
    CHECK(e.failure() == Failure::unavailable);
  }
}

}  // namespace
}  // namespace halfstep::backend::cuda
