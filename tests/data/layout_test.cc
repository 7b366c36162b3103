// Samples stored with channels first arrive with channels last, and samples that could be
// either are refused.

#include "data/layout.h"

#include <doctest/doctest.h>

#include <array>

#include "data/dataset.h"
#include "data/dataset_registry.h"
#include "data/tensor_files.h"
#include "files.h"
#include "named_sets.h"

namespace halfstep::data::testing {
namespace {

/// [n, c, h, w] with another value at each offset.
Tensor planes(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  return counting(DType::uint8, {n, c, h, w});
}

std::optional<Layout> found(const Shape& sample, std::optional<Shape> wanted = {}) {
  return find_layout(sample, {.wanted = wanted});
}

TEST_CASE("layout: the shape that the model takes tells how samples are stored") {
  CHECK(found({3, 16, 16}, Shape{16, 16, 3}) == Layout::nchw);
  CHECK(found({16, 16, 3}, Shape{16, 16, 3}) == Layout::nhwc);
  CHECK(found({1, 28, 28}, Shape{28, 28, 1}) == Layout::nchw);
  CHECK(found({8, 4, 6}, Shape{4, 6, 8}) == Layout::nchw);
  // Neither fits: the model says so with both shapes.
  CHECK(found({4, 4, 4}, Shape{2, 2, 16}) == std::nullopt);
  CHECK(found({28, 28}, Shape{28, 28, 1}) == std::nullopt);
}

TEST_CASE("layout: without such a shape the number of channels tells") {
  CHECK(found({3, 16, 16}) == Layout::nchw);
  CHECK(found({16, 16, 3}, Shape{768}) == Layout::nhwc);
  CHECK(found({1, 28, 28}, Shape{784}) == Layout::nchw);
  CHECK(found({5, 7, 9}) == std::nullopt);
  CHECK(found({3, 16, 3}) == std::nullopt);
}

TEST_CASE("layout: samples that fit as both are refused with both names unless one is declared") {
  const LayoutHints cube{.wanted = Shape{3, 3, 3}};
  const std::string said = error_of([&] { find_layout({3, 3, 3}, cube); }, ErrorKind::config);
  CHECK(contains(said, "nhwc (height, width, channels)"));
  CHECK(contains(said, "nchw (channels, height, width)"));
  const LayoutHints flat{.wanted = Shape{16, 16, 3}};
  CHECK(contains(error_of([&] { find_layout({768}, flat); }, ErrorKind::config),
                 "[16, 16, 3] (nhwc) or [3, 16, 16]"));
  for (const Layout layout : {Layout::nhwc, Layout::nchw}) {
    CHECK(find_layout({3, 3, 3}, {.declared = layout, .wanted = Shape{3, 3, 3}}) == layout);
    CHECK(find_layout({768}, {.declared = layout, .wanted = Shape{16, 16, 3}}) == layout);
    CHECK(find_layout({3, 3, 3}, {.wanted = Shape{3, 3, 3}, .otherwise = layout}) == layout);
  }
  CHECK(
      contains(error_of([&] { find_layout({768}, {.declared = Layout::nchw}); }, ErrorKind::config),
               "does not apply"));
  // A model whose input is written channels first would take the channels for a height.
  const LayoutHints first{.wanted = Shape{3, 16, 16}};
  const std::string meant = error_of([&] { find_layout({3, 16, 16}, first); }, ErrorKind::config);
  CHECK(contains(meant, "looks like nchw with 3"));
  CHECK(contains(meant, "make model.input [16, 16, 3], else say data.layout: nhwc"));
  // One channel has one order.
  CHECK(found({784}, Shape{28, 28, 1}) == Layout::nhwc);
}

TEST_CASE("layout: transposed samples hold the same pixels, whatever their dtype and form") {
  for (const DType dtype : {DType::uint8, DType::float32}) {
    CAPTURE(name(dtype));
    const Tensor stored = counting(dtype, {5, 3, 2, 4});
    const Tensor turned = to_nhwc(stored.clone(), Layout::nchw, std::nullopt);
    REQUIRE(turned.shape() == Shape{5, 2, 4, 3});
    Tensor flat = stored.clone();
    flat.reshape({5, 24});
    const Tensor unfolded = to_nhwc(std::move(flat), Layout::nchw, Shape{2, 4, 3});
    REQUIRE(unfolded.shape() == turned.shape());
    for (std::int64_t i = 0; i < 5 * 2 * 4 * 3; ++i) {
      const std::int64_t n = i / 24, y = i / 12 % 2, x = i / 3 % 4, c = i % 3;
      const double expected = element_as_double(stored.view(), ((n * 3 + c) * 2 + y) * 4 + x);
      CHECK(element_as_double(turned.view(), i) == expected);
      CHECK(element_as_double(unfolded.view(), i) == expected);
    }
  }
}

TEST_CASE("layout: a data set is loaded with channels last, training and test samples alike") {
  const TempFolder folder;
  const std::string path = folder.file("a.npz");
  const Tensor labels = counting(DType::int32, {4});
  const Tensor train = planes(4, 3, 6, 5);
  const Tensor test = planes(4, 3, 6, 5);
  write_npz(path,
            std::array{NamedTensor{"x_train", train.view()},
                       NamedTensor{"y_train", labels.view()},
                       NamedTensor{"x_test", test.view()},
                       NamedTensor{"y_test", labels.view()}});
  DataOptions options = formatted("npz", path);
  options.model_input = Shape{6, 5, 3};
  const Dataset set = load_dataset(options);
  CHECK(set.layout == Layout::nchw);
  CHECK(set.sample_shape == Shape{6, 5, 3});
  CHECK(set.test.images.shape() == Shape{4, 6, 5, 3});
  CHECK(set.train.images.as<std::uint8_t>()[1] == train.as<std::uint8_t>()[30]);

  options.layout = Layout::nhwc;
  CHECK(load_dataset(options).sample_shape == Shape{3, 6, 5});
}

TEST_CASE("dataset: every named set tells its origin and its licence") {
  for (const DatasetDef& set : named_sets()) {
    CAPTURE(set.name);
    CHECK(!set.origin.empty());
    CHECK(!set.licence.empty());
  }
}

TEST_CASE("dataset: one that is not found says where HALFSTEP_DATA comes in") {
  DataOptions options;
  options.name = "mnist";
  const std::string said = error_of([&] { load_dataset(options); });
  CHECK(contains(said, "set HALFSTEP_DATA to the folder that holds mnist/"));
}

TEST_CASE("dataset: a file where a folder is read from is called by its kind") {
  const TempFolder folder;
  const std::string path = folder.file("photo");
  write_bytes(path, bytes("\xFF\xD8\xFF\xE0 JFIF"));
  CHECK(contains(error_of([&] { load_dataset(formatted("idx", path)); }), "is a JPEG image"));
  CHECK(contains(error_of([&] { load_dataset(formatted("npz", path)); }), "but a JPEG image"));
}

}  // namespace
}  // namespace halfstep::data::testing
