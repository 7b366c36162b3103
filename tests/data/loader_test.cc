#include "data/loader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <set>

#include "core/parallel.h"
#include "files.h"

namespace halfstep::data::testing {
namespace {

struct Size {
  std::int64_t samples;
  std::int64_t batch;
};
constexpr std::array k_sizes{
    Size{1, 1}, Size{7, 1}, Size{7, 7}, Size{7, 3}, Size{8, 4}, Size{100, 32}, Size{5, 9}};

std::vector<std::int32_t> epoch_of(BatchOrder& order, std::int64_t epoch) {
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < order.steps_per_epoch(); ++i) {
    const Batch batch = order.batch_at(epoch * order.steps_per_epoch() + i);
    CHECK(batch.epoch == epoch);
    CHECK(batch.index == i);
    CHECK(batch.size() == order.batch_samples(batch.ordinal));
    CHECK((batch.size() == order.options().batch_size || i + 1 == order.steps_per_epoch()));
    CHECK(batch.size() >= 1);
    all.insert(all.end(), batch.samples.begin(), batch.samples.end());
  }
  return all;
}

TEST_CASE("loader: each epoch visits every sample once, the tail included") {
  for (const Size& size : k_sizes) {
    for (const bool shuffle : {false, true}) {
      CAPTURE(size.samples);
      CAPTURE(size.batch);
      CAPTURE(shuffle);
      BatchOrder order(size.samples, {.batch_size = size.batch, .seed = 5, .shuffle = shuffle});
      CHECK(order.steps_per_epoch() == (size.samples + size.batch - 1) / size.batch);
      std::vector<std::int32_t> in_order(static_cast<std::size_t>(size.samples));
      std::iota(in_order.begin(), in_order.end(), 0);
      for (const std::int64_t epoch : {0, 1, 1000}) {
        std::vector<std::int32_t> visited = epoch_of(order, epoch);
        if (!shuffle) CHECK(visited == in_order);
        std::sort(visited.begin(), visited.end());
        CHECK(visited == in_order);
      }
    }
  }
}

TEST_CASE("loader: streams go on with the next sample at each position of a batch") {
  for (const Size& size : k_sizes) {
    CAPTURE(size.samples);
    CAPTURE(size.batch);
    BatchOrder order(size.samples, {.batch_size = size.batch, .shuffle = false, .streams = true});
    const std::int64_t steps = order.steps_per_epoch();
    CHECK(steps == std::max<std::int64_t>(size.samples / size.batch, 1));
    for (const std::int64_t epoch : {0, 3}) {
      std::vector<std::int32_t> visited = epoch_of(order, epoch);
      const std::int64_t streams = order.batch_samples(0);
      for (std::int64_t i = 0; i < std::ssize(visited); ++i) {
        REQUIRE(visited[static_cast<std::size_t>(i)] == i % streams * steps + i / streams);
      }
      // Those at the end of the file that fill no batch are left out.
      std::sort(visited.begin(), visited.end());
      CHECK(std::adjacent_find(visited.begin(), visited.end()) == visited.end());
      CHECK(std::ssize(visited) == visited.back() + 1);
      CHECK(std::ssize(visited) == steps * streams);
    }
  }
}

TEST_CASE("loader: streams that keep all samples are longer by one, in front") {
  BatchOrder order(8, {.batch_size = 3, .shuffle = false, .streams = true, .keep_remainder = true});
  CHECK(order.steps_per_epoch() == 3);
  CHECK(epoch_of(order, 1) == std::vector<std::int32_t>{0, 3, 6, 1, 4, 7, 2, 5});
  CHECK(order.batch_samples(2) == 2);
  for (const Size& size : k_sizes) {
    CAPTURE(size.samples);
    CAPTURE(size.batch);
    BatchOptions options{.batch_size = size.batch, .shuffle = false, .streams = true};
    BatchOrder leaves_out(size.samples, options);
    options.keep_remainder = true;
    BatchOrder all(size.samples, options);
    std::vector<std::int32_t> visited = epoch_of(all, 0);
    if (size.samples % size.batch == 0) CHECK(visited == epoch_of(leaves_out, 0));
    std::sort(visited.begin(), visited.end());
    for (std::int64_t i = 0; i < size.samples; ++i) {
      REQUIRE(visited[static_cast<std::size_t>(i)] == i);
    }
    CHECK(std::ssize(visited) == size.samples);
  }
}

TEST_CASE("loader: random access gives what reading in sequence gives") {
  const BatchOptions options{.batch_size = 3, .seed = 9};
  BatchOrder sequential(20, options);
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < 30; ++i) batches.push_back(sequential.batch_at(i));
  BatchOrder random(20, options);
  for (const std::int64_t ordinal : {29, 0, 14, 13, 7, 28, 7}) {
    CHECK(random.batch_at(ordinal).samples == batches[static_cast<std::size_t>(ordinal)].samples);
  }
  CHECK_THROWS_AS(random.batch_at(-1), InternalError);
  CHECK_THROWS_AS(BatchOrder(0, options), InternalError);
  CHECK_THROWS_AS(BatchOrder(5, {.batch_size = 0}), InternalError);
}

