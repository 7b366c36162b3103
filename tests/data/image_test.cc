#include "data/image.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "data/deflate.h"
#include "files.h"
#include "jpeg_file.h"

namespace halfstep::data::testing {
namespace {

Bytes big_endian(std::uint32_t value) {
  return bytes({static_cast<int>(value >> 24),
                static_cast<int>(value >> 16 & 0xFF),
                static_cast<int>(value >> 8 & 0xFF),
                static_cast<int>(value & 0xFF)});
}

Bytes chunk(std::string_view type, const Bytes& content) {
  const Bytes body = bytes(type) + content;
  return big_endian(static_cast<std::uint32_t>(content.size())) + body + big_endian(crc_of(body));
}

Bytes header(std::uint32_t width, std::uint32_t height, int bits, int kind, int interlace = 0) {
  return chunk("IHDR",
               big_endian(width) + big_endian(height) + bytes({bits, kind, 0, 0, interlace}));
}

const Bytes k_signature = bytes({0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'});

/// Rows with their filter bytes in front.
Bytes png(const Bytes& head, const Bytes& rows) {
  return k_signature + head + chunk("IDAT", deflate(rows, Wrapper::zlib)) + chunk("IEND", {});
}

Bytes little_endian(std::uint32_t value) {
  const Bytes big = big_endian(value);
  return Bytes(big.rbegin(), big.rend());
}

/// A BMP file: a header of 40 bytes behind that of the file, perhaps masks or a palette, then the
/// rows.
struct Bmp {
  std::int32_t width = 0, height = 0;
  int bits = 24;
  int compression = 0;
  int colours = 0;
  Bytes behind_header{};
  Bytes rows{};

  Bytes file() const {
    const auto at = static_cast<std::uint32_t>(54 + behind_header.size());
    return bytes("BM") + little_endian(0) + little_endian(0) + little_endian(at) +
           little_endian(40) + little_endian(static_cast<std::uint32_t>(width)) +
           little_endian(static_cast<std::uint32_t>(height)) + bytes({1, 0, bits, 0}) +
           little_endian(static_cast<std::uint32_t>(compression)) + little_endian(0) +
           little_endian(0) + little_endian(0) +
           little_endian(static_cast<std::uint32_t>(colours)) + little_endian(0) + behind_header +
           rows;
  }
};

TEST_CASE("image: BMP of every depth, from below and from above") {
  struct Case {
    std::string_view name;
    Bytes file;
    Tensor want;
  };
  const Tensor two_rows =
      tensor<std::uint8_t>({2, 1, 3}, {1, 2, 3, 40, 50, 60});  // red, green, blue
  const Bytes greys = bytes({0, 0, 0, 0, 255, 255, 255, 0});
  const Bytes colours = bytes({3, 2, 1, 0, 60, 50, 40, 0, 9, 8, 7, 0});
  const Bytes masks = little_endian(0xFF) + little_endian(0xFF00) + little_endian(0xFF0000);
  // The header of OS/2: 12 bytes, extents of 16 bits, palette entries of 3 bytes.
  const Bytes core = bytes("BM") + little_endian(0) + little_endian(0) + little_endian(32) +
                     little_endian(12) + bytes({2, 0, 1, 0, 1, 0, 1, 0}) +
                     bytes({3, 2, 1, 60, 50, 40}) + bytes({0b01000000, 0, 0, 0});
  const std::array cases{
      Case{"24 bits",
           Bmp{.width = 1, .height = 2, .rows = bytes({60, 50, 40, 0, 3, 2, 1, 0})}.file(),
           two_rows.clone()},
      Case{"from above",
           Bmp{.width = 1, .height = -2, .rows = bytes({3, 2, 1, 0, 60, 50, 40, 0})}.file(),
           two_rows.clone()},
      Case{"32 bits",
           Bmp{.width = 1, .height = -2, .bits = 32, .rows = bytes({3, 2, 1, 9, 60, 50, 40, 0})}
               .file(),
           two_rows.clone()},
      Case{"masks",
           Bmp{.width = 1,
               .height = -2,
               .bits = 32,
               .compression = 3,
               .behind_header = masks,
               .rows = bytes({1, 2, 3, 0, 40, 50, 60, 0})}
               .file(),
           two_rows.clone()},
      Case{"16 bits",
           Bmp{.width = 2, .height = 1, .bits = 16, .rows = bytes({0x1F, 0, 0xFF, 0x7F})}.file(),
           tensor<std::uint8_t>({1, 2, 3}, {0, 0, 255, 255, 255, 255})},
      Case{"grey",
           Bmp{.width = 3,
               .height = 1,
               .bits = 8,
               .colours = 2,
               .behind_header = greys,
               .rows = bytes({1, 0, 1, 0})}
               .file(),
           tensor<std::uint8_t>({1, 3, 1}, {255, 0, 255})},
      Case{"4 bits",
           Bmp{.width = 3,
               .height = 1,
               .bits = 4,
               .colours = 3,
               .behind_header = colours,
               .rows = bytes({0x12, 0x00, 0, 0})}
               .file(),
           tensor<std::uint8_t>({1, 3, 3}, {40, 50, 60, 7, 8, 9, 1, 2, 3})},
      Case{"1 bit", core, tensor<std::uint8_t>({1, 2, 3}, {1, 2, 3, 40, 50, 60})},
  };
  const TempFolder folder;
  const std::string path = folder.file("p.bmp");
  for (const Case& c : cases) {
    CAPTURE(c.name);
    write_bytes(path, c.file);
    CHECK(is_image(path));
    CHECK(same(read_image(path), c.want));
    for (std::size_t kept = 0; kept < c.file.size(); ++kept) {
      write_bytes(path, Bytes(c.file.begin(), c.file.begin() + static_cast<std::ptrdiff_t>(kept)));
      CHECK_THROWS_AS(read_image(path), UserError);
    }
  }
  // A table whose first column is called BMI is none.
  write_bytes(path, bytes("BMI,age,risk\n21.5,40,0.1\n"));
  CHECK_FALSE(is_image(path));
}

TEST_CASE("image: alpha that is opaque in every pixel is left out") {
  const TempFolder folder;
  const std::string path = folder.file("p.png");
  write_bytes(path, png(header(2, 1, 8, 6), bytes({0, 1, 2, 3, 255, 4, 5, 6, 255})));
  CHECK(same(read_image(path), tensor<std::uint8_t>({1, 2, 3}, {1, 2, 3, 4, 5, 6})));
  write_bytes(path, png(header(2, 1, 8, 4), bytes({0, 7, 255, 8, 255})));
  CHECK(same(read_image(path), tensor<std::uint8_t>({1, 2, 1}, {7, 8})));
  // A transparent colour that no pixel has.
  write_bytes(path,
              k_signature + header(2, 1, 8, 0) + chunk("tRNS", bytes({0, 9})) +
                  chunk("IDAT", deflate(bytes({0, 1, 2}), Wrapper::zlib)) + chunk("IEND", {}));
  CHECK(same(read_image(path), tensor<std::uint8_t>({1, 2, 1}, {1, 2})));
}

TEST_CASE("image: PGM and PPM in text and binary, with comments and scaling") {
  struct Case {
    std::string_view name;
    Bytes file;
    Tensor want;
  };
  const Tensor six = tensor<std::uint8_t>({2, 3, 1}, {0, 1, 2, 3, 4, 255});
  const Tensor colour = tensor<std::uint8_t>({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const std::array cases{
      Case{"P2", bytes("P2\n3 2\n255\n0 1 2\n3 4 255\n"), six.clone()},
      Case{"P5", bytes("P5 3 2 255\n") + bytes({0, 1, 2, 3, 4, 255}), six.clone()},
      Case{"comments", bytes("P2 # a\n#b\n3#c\n2\n255 0 1 2 3 4 255"), six.clone()},
      Case{"P5 starting in a space",
           bytes("P5\n1 1\n255\n "),
           tensor<std::uint8_t>({1, 1, 1}, {32})},
      Case{"P3", bytes("P3 2 1 255 1 2 3 4 5 6"), colour.clone()},
      Case{"P6", bytes("P6 2 1 255\n") + bytes({1, 2, 3, 4, 5, 6}), colour.clone()},
      Case{"scaled",
           bytes("P2 4 1 15 0 5 10 15"),
           tensor<std::uint8_t>({1, 4, 1}, {0, 85, 170, 255})},
  };
  const TempFolder folder;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    write_bytes(folder.file("p"), c.file);
    CHECK(is_image(folder.file("p")));
    CHECK(same(read_image(folder.file("p")), c.want));
  }
}

TEST_CASE("image: PNG with every filter, grey and RGB") {
  const TempFolder folder;
  const std::string path = folder.file("p.png");
  // The same two rows of four pixels under each filter of the second one.
  const Tensor want = tensor<std::uint8_t>({2, 4, 1}, {10, 20, 30, 40, 15, 250, 3, 77});
  const std::array<Bytes, 5> second{
      bytes({0, 15, 250, 3, 77}),
      bytes({1, 15, 235, 9, 74}),
      bytes({2, 5, 230, 229, 37}),
      bytes({3, 10, 233, 119, 56}),
      bytes({4, 5, 230, 9, 74}),
  };
  for (std::size_t filter = 0; filter < second.size(); ++filter) {
    CAPTURE(filter);
    write_bytes(path, png(header(4, 2, 8, 0), bytes({0, 10, 20, 30, 40}) + second[filter]));
    CHECK(same(read_image(path), want));
  }
  // RGB, filters look three bytes back.
  write_bytes(path, png(header(2, 1, 8, 2), bytes({1, 1, 2, 3, 10, 20, 30})));
  CHECK(same(read_image(path), tensor<std::uint8_t>({1, 2, 3}, {1, 2, 3, 11, 22, 33})));
}

TEST_CASE("image: PNG grey of few bits is widened") {
  const TempFolder folder;
  const std::string path = folder.file("p.png");
  write_bytes(path, png(header(3, 1, 1, 0), bytes({0, 0b10100000})));
  CHECK(same(read_image(path), tensor<std::uint8_t>({1, 3, 1}, {255, 0, 255})));
  write_bytes(path, png(header(5, 1, 2, 0), bytes({0, 0b00011011, 0b01000000})));
  CHECK(same(read_image(path), tensor<std::uint8_t>({1, 5, 1}, {0, 85, 170, 255, 85})));
  write_bytes(path, png(header(3, 1, 4, 0), bytes({0, 0x0F, 0x10})));
  CHECK(same(read_image(path), tensor<std::uint8_t>({1, 3, 1}, {0, 255, 17})));
}

TEST_CASE("image: PNG with a palette, 16 bits and interlaced rows") {
  const TempFolder folder;
  const std::string path = folder.file("p.png");
  const Bytes palette = chunk("PLTE", bytes({1, 2, 3, 40, 50, 60}));
  write_bytes(path,
              k_signature + header(3, 1, 1, 3) + palette +
                  chunk("IDAT", deflate(bytes({0, 0b01000000}), Wrapper::zlib)) +
                  chunk("IEND", {}));
  CHECK(same(read_image(path), tensor<std::uint8_t>({1, 3, 3}, {1, 2, 3, 40, 50, 60, 1, 2, 3})));
  // 16 bits are rounded: 0x0180 is 1.49 of 255, 0xFE7F is 253.5.
  write_bytes(path, png(header(2, 1, 16, 0), bytes({0, 0x01, 0x80, 0xFE, 0x7F})));
  CHECK(same(read_image(path), tensor<std::uint8_t>({1, 2, 1}, {1, 254})));
  // Adam7 of 2 x 2: the first pixel, the second, then the second row.
  write_bytes(path, png(header(2, 2, 8, 0, 1), bytes({0, 10, 0, 20, 0, 30, 40})));
  CHECK(same(read_image(path), tensor<std::uint8_t>({2, 2, 1}, {10, 20, 30, 40})));
}

TEST_CASE("image: JPEG in grey and colour, baseline and progressive") {
  const TempFolder folder;
  const std::string path = folder.file("p.jpg");
  for (const bool progressive : {false, true}) {
    CAPTURE(progressive);
    const JpegOptions grey{.colours = JCS_GRAYSCALE, .progressive = progressive};
    write_bytes(path, flat_jpeg(9, 17, {100}, grey));
    CHECK(is_image(path));
    const Tensor one = read_image(path);
    REQUIRE(one.shape() == Shape{9, 17, 1});
    for (const int value : one.span<std::uint8_t>()) CHECK(value == 100);

    write_bytes(path, flat_jpeg(20, 5, {200, 100, 50}, {.progressive = progressive}));
    const Tensor three = read_image(path);
    REQUIRE(three.shape() == Shape{20, 5, 3});
    // YCbCr of 8 bits holds the colour to within 1 or 2.
    for (std::int64_t i = 0; i < three.elements(); i += 3) {
      CHECK(std::abs(three.as<std::uint8_t>()[i] - 200) <= 2);
      CHECK(std::abs(three.as<std::uint8_t>()[i + 1] - 100) <= 2);
      CHECK(std::abs(three.as<std::uint8_t>()[i + 2] - 50) <= 2);
    }
  }
}

TEST_CASE("image: JPEG files that are cut off, of four colours or lie are refused") {
  const TempFolder folder;
  const std::string path = folder.file("p.jpg");
  std::vector<std::uint8_t> noise;
  for (int i = 0; i < 16 * 16; ++i) noise.push_back(static_cast<std::uint8_t>(i * i * 7 % 251));
  const Bytes whole = jpeg(16, 16, noise, {.colours = JCS_GRAYSCALE});
  // The two bytes of the end marker are not missed.
  for (std::size_t length = 0; length + 2 < whole.size(); ++length) {
    CAPTURE(length);
    write_bytes(path, std::span(whole).first(length));
    CHECK(error_of([&] { read_image(path); }) != "");
  }
  write_bytes(path, flat_jpeg(8, 8, {10, 20, 30, 40}, {.colours = JCS_CMYK}));
  CHECK(contains(error_of([&] { read_image(path); }), "four colours of print (CMYK)"));
  // The frame header says how many rows and columns there are.
  Bytes lying = whole;
  const std::array marker{std::byte{0xFF}, std::byte{0xC0}};
  const auto frame = std::search(lying.begin(), lying.end(), marker.begin(), marker.end());
  REQUIRE(frame != lying.end());
  const std::size_t size_at = static_cast<std::size_t>(frame - lying.begin()) + 5;
  for (const auto& [side, message] : {std::pair(0x3FFF, "has too little data"),
                                      std::pair(0x5000, "1 to 16384 a side can be read")}) {
    for (const std::size_t at : {size_at, size_at + 2}) {
      lying[at] = static_cast<std::byte>(side >> 8);
      lying[at + 1] = static_cast<std::byte>(side & 0xFF);
    }
    write_bytes(path, lying);
    const std::string said = error_of([&] { read_image(path); });
    CAPTURE(said);
    CHECK(contains(said, message));
  }
}

TEST_CASE("image: images are brought to a conversion, or refused with their own") {
  const TempFolder folder;
  const std::string path = folder.file("p.ppm");
  write_bytes(path, bytes("P6 2 1 255\n") + bytes({255, 0, 0, 10, 20, 30}));
  CHECK(same(read_image(path, {.channels = 1, .convert = true}),
             tensor<std::uint8_t>({1, 2, 1}, {76, 18})));
  CHECK(contains(error_of([&] { read_image(path, {.channels = 1}); }),
                 "has 3 channels (colour), not 1 (data.channels: 1 converts images)"));
  const std::string message = error_of([&] { read_image(path, {.height = 2, .width = 2}); });
  CAPTURE(message);
  CHECK(contains(message, "p.ppm"));
  CHECK(contains(message, "is an image of 1 x 2 pixels (height x width), not 2 x 2"));
  CHECK(contains(message, "data.resize: crop or bilinear"));
  const Tensor larger = read_image(path, {.height = 3, .width = 4, .resize = Resize::bilinear});
  CHECK(larger.shape() == Shape{3, 4, 3});

  write_bytes(path, bytes("P5 1 1 255\n") + bytes({7}));
  CHECK(same(read_image(path, {.channels = 3, .convert = true}),
             tensor<std::uint8_t>({1, 1, 3}, {7, 7, 7})));
}

TEST_CASE("image: resizing averages what it shrinks and blends what it stretches") {
  // Half as wide: triangles of radius 2 around 1 and 3, cut off at the edge: weights 3 3 1 and 1 3
  // 3 of 7.
  const Tensor line = tensor<std::uint8_t>({1, 4, 1}, {0, 70, 140, 210});
  CHECK(same(resize_image(line, 1, 2), tensor<std::uint8_t>({1, 2, 1}, {50, 160})));
  // Twice as wide: 1/4 and 3/4 of the two nearest, the edges alone.
  const Tensor pair = tensor<std::uint8_t>({1, 2, 1}, {0, 100});
  CHECK(same(resize_image(pair, 1, 4), tensor<std::uint8_t>({1, 4, 1}, {0, 25, 75, 100})));
  CHECK(same(resize_image(tensor<std::uint8_t>({2, 1, 1}, {0, 100}), 4, 1),
             tensor<std::uint8_t>({4, 1, 1}, {0, 25, 75, 100})));
  // A flat picture stays flat, each channel by itself; the same size changes nothing.
  const Tensor flat = tensor<std::uint8_t>({1, 2, 3}, {9, 80, 255, 9, 80, 255});
  const Tensor grown = resize_image(flat, 5, 7);
  for (std::int64_t i = 0; i < grown.elements(); ++i) {
    CHECK(grown.as<std::uint8_t>()[i] == flat.as<std::uint8_t>()[i % 3]);
  }
  const Tensor picture = counting(DType::uint8, {6, 5, 3});
  CHECK(same(resize_image(picture, 6, 5), picture));
}

TEST_CASE("image: cropping keeps the middle in the proportions that are wanted") {
  const Tensor wide = tensor<std::uint8_t>({2, 5, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(same(cropped_to(wide, 1, 1), tensor<std::uint8_t>({2, 2, 1}, {1, 2, 6, 7})));
  CHECK(same(cropped_to(wide, 4, 6), tensor<std::uint8_t>({2, 3, 1}, {1, 2, 3, 6, 7, 8})));
  CHECK(same(cropped_to(wide, 1, 100), tensor<std::uint8_t>({1, 5, 1}, {0, 1, 2, 3, 4})));
  CHECK(same(cropped_to(wide, 4, 10), wide));
  const TempFolder folder;
  const std::string path = folder.file("p.pgm");
  write_bytes(path, bytes("P5 4 1 255\n") + bytes({9, 30, 40, 9}));
  CHECK(same(read_image(path, {.height = 1, .width = 1, .resize = Resize::crop}),
             tensor<std::uint8_t>({1, 1, 1}, {30})));
  CHECK(same(read_image(path, {.height = 2, .width = 4, .resize = Resize::crop}),
             tensor<std::uint8_t>({2, 4, 1}, {30, 33, 38, 40, 30, 33, 38, 40})));
}

TEST_CASE("image: another program's PNG is read alike") {
  if (std::system("convert -version 2>/dev/null | grep -q ImageMagick") != 0) {
    MESSAGE("ImageMagick is not installed; skipped");
    return;
  }
  const TempFolder folder;
  Bytes pixels;
  for (int i = 0; i < 28 * 28; ++i) pixels.push_back(static_cast<std::byte>(i * i % 251));
  write_bytes(folder.file("a.pgm"), bytes("P5\n28 28\n255\n") + pixels);
  const std::string command = fmt::format(
      "cd '{}' && convert a.pgm -colorspace Gray PNG8:x.png 2>/dev/null; "
      "convert a.pgm -define png:color-type=0 -depth 8 a.png",
      folder.path());
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(same(read_image(folder.file("a.png")), read_image(folder.file("a.pgm"))));
}

TEST_CASE("image: files that lie are refused with the reason") {
  struct Case {
    std::string_view name;
    Bytes file;
    std::string_view message;
  };
  const Bytes row = bytes({0, 1, 2});
  const std::array cases{
      Case{"text", bytes("hello, world"), "is not an image"},
      Case{"empty", {}, "is not an image"},
      Case{"PGM without size", bytes("P5\n"), "has no valid width"},
      Case{"PGM of no width", bytes("P5 0 1 255\n"), "has 0 x 1 pixels"},
      Case{"PGM too large", bytes("P5 99999 99999 255\n"), "has 99999 x 99999 pixels"},
      Case{"PGM beyond int", bytes("P5 99999999999 1 255\n"), "has no valid width"},
      Case{"PGM 16 bits", bytes("P5 1 1 65535\n12"), "has values up to 65535"},
      Case{"PGM of nothing", bytes("P5 1 1 0\n1"), "has values up to 0"},
      Case{"PGM too short", bytes("P5 2 2 255\n123"), "has 3 bytes of values"},
      Case{"PGM too long", bytes("P5 2 2 255\n12345"), "has 5 bytes of values"},
      Case{"PGM above", bytes("P2 1 1 15 16"), "has value 16 above 15"},
      Case{"PGM words", bytes("P2 2 1 15 1 x"), "has no valid value"},
      Case{"alpha",
           png(header(1, 1, 8, 6), bytes({0, 1, 2, 3, 254})),
           "is a PNG image with transparent pixels"},
      Case{"grey with alpha",
           png(header(1, 1, 8, 4), bytes({0, 1, 0})),
           "is a PNG image with transparent pixels"},
      Case{"a transparent colour",
           k_signature + header(2, 1, 8, 0) + chunk("tRNS", bytes({0, 2})) +
               chunk("IDAT", deflate(row, Wrapper::zlib)) + chunk("IEND", {}),
           "is a PNG image with transparent pixels"},
      Case{"BMP of no width", Bmp{.height = 1}.file(), "has 0 x 1 pixels"},
      Case{"BMP too large", Bmp{.width = 1 << 15, .height = 1}.file(), "1 to 16384 a side"},
      Case{"BMP of 2 bits",
           Bmp{.width = 1, .height = 1, .bits = 2}.file(),
           "is a BMP image of 2 bits a pixel"},
      Case{"BMP with run lengths",
           Bmp{.width = 1, .height = 1, .bits = 8, .compression = 1}.file(),
           "is a compressed BMP image"},
      Case{"BMP too short", Bmp{.width = 9, .height = 9}.file(), "is cut off"},
      Case{"BMP beyond its palette",
           Bmp{.width = 1,
               .height = 1,
               .bits = 8,
               .colours = 1,
               .behind_header = bytes({0, 0, 0, 0}),
               .rows = bytes({7, 0, 0, 0})}
               .file(),
           "has colour 7 of a palette of 1 colours"},
      Case{"BMP without red",
           Bmp{.width = 1,
               .height = 1,
               .bits = 32,
               .compression = 3,
               .behind_header = little_endian(0) + little_endian(1) + little_endian(2),
               .rows = bytes({0, 0, 0, 0})}
               .file(),
           "without bits of one of its colours"},
      Case{"a palette that is missing", png(header(2, 1, 8, 3), row), "cannot be read"},
      Case{"an interlace that is not known", png(header(2, 1, 8, 0, 2), row), "cannot be read"},
      Case{"no pixels", png(header(0, 1, 8, 0), row), "has 0 x 1 pixels"},
      Case{"too large", png(header(1U << 31, 1, 8, 0), row), "1 to 16384 a side"},
      Case{"a bomb's size", png(header(16384, 16384, 8, 0), row), "has too little data"},
      Case{"too few rows", png(header(2, 2, 8, 0), row), "cannot be read"},
      Case{"unknown filter", png(header(2, 1, 8, 0), bytes({5, 1, 2})), "cannot be read"},
      Case{"unknown part",
           k_signature + header(2, 1, 8, 0) + chunk("XYZW", {}) + chunk("IEND", {}),
           "XYZW"},
      Case{"no header", k_signature + chunk("IDAT", {}), "damaged PNG header"},
      Case{"short header", k_signature + chunk("IHDR", bytes({1})), "damaged PNG header"},
      Case{"no end", k_signature + header(2, 1, 8, 0), "is cut off"},
  };
  const TempFolder folder;
  const std::string path = folder.file("p");
  for (const Case& c : cases) {
    CAPTURE(c.name);
    write_bytes(path, c.file);
    const std::string message = error_of([&] { read_image(path); });
    CAPTURE(message);
    CHECK(contains(message, c.message));
  }
}

TEST_CASE("image: truncations are refused and no flipped bit of a PNG goes unseen") {
  const TempFolder folder;
  const Bytes file = png(header(3, 2, 8, 0), bytes({0, 1, 2, 3, 2, 4, 5, 6}));
  write_bytes(folder.file("whole"), file);
  const Tensor whole = read_image(folder.file("whole"));
  const auto read = [](const std::string& path) { return read_image(path); };
  check_truncations(folder.file("p"), file, read);
  check_bit_flips(folder.file("p"), file, read, [&](const Tensor& t) { return same(t, whole); });
  check_truncations(folder.file("p"), bytes("P2 2 1 15 1 2"), [](const std::string& path) {
    const Tensor t = read_image(path);
    // Text may end anywhere in its last number, which is then another number.
    if (t.elements() == 2) throw UserError(ErrorKind::data, {}, "complete");
  });
}

}  // namespace
}  // namespace halfstep::data::testing
