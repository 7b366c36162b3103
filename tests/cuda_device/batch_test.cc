// Batches gathered on the device, against those that the loader makes.

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <ostream>
#include <string_view>
#include <vector>

#include "backend/cuda/kernels/cast.h"
#include "backend/cuda/kernels/dataset.h"
#include "cuda_device/device.h"
#include "data/loader.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

namespace own = backend::cuda::kernels;

struct Samples {
  Tensor images;
  Tensor labels;
};

Samples samples(DType dtype, std::int64_t count) {
  Samples s{Tensor(dtype, {count, 3, 5, 1}), Tensor(DType::int32, {count})};
  for (std::int64_t i = 0; i < s.images.elements(); ++i) {
    if (dtype == DType::uint8) s.images.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 37);
    if (dtype == DType::float32) s.images.as<float>()[i] = static_cast<float>(i) * 0.37F - 20;
  }
  std::iota(s.labels.as<std::int32_t>(), s.labels.as<std::int32_t>() + count, 100);
  return s;
}

Tensor vector_of(const std::vector<std::int32_t>& values) {
  Tensor t(DType::int32, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.as<std::int32_t>());
  return t;
}

/// The batch that the device gathers, of `dtype` and `shape`.
Tensor gathered(own::GatherBatchParams p, DType dtype, const Shape& shape) {
  Tensor batch(dtype, shape);
  const OnDevice memory(batch.bytes());
  p.element_bytes = size_bytes(dtype);
  p.batch = memory.address();
  p.count = shape[0];
  p.row_elements = shape.elements(1, shape.rank());
  own::gather_batch(device().stream(), p);
  memory.read(batch);
  return batch;
}

}  // namespace

TEST_CASE("gather_batch: a batch has the loader's bits, tail and order included") {
  const Samples s = samples(DType::float32, 23);
  const data::SplitView split{s.images.view(), s.labels.view()};
  data::Loader loader(split, {.batch_size = 10, .seed = 7}, 1);
  std::vector<std::int32_t> order;
  for (std::int64_t b = 0; b < loader.steps_per_epoch(); ++b) {
    const data::Batch batch = loader.batch_at(b);
    order.insert(order.end(), batch.samples.begin(), batch.samples.end());
  }
  const OnDevice images(s.images), labels(s.labels), places(vector_of(order));
  const OnDevice ordinal(Tensor(DType::int64, {}));
  const auto* first = static_cast<const std::int32_t*>(places.address());
  for (std::int64_t b = 0; b < loader.steps_per_epoch(); ++b) {
    const data::Batch batch = loader.batch_at(b);
    const Shape shape = s.images.shape().with(0, batch.size());
    Tensor want(DType::float32, shape), want_labels(DType::int32, {batch.size()});
    loader.fill(batch, want.view(), want_labels.view());
    own::GatherBatchParams p{.rows = images.address(),
                             .order = first,
                             .ordinal = static_cast<const std::int64_t*>(ordinal.address())};
    const Comparison same = compare_bits(gathered(p, DType::float32, shape).view(), want.view());
    CHECK_MESSAGE(same, same.text);
    p.rows = labels.address();
    const Tensor got_labels = gathered(p, DType::int32, {batch.size()});
    const Comparison same_labels = compare_bits(got_labels.view(), want_labels.view());
    CHECK_MESSAGE(same_labels, same_labels.text);
    first += batch.size();
  }
}

TEST_CASE("gather_batch: the ordinal selects one of the batches of an epoch") {
  const Samples s = samples(DType::uint8, 4);
  const std::vector<std::int32_t> order{1, 3, 2, 0};
  Tensor fifth(DType::int64, {});
  *fifth.as<std::int64_t>() = 5;
  const OnDevice images(s.images), places(vector_of(order)), ordinal(fifth);
  const Tensor got = gathered({.rows = images.address(),
                               .order = static_cast<const std::int32_t*>(places.address()),
                               .ordinal = static_cast<const std::int64_t*>(ordinal.address()),
                               .cycle = 2},
                              DType::uint8,
                              {2, 3, 5, 1});
  for (std::int64_t i = 0; i < 30; ++i) {
    const std::int64_t from = order[static_cast<std::size_t>(2 + i / 15)] * 15 + i % 15;
    CHECK(got.as<std::uint8_t>()[i] == s.images.as<std::uint8_t>()[from]);
  }
}

TEST_CASE("own kernels: a dtype without code is refused by name") {
  std::string text;
  try {
    own::cast(device().stream(), {.from = DType::complex64, .to = DType::float32});
  } catch (const own::LaunchError& error) {
    text = error.what();
  }
  CHECK(text == "no kernel computes with complex64");
}

}  // namespace halfstep::testing
