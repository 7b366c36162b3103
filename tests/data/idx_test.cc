#include <doctest/doctest.h>

#include <array>
#include <filesystem>

#include "core/files.h"
#include "core/system.h"
#include "data/deflate.h"
#include "data/tensor_files.h"
#include "files.h"

namespace halfstep::data::testing {
namespace {

const Bytes k_small = bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 10, 20, 30, 40, 50, 60});

TEST_CASE("idx: reads every element type, in big-endian order") {
  struct Case {
    std::string_view name;
    Bytes file;
    Tensor want;
  };
  const TempFolder folder;
  const std::array cases{
      Case{"uint8", k_small, tensor<std::uint8_t>({2, 3}, {10, 20, 30, 40, 50, 60})},
      Case{"int8",
           bytes({0, 0, 9, 1, 0, 0, 0, 2, 0xFF, 0x7F}),
           tensor<std::int32_t>({2}, {-1, 127})},
      Case{"int16",
           bytes({0, 0, 0xB, 1, 0, 0, 0, 2, 0xFF, 0xFE, 0x12, 0x34}),
           tensor<std::int32_t>({2}, {-2, 0x1234})},
      Case{"int32",
           bytes({0, 0, 0xC, 1, 0, 0, 0, 1, 0x12, 0x34, 0x56, 0x78}),
           tensor<std::int32_t>({1}, {0x12345678})},
      Case{"float32",
           bytes({0, 0, 0xD, 1, 0, 0, 0, 1, 0xBF, 0xC0, 0, 0}),
           tensor<float>({1}, {-1.5F})},
      Case{"float64",
           bytes({0, 0, 0xE, 1, 0, 0, 0, 1, 0x40, 0x04, 0, 0, 0, 0, 0, 0}),
           tensor<double>({1}, {2.5})},
      Case{
          "no elements", bytes({0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 3}), Tensor(DType::uint8, {0, 3})},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    write_bytes(folder.file("plain"), c.file);
    CHECK(same(read_idx(folder.file("plain")), c.want));
    write_bytes(folder.file("packed.gz"), deflate(c.file, Wrapper::gzip));
    CHECK(same(read_idx(folder.file("packed.gz")), c.want));
    write_bytes(folder.file("packed"), deflate(c.file, Wrapper::gzip));
    CHECK(same(read_idx(folder.file("packed")), c.want));
  }
}

TEST_CASE("idx: what is written is read back") {
  const TempFolder folder;
  for (const DType dtype : {DType::uint8, DType::int32, DType::float32, DType::float64}) {
    for (const std::string_view name : {"t", "t.gz"}) {
      CAPTURE(halfstep::name(dtype));
      const Tensor t = counting(dtype, {3, 5, 7});
      write_idx(folder.file(name), t.view());
      CHECK(same(read_idx(folder.file(name)), t));
    }
  }
  CHECK_THROWS_AS(write_idx(folder.file("t"), Tensor(DType::float16, {1}).view()), InternalError);
}

TEST_CASE("idx: gzip members one after the other and padding with zeros are read") {
  const TempFolder folder;
  const Bytes first(k_small.begin(), k_small.begin() + 14);
  const Bytes second(k_small.begin() + 14, k_small.end());
  write_bytes(folder.file("a.gz"),
              deflate(first, Wrapper::gzip) + deflate(second, Wrapper::gzip) + bytes({0, 0, 0}));
  CHECK(
      same(read_idx(folder.file("a.gz")), tensor<std::uint8_t>({2, 3}, {10, 20, 30, 40, 50, 60})));
}

