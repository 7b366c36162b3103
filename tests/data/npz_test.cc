#include <doctest/doctest.h>

#include <array>
#include <cstdlib>

#include "data/bytes.h"
#include "data/deflate.h"
#include "data/tensor_files.h"
#include "files.h"

namespace halfstep::data::testing {
namespace {

/// A .npy file with this header text, padded as NumPy pads it.
Bytes npy(std::string header, const Bytes& elements, int version = 1) {
  const std::size_t start = version == 1 ? 10 : 12;
  while ((start + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  Bytes file = bytes("\x93NUMPY") + bytes({version, 0});
  for (std::size_t i = 0; i < start - 8; ++i) {
    file.push_back(static_cast<std::byte>(header.size() >> (8 * i)));
  }
  return file + bytes(header) + elements;
}

Tensor read(const Bytes& file) { return read_npy(file, "array"); }

TEST_CASE("npy: reads every element type in both byte orders") {
  struct Case {
    std::string_view descr;
    Bytes elements;
    Tensor want;
  };
  const std::array cases{
      Case{"|u1", bytes({1, 255}), tensor<std::uint8_t>({2}, {1, 255})},
      Case{"|b1", bytes({1, 0}), tensor<bool>({2}, {true, false})},
      Case{"|i1", bytes({0xFF, 2}), tensor<std::int32_t>({2}, {-1, 2})},
      Case{"<i2", bytes({0xFE, 0xFF, 1, 2}), tensor<std::int32_t>({2}, {-2, 0x201})},
      Case{">u2", bytes({0xFF, 0xFE, 1, 2}), tensor<std::int32_t>({2}, {0xFFFE, 0x102})},
      Case{">i4", bytes({0, 0, 1, 2, 255, 255, 255, 255}), tensor<std::int32_t>({2}, {258, -1})},
      Case{"<u4",
           bytes({0, 0, 0, 0x80, 1, 0, 0, 0}),
           tensor<std::int64_t>({2}, {std::int64_t{1} << 31, 1})},
      Case{">u8",
           bytes({0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0}),
           tensor<std::int64_t>({2}, {9, std::int64_t{1} << 32})},
      Case{"<i8",
           bytes({1, 0, 0, 0, 0, 0, 0, 0x80, 2, 0, 0, 0, 0, 0, 0, 0}),
           tensor<std::int64_t>({2}, {std::numeric_limits<std::int64_t>::min() + 1, 2})},
      Case{"<f2", bytes({0, 0x3C, 0, 0xC0}), tensor<float16>({2}, {float16(1.0F), float16(-2.0F)})},
      Case{">f4", bytes({0x3F, 0x80, 0, 0, 0xC0, 0, 0, 0}), tensor<float>({2}, {1.0F, -2.0F})},
      Case{"<f8",
           bytes({0, 0, 0, 0, 0, 0, 0xF0, 0x3F, 0, 0, 0, 0, 0, 0, 0, 0xC0}),
           tensor<double>({2}, {1.0, -2.0})},
  };
  for (const Case& c : cases) {
    CAPTURE(c.descr);
    const std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (2,), }}", c.descr);
    for (const int version : {1, 2, 3}) CHECK(same(read(npy(header, c.elements, version)), c.want));
  }
}

TEST_CASE("npy: column-major arrays are turned to row-major") {
  // np.asfortranarray(np.arange(24).reshape(2, 3, 4)) in memory order.
  Bytes elements;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) elements.push_back(static_cast<std::byte>(i * 12 + j * 4 + k));
    }
  }
  CHECK(same(read(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }", elements)),
             counting(DType::uint8, {2, 3, 4})));
  Bytes wide;
  for (const std::byte b : elements) wide = wide + Bytes{std::byte{0}, b};
  CHECK(same(read(npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3, 4), }", wide)),
             counting(DType::int32, {2, 3, 4})));
}