TEST_CASE("loader: the order depends on the seed and the epoch and on nothing else") {
  std::set<std::vector<std::int32_t>> orders;
  for (const std::uint64_t seed : {0ULL, 1ULL, 2ULL, 1ULL << 40, 1ULL << 63}) {
    BatchOrder order(50, {.batch_size = 10, .seed = seed});
    for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
      const std::vector<std::int32_t> visited = epoch_of(order, epoch);
      orders.insert(visited);
      BatchOrder whole(50, {.batch_size = 50, .seed = seed});
      CHECK(epoch_of(whole, epoch) == visited);
    }
  }
  CHECK(orders.size() == 25);
}

TEST_CASE("loader: the order is the same on every machine") {
  BatchOrder order(10, {.batch_size = 10, .seed = 1234});
  CHECK((order.batch_at(0).samples == std::vector<std::int32_t>{4, 1, 8, 5, 3, 6, 9, 2, 7, 0}));
  CHECK((order.batch_at(1).samples == std::vector<std::int32_t>{1, 5, 6, 8, 7, 9, 4, 0, 3, 2}));
  BatchOrderHash hash(10, {.batch_size = 4, .seed = 3});
  CHECK(hash.up_to(7) == "450ab2883de5790f22bc73836275cdc0");
}

TEST_CASE("loader: partners are the samples of the batch of all ranks in another order") {
  const BatchOptions alone{.batch_size = 16, .seed = 8, .partners = true};
  BatchOrder order(40, alone);
  std::set<std::vector<std::int32_t>> permutations;
  for (std::int64_t ordinal = 0; ordinal < 6; ++ordinal) {
    CAPTURE(ordinal);
    const std::vector<std::int32_t> all = order.batch_at(ordinal).samples;
    const auto half = static_cast<std::ptrdiff_t>(order.batch_samples(ordinal));
    REQUIRE(std::ssize(all) == 2 * half);
    std::vector<std::int32_t> own(all.begin(), all.begin() + half);
    std::vector<std::int32_t> partners(all.begin() + half, all.end());
    std::vector<std::int32_t> of_ranks(static_cast<std::size_t>(2 * half));
    std::ptrdiff_t first = 0;
    for (int rank = 0; rank < 3; ++rank) {
      BatchOptions options = alone;
      options.rank = rank;
      options.ranks = 3;
      const std::vector<std::int32_t> part = BatchOrder(40, options).batch_at(ordinal).samples;
      const auto rows = static_cast<std::ptrdiff_t>(part.size() / 2);
      std::copy_n(part.begin(), rows, of_ranks.begin() + first);
      std::copy_n(part.begin() + rows, rows, of_ranks.begin() + half + first);
      first += rows;
    }
    CHECK(of_ranks == all);
    CHECK(own != partners);
    permutations.insert(partners);
    std::sort(own.begin(), own.end());
    std::sort(partners.begin(), partners.end());
    CHECK(own == partners);
  }
  CHECK(permutations.size() == 6);
}

TEST_CASE("loader: shuffling is fair") {
  // Where sample 0 of 4 lands over 4000 epochs: 1000 times each, with deviation sqrt(4000*3/16).
  BatchOrder order(4, {.batch_size = 1, .seed = 77});
  std::array<int, 4> counts{};
  constexpr int k_epochs = 4000;
  for (std::int64_t i = 0; i < 4 * k_epochs; ++i) {
    if (order.batch_at(i).samples[0] == 0) ++counts[static_cast<std::size_t>(i % 4)];
  }
  for (const int count : counts) CHECK(std::abs(count - 1000) < 5 * 27.4);
}

