#include "data/prefetcher.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "files.h"

namespace halfstep::data::testing {
namespace {

using namespace std::chrono_literals;

TEST_CASE("prefetch: batches are those of the loader, in sequence, again and after jumps") {
  const Split split{counting(DType::uint8, {20, 3}), counting(DType::int32, {20})};
  for (const int ahead : {0, 1, 3}) {
    for (const DType dtype : {DType::uint8, DType::float32}) {
      Loader loader(view(split), {.batch_size = 6, .seed = 2}, 0.5);
      Prefetcher prefetcher(loader, {.first = 3, .ahead = ahead, .image_dtype = dtype});
      for (const std::int64_t ordinal : {3, 4, 4, 5, 6, 7, 20, 21, 2, 3, 3, 4, 40}) {
        CAPTURE(ordinal);
        const LoadedBatch& got = prefetcher.take(ordinal);
        const Batch want = loader.batch_at(ordinal);
        CHECK(got.batch.ordinal == ordinal);
        CHECK(got.batch.samples == want.samples);
        Tensor images(dtype, {6, 3});
        Tensor labels(DType::int32, {6});
        loader.fill(want, images.view(), labels.view());
        const auto size = static_cast<std::size_t>(want.size());
        CHECK(std::memcmp(images.as<std::byte>(),
                          got.images.as<std::byte>(),
                          size * 3 * size_bytes(dtype)) == 0);
        CHECK(std::memcmp(labels.as<std::byte>(), got.labels.as<std::byte>(), size * 4) == 0);
      }
    }
  }
}

TEST_CASE("prefetch: the next batch is prepared while one is in use, and no more than asked for") {
  std::atomic<std::int64_t> made = 0;
  Prefetcher prefetcher([&](std::int64_t, LoadedBatch&) { ++made; }, {.end = 5, .ahead = 2});
  prefetcher.take(0);
  for (int i = 0; made < 3 && i < 2000; ++i) std::this_thread::sleep_for(1ms);
  CHECK(made == 3);
  std::this_thread::sleep_for(20ms);
  CHECK(made == 3);
  for (std::int64_t i = 1; i < 5; ++i) prefetcher.take(i);
  std::this_thread::sleep_for(20ms);
  CHECK(made == 5);
  CHECK_THROWS_AS(prefetcher.take(5), InternalError);
}

TEST_CASE("prefetch: what goes wrong is thrown where the batch is taken, and can be left behind") {
  Prefetcher prefetcher(
      [](std::int64_t ordinal, LoadedBatch& slot) {
        if (ordinal == 2) throw std::runtime_error("broken batch");
        slot.batch.ordinal = ordinal;
      },
      {.ahead = 3});
  CHECK(prefetcher.take(0).batch.ordinal == 0);
  CHECK(prefetcher.take(1).batch.ordinal == 1);
  CHECK_THROWS_WITH_AS(prefetcher.take(2), "broken batch", std::runtime_error);
  CHECK_THROWS_WITH_AS(prefetcher.take(2), "broken batch", std::runtime_error);
  CHECK(prefetcher.take(3).batch.ordinal == 3);
  CHECK(prefetcher.take(4).batch.ordinal == 4);
}

TEST_CASE("prefetch: it ends cleanly at any moment") {
  for (int i = 0; i < 50; ++i) {
    Prefetcher prefetcher(
        [&](std::int64_t, LoadedBatch&) {
          if (i % 3 == 0) std::this_thread::sleep_for(1ms);
          if (i % 5 == 0) throw std::runtime_error("never seen");
        },
        {.end = i % 4, .ahead = i % 3});
    if (i % 2 == 0 && i % 5 != 0 && i % 4 > 0) prefetcher.take(0);
  }
}

TEST_CASE("prefetch: batches stay as they are until the next is taken") {
  Prefetcher prefetcher(
      [](std::int64_t ordinal, LoadedBatch& slot) {
        slot.batch.samples.assign(1000, static_cast<std::int32_t>(ordinal));
      },
      {.ahead = 1});
  for (std::int64_t ordinal = 0; ordinal < 200; ++ordinal) {
    const LoadedBatch& batch = prefetcher.take(ordinal);
    if (ordinal % 20 == 0) std::this_thread::sleep_for(1ms);
    const bool whole = std::all_of(batch.batch.samples.begin(),
                                   batch.batch.samples.end(),
                                   [&](std::int32_t v) { return v == ordinal; });
    CHECK(whole);
  }
}

}  // namespace
}  // namespace halfstep::data::testing