TEST_CASE("npy: headers are read in any order, spacing and quoting, and scalars are arrays") {
  struct Case {
    std::string_view header;
    Shape shape;
  };
  const std::array cases{
      Case{"{'shape': (1, 2), 'fortran_order': False, 'descr': '|u1'}", {1, 2}},
      Case{"{\"descr\":\"|u1\",\"fortran_order\":False,\"shape\":(2,1,)}", {2, 1}},
      Case{"  { 'descr' : '|u1' , 'fortran_order' : False , 'shape' : ( 2 , ) , }", {2}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.header);
    CHECK(read(npy(std::string(c.header), bytes({1, 2}))).shape() == c.shape);
  }
  CHECK(read(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", bytes({7}))).shape() ==
        Shape{});
}

TEST_CASE("npy: files that lie are refused with the reason") {
  struct Case {
    std::string_view name;
    Bytes file;
    std::string_view message;
  };
  const auto with = [](std::string_view descr, std::string_view shape, const Bytes& elements) {
    return npy(fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': {}, }}", descr, shape),
               elements);
  };
  const std::array cases{
      Case{"text", bytes("hello, world"), "is not a NumPy array"},
      Case{"version", npy("{}", {}, 4), "has NPY version 4"},
      Case{"objects", with("'|O'", "(1,)", bytes({1})), "type '|O'"},
      Case{"strings", with("'<U4'", "(1,)", bytes({1})), "type '<U4'"},
      Case{"complex", with("'<c8'", "(1,)", bytes({1})), "type '<c8'"},
      Case{"no order", with("'f4'", "(1,)", bytes({1})), "type 'f4'"},
      Case{"nothing", with("''", "(1,)", bytes({1})), "type ''"},
      Case{"records", with("[('a', '<f4')]", "(1,)", bytes({1})), "array of records"},
      Case{"negative", with("'|u1'", "(-1,)", bytes({1})), "damaged NPY header"},
      Case{"not a tuple", with("'|u1'", "1", bytes({1})), "damaged NPY header"},
      Case{"overflow", with("'|u1'", "(99999999999999999999,)", bytes({1})), "damaged NPY header"},
      Case{"too large",
           with("'<f8'", "(4294967296, 4294967296, 2)", bytes({1})),
           "more than can be"},
      Case{"too few", with("'|u1'", "(3,)", bytes({1})), "has 1 bytes of elements"},
      Case{"too many", with("'|u1'", "(3,)", bytes({1, 2, 3, 4})), "has 4 bytes of elements"},
      Case{"axes", with("'|u1'", "(1,1,1,1,1,1,1,1,1)", bytes({1})), "has 9 axes"},
      Case{"beyond int64",
           with("'<u8'", "(1,)", bytes({0, 0, 0, 0, 0, 0, 0, 0x80})),
           "has 9223372036854775808, which is beyond int64"},
      Case{"boolean", with("'|b1'", "(1,)", bytes({2})), "neither 0 nor 1"},
      Case{"missing key", npy("{'descr': '|u1', 'shape': (1,)}", bytes({1})), "damaged NPY header"},
      Case{"extra key",
           npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1,), 'a': 1}", bytes({1})),
           "damaged NPY header"},
      Case{"twice",
           npy("{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (1,)}",
               bytes({1})),
           "damaged NPY header"},
      Case{"open",
           npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)", bytes({1})),
           "damaged NPY header"},
      Case{"rest",
           npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} x", bytes({1})),
           "damaged NPY header"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::string message = error_of([&] { read(c.file); });
    CAPTURE(message);
    CHECK(contains(message, c.message));
  }
}

TEST_CASE("npy: headers are padded to 64 bytes and read back") {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{5}, Shape{2, 3}, Shape{1, 2, 3, 4}}) {
    for (const DType dtype : {DType::uint8,
                              DType::boolean,
                              DType::int32,
                              DType::int64,
                              DType::float16,
                              DType::float32,
                              DType::float64}) {
      CAPTURE(to_string(shape));
      CAPTURE(name(dtype));
      const Tensor t = counting(dtype, shape);
      Bytes file = npy_header(dtype, shape);
      CHECK(file.size() % 64 == 0);
      file.insert(file.end(), t.as<std::byte>(), t.as<std::byte>() + t.bytes());
      CHECK(same(read(file), t));
    }
  }
  CHECK_THROWS_AS(npy_header(DType::bfloat16, {1}), InternalError);
}

TEST_CASE("npz: what is written is read back, in order") {
  const TempFolder folder;
  const Tensor images = counting(DType::uint8, {5, 4, 3});
  const Tensor weights = counting(DType::float32, {7});
  const Tensor none = counting(DType::float64, {0, 3});
  const std::string path = folder.file("a.npz");
  write_npz(path,
            std::array{NamedTensor{"x_train", images.view()},
                       NamedTensor{"layer/kernel:0", weights.view()},
                       NamedTensor{"none", none.view()}});
  const NpzReader npz(path);
  CHECK(npz.names() == std::vector<std::string>{"x_train", "layer/kernel:0", "none"});
  CHECK(same(npz.read("x_train"), images));
  CHECK(same(npz.read("layer/kernel:0"), weights));
  CHECK(same(npz.read("none"), none));
  CHECK(contains(error_of([&] { npz.read("x_trian"); }), "did you mean 'x_train'?"));
  CHECK_THROWS_AS(
      write_npz(folder.file("b.npz"),
                std::array{NamedTensor{"x", images.view()}, NamedTensor{"x", images.view()}}),
      InternalError);
  CHECK(!std::filesystem::exists(folder.file("b.npz")));
}