TEST_CASE("loader: the hash of the order can be asked for step by step") {
  const BatchOptions options{.batch_size = 4, .seed = 3};
  BatchOrderHash whole(10, options);
  BatchOrderHash stepwise(10, options);
  std::set<std::string> hashes;
  for (std::int64_t i = 0; i <= 7; ++i) hashes.insert(stepwise.up_to(i));
  CHECK(hashes.size() == 8);
  CHECK(whole.up_to(7) == stepwise.up_to(7));
  BatchOrderHash other(10, {.batch_size = 4, .seed = 4});
  CHECK(other.up_to(7) != whole.up_to(7));
  CHECK_THROWS_AS(whole.up_to(6), InternalError);
}

TEST_CASE("loader: rows are copied as they are, or scaled to floats") {
  const Split bytes_split{counting(DType::uint8, {20, 3, 2}), counting(DType::int32, {20})};
  const Split float_split{counting(DType::float32, {20, 6}), counting(DType::float32, {20, 2})};
  for (const bool parallel : {false, true}) {
    for (const bool as_floats : {false, true}) {
      for (const Split* split : {&bytes_split, &float_split}) {
        Loader loader(view(*split), {.batch_size = 8, .seed = 1}, 1.0 / 255.0);
        const DType dtype = as_floats ? DType::float32 : split->images.dtype();
        Tensor images(dtype, {8, 6});
        Tensor labels(split->labels.dtype(), split->labels.shape().with(0, 8));
        const bool scaled = dtype == DType::float32;
        for (std::int64_t ordinal = 0; ordinal < 6; ++ordinal) {
          const Batch batch = loader.batch_at(ordinal);
          loader.fill(batch, images.view(), labels.view(), parallel);
          const std::int64_t k = split->labels.elements() / 20;
          for (std::int64_t row = 0; row < batch.size(); ++row) {
            const std::int64_t sample = batch.samples[static_cast<std::size_t>(row)];
            for (std::int64_t p = 0; p < 6; ++p) {
              const double stored = element_as_double(split->images.view(), sample * 6 + p);
              const double got = element_as_double(images.view(), row * 6 + p);
              const bool table = split == &bytes_split;
              CHECK(got == (!scaled ? stored
                            : table
                                ? static_cast<float>(stored * (1.0 / 255.0))
                                : static_cast<float>(stored) * static_cast<float>(1.0 / 255.0)));
            }
            for (std::int64_t j = 0; j < k; ++j) {
              CHECK(element_as_double(labels.view(), row * k + j) ==
                    element_as_double(split->labels.view(), sample * k + j));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("loader: large batches are copied alike by any number of threads") {
  const Split split{counting(DType::uint8, {300, 64, 64, 1}), counting(DType::int32, {300})};
  Loader loader(view(split), {.batch_size = 256, .seed = 1});
  const int threads = thread_count();
  std::vector<Tensor> results;
  for (const int n : {1, 2, 5}) {
    set_thread_count(n);
    results.emplace_back(DType::uint8, Shape{256, 64, 64, 1});
    Tensor labels(DType::int32, {256});
    loader.fill(loader.batch_at(0), results.back().view(), labels.view());
  }
  set_thread_count(threads);
  CHECK(same(results[0], results[1]));
  CHECK(same(results[0], results[2]));
}

TEST_CASE("loader: destinations that do not fit are refused") {
  const Split split{counting(DType::uint8, {10, 4}), counting(DType::int32, {10})};
  Loader loader(view(split), {.batch_size = 5});
  const Batch batch = loader.batch_at(0);
  Tensor labels(DType::int32, {5});
  const auto fill = [&](DType dtype, const Shape& shape) {
    Tensor images(dtype, shape);
    loader.fill(batch, images.view(), labels.view());
  };
  CHECK_NOTHROW(fill(DType::uint8, {5, 2, 2}));
  CHECK_NOTHROW(fill(DType::uint8, {9, 4}));
  CHECK_THROWS_AS(fill(DType::uint8, {4, 4}), InternalError);
  CHECK_THROWS_AS(fill(DType::uint8, {5, 3}), InternalError);
  CHECK_THROWS_AS(fill(DType::float16, {5, 4}), InternalError);
  const Split uneven{counting(DType::uint8, {10, 4}), counting(DType::int32, {9})};
  CHECK_THROWS_AS(Loader(view(uneven), {}), InternalError);
}

}  // namespace
}  // namespace halfstep::data::testing