TEST_CASE("idx: files that lie are refused with the reason") {
  struct Case {
    std::string_view name;
    std::string_view file;
    Bytes content;
    std::string_view message;
  };
  const Bytes extra = k_small + bytes({1});
  // 2^32-1 squared bytes, and extents whose 64-bit element count wraps around to a small number.
  const Bytes huge = bytes({0, 0, 8, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2});
  const Bytes wrapping = bytes({0, 0, 0xE, 3, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 1});
  const Bytes empty_huge =
      bytes({0, 0, 8, 3, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF});
  const std::array cases{
      Case{"empty", "f", {}, "is empty"},
      Case{"wrong magic",
           "f",
           bytes("PK\x03\x04 and so on"),
           "is not an IDX file but a ZIP archive"},
      Case{"a JPEG", "f", bytes("\xFF\xD8\xFF\xE0 JFIF"), "is not an IDX file but a JPEG image"},
      Case{"a NumPy array", "f.npy", bytes("\x93NUMPY\x01"), "one NumPy array (.npy)"},
      Case{"a table", "f.csv", bytes("5,0,0,255\n1,0,0,0\n"), "text, perhaps CSV"},
      Case{"a web page", "f.gz", bytes("<html>404</html>"), "is not an IDX file but a web page"},
      Case{"unknown type", "f", bytes({0, 0, 7, 1, 0, 0, 0, 1, 1}), "is not an IDX file"},
      Case{"no extents", "f", bytes({0, 0, 8, 0, 1}), "has 0 extents"},
      Case{"too many extents", "f", bytes({0, 0, 8, 9, 0}), "has 9 extents"},
      Case{"more than its header", "f", extra, "continues after the 2 x 3"},
      Case{"more than its header, gz", "f", deflate(extra, Wrapper::gzip), "continues after"},
      Case{"huge", "f", huge, "too short for its header"},
      Case{"wraps around", "f", wrapping, "too short for its header"},
      Case{"huge, gz", "f", deflate(huge, Wrapper::gzip), "too short for its header"},
      Case{"a bomb's header",
           "f",
           deflate(bytes({0, 0, 8, 1, 0, 1, 0, 0, 9}), Wrapper::gzip),
           "too short for its header"},
      Case{"plain named gz", "f.gz", k_small, "is named .gz but holds plain IDX data"},
      Case{"garbage behind gz",
           "f",
           deflate(k_small, Wrapper::gzip) + bytes({7}),
           "1 bytes follow the end of its gzip data"},
      Case{"cut gz", "f", bytes({0x1f, 0x8b, 8}), "cut off"},
      Case{"no gz method", "f", bytes({0x1f, 0x8b, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0}), "damaged"},
  };
  const TempFolder folder;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::string path = folder.file(c.file);
    write_bytes(path, c.content);
    const std::string message = error_of([&] { read_idx(path); });
    CAPTURE(message);
    CHECK(contains(message, c.message));
    CHECK(contains(message, path));
  }
  CHECK(contains(error_of([&] { read_idx(folder.file("absent")); }), "No such file"));
  CHECK(contains(error_of([&] { read_idx(folder.path()); }), "is a folder"));
  write_bytes(folder.file("empty axis"), empty_huge);
  CHECK(contains(error_of([&] { read_idx(folder.file("empty axis")); }), "too short"));
}

TEST_CASE("idx: every truncation is refused, plain and compressed") {
  const TempFolder folder;
  check_truncations(folder.file("t"), k_small, read_idx);
  check_truncations(folder.file("t.gz"), deflate(k_small, Wrapper::gzip), read_idx);
}

TEST_CASE("idx: a flipped bit never crashes, and is found when compressed") {
  const TempFolder folder;
  write_bytes(folder.file("whole"), k_small);
  const Tensor whole = read_idx(folder.file("whole"));
  check_bit_flips(folder.file("t"), k_small, read_idx, [](const Tensor&) { return true; });
  check_bit_flips(
      folder.file("t.gz"), deflate(k_small, Wrapper::gzip), read_idx, [&](const Tensor& t) {
        return same(t, whole);
      });
}

TEST_CASE("idx: a file that cannot be written leaves the old one as it was") {
  const TempFolder folder;
  const Tensor t = counting(DType::uint8, {4});
  CHECK(contains(error_of([&] { write_idx(folder.path() + "/no/such/t", t.view()); }),
                 "cannot create"));
  const std::string path = folder.file("t");
  write_bytes(path, k_small);
  {
    OutputFile unfinished(path);
    unfinished.write("half of it");
  }
  CHECK(read_file(path) == k_small);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("idx: memory is taken for what a compressed file holds, not for what its header says") {
  const TempFolder folder;
  // Two GiB in the header, 200 MB of zeros in the file: not more than the limit of the compression
  // allows.
  Bytes content = bytes({0, 0, 8, 1, 0x7F, 0xFF, 0xFF, 0xFF});
  content.resize(200'000'000);
  Bytes file = deflate(content, Wrapper::gzip);
  content = {};
  // Padding makes it large enough for the limit.
  file.resize(3'000'000);
  write_bytes(folder.file("t.gz"), file);
  const std::uint64_t before = peak_rss_bytes();
  CHECK(contains(error_of([&] { read_idx(folder.file("t.gz")); }), "too short for its header"));
  CHECK(peak_rss_bytes() - before < 64U << 20U);
}

}  // namespace
}  // namespace halfstep::data::testing