TEST_CASE("npz: python reads what is written, and the other way round") {
  if (std::system("python3 -c 'import numpy' 2>/dev/null") != 0) {
    MESSAGE("python3-numpy is not installed; skipped");
    return;
  }
  const TempFolder folder;
  const Tensor t = counting(DType::float32, {3, 4});
  write_npz(folder.file("in.npz"), std::array{NamedTensor{"t", t.view()}});
  const std::string script =
      "import numpy as np; t = np.load('in.npz')['t']; "
      "assert (t == np.arange(12).reshape(3, 4)).all() and t.dtype == np.float32; "
      "np.savez_compressed('out.npz', t=np.asfortranarray(t), u=t.astype('>i2'))";
  REQUIRE(std::system(fmt::format("cd '{}' && python3 -c \"{}\"", folder.path(), script).c_str()) ==
          0);
  const NpzReader npz(folder.file("out.npz"));
  CHECK(same(npz.read("t"), t));
  CHECK(same(npz.read("u"), counting(DType::int32, {3, 4})));
}

/// A ZIP archive with one entry, put together by hand; fields can be falsified.
struct HandmadeZip {
  std::string name = "x.npy";
  std::string local_name = "x.npy";
  Bytes stored;
  std::uint32_t crc = 0;
  std::uint64_t stored_size = 0;
  std::uint64_t size = 0;
  std::uint16_t flags = 0;
  std::uint16_t method = 8;
  std::uint16_t entries = 1;
  std::uint16_t disk = 0;
  std::uint32_t local_offset = 0;
  Bytes extra;
  std::string comment;

  template <class T>
  static void put(Bytes& to, T value) {
    const auto all = std::as_bytes(std::span(&value, 1));
    to.insert(to.end(), all.begin(), all.end());
  }
  void put_common(Bytes& to) const {
    put(to, flags);
    put(to, method);
    put(to, std::uint32_t{0});
    put(to, crc);
    put(to, static_cast<std::uint32_t>(stored_size));
    put(to, static_cast<std::uint32_t>(size));
  }
  Bytes file() const {
    Bytes all = bytes("PK\x03\x04") + bytes({20, 0});
    put_common(all);
    put(all, static_cast<std::uint16_t>(local_name.size()));
    put(all, std::uint16_t{0});
    all = all + bytes(local_name) + stored;
    const std::size_t directory = all.size();
    all = all + bytes("PK\x01\x02") + bytes({20, 0, 20, 0});
    put_common(all);
    put(all, static_cast<std::uint16_t>(name.size()));
    put(all, static_cast<std::uint16_t>(extra.size()));
    all.resize(all.size() + 10);
    put(all, local_offset);
    all = all + bytes(name) + extra;
    const std::size_t directory_bytes = all.size() - directory;
    all = all + bytes("PK\x05\x06");
    put(all, disk);
    put(all, disk);
    put(all, entries);
    put(all, entries);
    put(all, static_cast<std::uint32_t>(directory_bytes));
    put(all, static_cast<std::uint32_t>(directory));
    put(all, static_cast<std::uint16_t>(comment.size()));
    return all + bytes(comment);
  }
};

/// The archive np.savez_compressed(x=np.array([1, 2, 3], 'u1')) would be.
HandmadeZip good_zip() {
  Bytes content = npy_header(DType::uint8, {3}) + bytes({1, 2, 3});
  HandmadeZip zip;
  zip.stored = deflate(content, Wrapper::none);
  zip.size = content.size();
  zip.stored_size = zip.stored.size();
  // gzip ends in the CRC-32 and the size of its content.
  const Bytes gzip = deflate(content, Wrapper::gzip);
  zip.crc = load_le<std::uint32_t>(gzip.data() + gzip.size() - 8);
  return zip;
}

Tensor read_x(const std::string& path) { return NpzReader(path).read("x"); }

TEST_CASE("npz: deflated entries, comments and zip64 fields are read") {
  const TempFolder folder;
  const std::string path = folder.file("a.npz");
  const Tensor want = tensor<std::uint8_t>({3}, {1, 2, 3});
  HandmadeZip zip = good_zip();
  write_bytes(path, zip.file());
  CHECK(same(read_x(path), want));

  zip.comment = "a comment that says PK\x05\x06 somewhere in its middle, and then goes on";
  write_bytes(path, zip.file());
  CHECK(same(read_x(path), want));

  zip = good_zip();
  zip.extra = bytes({0xAA, 0xBB, 1, 0, 7, 1, 0, 16, 0});  // something unknown before zip64's field
  HandmadeZip::put(zip.extra, zip.size);
  HandmadeZip::put(zip.extra, zip.stored_size);
  zip.size = zip.stored_size = 0xFFFFFFFF;
  write_bytes(path, zip.file());
  CHECK(same(read_x(path), want));
}

