// Contact sheets of samples, and the PNG files that they are written to.

#include "data/contact_sheet.h"

#include <doctest/doctest.h>

#include <ostream>

#include "data/image.h"
#include "named_sets.h"

namespace halfstep::data::testing {
namespace {

/// Pictures of 2 x 3 pixels, the pixels of picture i all `i`, of the classes 1, 0, 1, 0, ...
Dataset pictures(std::int64_t count, std::int64_t channels, DType dtype = DType::uint8) {
  Dataset set;
  set.source = "here";
  set.classes = 2;
  set.sample_shape = Shape{2, 3, channels};
  set.train = {Tensor(dtype, {count, 2, 3, channels}), Tensor(DType::int32, {count})};
  for (std::int64_t i = 0; i < set.train.images.elements(); ++i) {
    const std::int64_t picture = i / (6 * channels);
    if (dtype == DType::uint8) {
      set.train.images.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(picture);
    } else {
      set.train.images.as<float>()[i] = static_cast<float>(picture) - 2;
    }
    set.train.labels.as<std::int32_t>()[picture] = picture % 2 == 0 ? 1 : 0;
  }
  return set;
}

int pixel(const Tensor& sheet, std::int64_t y, std::int64_t x) {
  return sheet.as<std::uint8_t>()[(y * sheet.shape()[1] + x) * sheet.shape()[2]];
}

TEST_CASE("contact sheet: a line shows the first samples of a class, in their order") {
  for (const std::int64_t channels : {1, 3, 4}) {
    const Tensor sheet = contact_sheet(pictures(30, channels));
    CHECK(sheet.shape() == Shape{2 + 2 * 4, 2 + 10 * 5, channels == 3 ? 3 : 1});
    // Class 0 has the pictures 1, 3, 5, ... and class 1 has 0, 2, 4, ...
    CHECK(pixel(sheet, 2, 2) == 1);
    CHECK(pixel(sheet, 3, 2 + 5 + 2) == 3);
    CHECK(pixel(sheet, 2, 2 + 9 * 5) == 19);
    CHECK(pixel(sheet, 6, 2) == 0);
    CHECK(pixel(sheet, 6, 2 + 5) == 2);
    CHECK(pixel(sheet, 4, 2) == 255);  // between the lines
  }
}

TEST_CASE("contact sheet: a sample whose label is no class is left out") {
  Dataset set = pictures(4, 1);
  set.train.labels.as<std::int32_t>()[1] = -1;  // the first of class 0
  const Tensor sheet = contact_sheet(set);
  CHECK(sheet.shape() == Shape{2 + 2 * 4, 52, 1});
  CHECK(pixel(sheet, 2, 2) == 3);
  CHECK(pixel(sheet, 6, 2) == 0);
}

TEST_CASE("contact sheet: numbers are mapped to bytes; other labels give samples in their order") {
  Dataset set = pictures(12, 1, DType::float32);
  set.train.labels = Tensor(DType::float32, {12});
  set.classes = 0;
  const Tensor sheet = contact_sheet(set);
  CHECK(sheet.shape() == Shape{2 + 2 * 4, 52, 1});
  CHECK(pixel(sheet, 2, 2) == 0);
  CHECK(pixel(sheet, 6, 2 + 5) == 255);  // the twelfth
  CHECK(pixel(sheet, 2, 2 + 5) == 23);   // 255 / 11, rounded
}

TEST_CASE("contact sheet: of a clip the middle frame is shown, and vectors are not images") {
  Dataset set = pictures(6, 1);
  set.train.images.reshape({2, 3, 2, 3, 1});  // two clips of three frames
  set.train.labels = Tensor(DType::int32, {2});
  set.train.labels.as<std::int32_t>()[0] = 0;
  set.train.labels.as<std::int32_t>()[1] = 1;
  const Tensor sheet = contact_sheet(set);
  CHECK(pixel(sheet, 2, 2) == 1);
  CHECK(pixel(sheet, 6, 2) == 4);
  set.train.images.reshape({6, 6});
  set.sample_shape = Shape{6};
  CHECK(contains(error_of([&] { contact_sheet(set); }, ErrorKind::data),
                 "has samples of shape [6], which are not images"));
}

TEST_CASE("image: a PNG that is written is read alike") {
  const TempFolder folder;
  for (const std::int64_t channels : {1, 3}) {
    const Tensor sheet = contact_sheet(pictures(30, channels));
    write_bytes(folder.file("sheet.png"), bytes(png_of(sheet)));
    CHECK(same(read_image(folder.file("sheet.png")), sheet));
  }
}

}  // namespace
}  // namespace halfstep::data::testing