TEST_CASE("npz: archives written as zip64 are read back") {
  const TempFolder folder;
  const std::string path = folder.file("a.npz");
  const Bytes content = npy_header(DType::uint8, {3}) + bytes({1, 2, 3});
  ZipWriter zip(path, 1);
  zip.add("x.npy", {content});
  zip.add("y.npy", {content});
  zip.commit();
  const NpzReader npz(path);
  CHECK(npz.names() == std::vector<std::string>{"x", "y"});
  CHECK(same(npz.read("y"), tensor<std::uint8_t>({3}, {1, 2, 3})));
  if (std::system("command -v python3 >/dev/null") == 0) {
    CHECK(std::system(fmt::format("python3 -m zipfile -t '{}' >/dev/null", path).c_str()) == 0);
  }
}

TEST_CASE("npz: archives that lie are refused with the reason") {
  struct Case {
    std::string_view name;
    void (*falsify)(HandmadeZip&);
    std::string_view message;
  };
  const std::array cases{
      Case{"wrong CRC", [](HandmadeZip& z) { z.crc ^= 1; }, "fails its CRC-32"},
      Case{"encrypted", [](HandmadeZip& z) { z.flags = 1; }, "is encrypted"},
      Case{"unknown method", [](HandmadeZip& z) { z.method = 14; }, "by method 14"},
      Case{"deflated, said to be stored", [](HandmadeZip& z) { z.method = 0; }, "cannot hold"},
      Case{"size too large", [](HandmadeZip& z) { z.size += 1; }, "does not have the"},
      Case{"size too small", [](HandmadeZip& z) { z.size -= 1; }, "does not have the"},
      Case{"a bomb's size", [](HandmadeZip& z) { z.size = 0xF0000000; }, "cannot hold"},
      Case{"stored size beyond the file", [](HandmadeZip& z) { z.stored_size += 1000; }, "damaged"},
      Case{"offset beyond the file", [](HandmadeZip& z) { z.local_offset = 1 << 20; }, "damaged"},
      Case{"other local name", [](HandmadeZip& z) { z.local_name = "y.npy"; }, "damaged"},
      Case{"more entries than there are", [](HandmadeZip& z) { z.entries = 2; }, "entry 1"},
      Case{"no entries", [](HandmadeZip& z) { z.entries = 0; }, "has no arrays"},
      Case{"several parts", [](HandmadeZip& z) { z.disk = 1; }, "one part of"},
      Case{"no arrays", [](HandmadeZip& z) { z.name = z.local_name = "x.txt"; }, "has no arrays"},
      Case{"zip64 field missing", [](HandmadeZip& z) { z.size = 0xFFFFFFFF; }, "damaged"},
      Case{"extra field too long",
           [](HandmadeZip& z) {
             z.size = 0xFFFFFFFF;
             z.extra = bytes({1, 0, 200, 0});
           },
           "damaged"},
      Case{"deflate damaged", [](HandmadeZip& z) { z.stored[0] ^= std::byte{6}; }, "damaged"},
  };
  const TempFolder folder;
  const std::string path = folder.file("a.npz");
  for (const Case& c : cases) {
    CAPTURE(c.name);
    HandmadeZip zip = good_zip();
    c.falsify(zip);
    write_bytes(path, zip.file());
    const std::string message = error_of([&] { read_x(path); });
    CAPTURE(message);
    CHECK(contains(message, c.message));
  }
  const Tensor x = counting(DType::uint8, {1});
  ZipWriter twice(path);
  twice.add("x.npy", {});
  twice.add("x.npy", {});
  twice.commit();
  CHECK(contains(error_of([&] { read_x(path); }), "has entry 'x.npy' twice"));
  write_bytes(path, bytes("this is no archive, but it is long enough to be one"));
  CHECK(contains(error_of([&] { read_x(path); }),
                 "is not an NPZ file (a ZIP archive) but text, perhaps CSV"));
}

TEST_CASE("npz: every truncation is refused") {
  const TempFolder folder;
  check_truncations(folder.file("t.npz"), good_zip().file(), read_x);
}

TEST_CASE("npz: no flipped bit goes unseen") {
  const TempFolder folder;
  const Tensor want = tensor<std::uint8_t>({3}, {1, 2, 3});
  check_bit_flips(folder.file("t.npz"), good_zip().file(), read_x, [&](const Tensor& t) {
    return same(t, want);
  });
}

}  // namespace
}  // namespace halfstep::data::testing
