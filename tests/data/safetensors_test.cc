#include <doctest/doctest.h>

#include <array>

#include "data/tensor_files.h"
#include "files.h"

namespace halfstep::data::testing {
namespace {

Bytes file_with(std::string_view header, const Bytes& data) {
  const std::uint64_t length = header.size();
  const auto prefix = std::as_bytes(std::span(&length, 1));
  return Bytes(prefix.begin(), prefix.end()) + bytes(header) + data;
}

/// Reads the whole file, so that every tensor is looked at.
std::map<std::string, Tensor> read_all(const std::string& path) {
  const SafetensorsReader reader(path);
  std::map<std::string, Tensor> tensors;
  for (const SafetensorsEntry& entry : reader.entries()) {
    tensors.emplace(entry.name, reader.read(entry));
  }
  return tensors;
}

TEST_CASE("safetensors: what is written is read back, for every type and shape") {
  const TempFolder folder;
  const std::string path = folder.file("t.safetensors");
  std::vector<Tensor> tensors;
  std::vector<NamedTensor> named;
  for (const DType dtype : {DType::uint8,
                            DType::boolean,
                            DType::int32,
                            DType::int64,
                            DType::float16,
                            DType::bfloat16,
                            DType::float32,
                            DType::float64}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0}, Shape{5, 1, 7}}) {
      tensors.push_back(counting(dtype, shape));
      named.push_back(
          {fmt::format("{} {} \"\\\u00fc", name(dtype), to_string(shape)), tensors.back().view()});
    }
  }
  write_safetensors(path, named, {{"format", "halfstep"}, {"step", "12"}});
  const SafetensorsReader reader(path);
  CHECK(reader.metadata() ==
        std::map<std::string, std::string>{{"format", "halfstep"}, {"step", "12"}});
  CHECK(reader.entries().size() == named.size());
  for (std::size_t i = 0; i < named.size(); ++i) {
    CAPTURE(named[i].name);
    const SafetensorsEntry* entry = reader.find(named[i].name);
    REQUIRE(entry != nullptr);
    CHECK(same(reader.read(*entry), tensors[i]));
    CHECK(entry->begin % size_bytes(entry->dtype) == 0);
    Tensor place(entry->dtype, {entry->shape.elements()});
    reader.read(*entry, place.view());
    place.reshape(entry->shape);
    CHECK(same(place, tensors[i]));
  }
  CHECK(reader.find("absent") == nullptr);
  CHECK_THROWS_AS(reader.read(reader.entries()[0], Tensor(DType::uint8, {1}).view()),
                  InternalError);

  write_safetensors(path, {});
  CHECK(SafetensorsReader(path).entries().empty());
}

TEST_CASE("safetensors: the bytes are the ones of the format") {
  const TempFolder folder;
  const std::string path = folder.file("t.safetensors");
  const Tensor t = tensor<float>({1, 2}, {1.0F, -2.0F});
  write_safetensors(path, std::array{NamedTensor{"w", t.view()}});
  const Bytes got = read_file(path);
  CHECK(got == file_with(R"({"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})",
                         bytes({0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0})));
  write_safetensors(path, std::array{NamedTensor{"ab", t.view()}});
  CHECK(read_file(path) ==
        file_with(R"({"ab":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}       )",
                  bytes({0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0})));
  write_safetensors(path, std::array{NamedTensor{"w", t.view()}});
  CHECK_THROWS_AS(
      write_safetensors(path, std::array{NamedTensor{"w", t.view()}, NamedTensor{"w", t.view()}}),
      InternalError);
  CHECK_THROWS_AS(write_safetensors(path, std::array{NamedTensor{"__metadata__", t.view()}}),
                  InternalError);
  const Tensor wrong(DType::int16, {1});
  CHECK_THROWS_AS(write_safetensors(path, std::array{NamedTensor{"w", wrong.view()}}),
                  InternalError);
  CHECK(read_file(path) == got);
}

TEST_CASE("safetensors: files that lie are refused with the reason") {
  struct Case {
    std::string_view name;
    Bytes file;
    std::string_view message;
  };
  const Bytes four = bytes({1, 2, 3, 4});
  const auto u8 = [&](std::string_view rest) {
    return file_with(fmt::format("{{\"a\":{{\"dtype\":\"U8\",{}}}}}", rest), four);
  };
  const std::array cases{
      Case{"short", bytes({1, 2, 3}), "it has 3 bytes"},
      Case{"header beyond the end", bytes({200, 0, 0, 0, 0, 0, 0, 0, 1}), "would have 200 bytes"},
      Case{"header of 2^63", bytes({0, 0, 0, 0, 0, 0, 0, 0x80, 1}), "is cut off or no safetensors"},
      Case{"not an object", file_with("[1]", {}), "is not a safetensors file"},
      Case{"not JSON", file_with("{nonsense}", {}), "is not JSON"},
      Case{"JSON and more", file_with("{} {}", {}), "is not JSON"},
      Case{"a number beyond double", file_with("{\"a\": 1e999}", {}), "no double can hold"},
      Case{"an offset beyond double",
           file_with("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1e999]}}",
                     bytes({1})),
           "no double can hold"},
      Case{"deep", file_with(R"({"a":{"shape":[[1]]}})", {}), "nested more than 3 levels"},
      Case{"no description", file_with(R"({"a":1})", {}), "describes tensor 'a' wrongly"},
      Case{"no offsets", u8(R"("shape":[4])"), "describes tensor 'a' wrongly"},
      Case{"extra key", u8(R"("shape":[4],"data_offsets":[0,4],"x":1)"), "describes tensor 'a'"},
      Case{"negative", u8(R"("shape":[-4],"data_offsets":[0,4])"), "describes tensor 'a' wrongly"},
      Case{"fraction", u8(R"("shape":[4.0],"data_offsets":[0,4])"), "describes tensor 'a' wrongly"},
      Case{"one offset", u8(R"("shape":[4],"data_offsets":[4])"), "describes tensor 'a' wrongly"},
      Case{"backwards", u8(R"("shape":[4],"data_offsets":[4,0])"), "another size than its shape"},
      Case{"size", u8(R"("shape":[3],"data_offsets":[0,4])"), "another size than its shape"},
      Case{"overflow",
           u8(R"("shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0])"),
           "another size than its shape"},
      Case{"beyond int64",
           u8(R"("shape":[18446744073709551615],"data_offsets":[0,4])"),
           "describes tensor 'a' wrongly"},
      Case{"rank", u8(R"("shape":[1,1,1,1,1,1,1,1,4],"data_offsets":[0,4])"), "describes tensor"},
      Case{"beyond the file", u8(R"("shape":[5],"data_offsets":[0,5])"), "has 4 bytes of tensors"},
      Case{"bytes left over", u8(R"("shape":[3],"data_offsets":[0,3])"), "has 4 bytes of tensors"},
      Case{"hole at the start", u8(R"("shape":[3],"data_offsets":[1,4])"), "a hole before tensor"},
      Case{"type",
           file_with(R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", four),
           "of type 'F8_E4M3'"},
      Case{"boolean",
           file_with(R"({"a":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}})", four),
           "neither 0 nor 1"},
      Case{"overlap",
           file_with(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                     R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                     four),
           "an overlap before tensor 'b'"},
      Case{"hole",
           file_with(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                     R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                     four),
           "a hole before tensor 'b'"},
      Case{"name twice",
           file_with(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                     R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                     four),
           "the key 'a' twice"},
      Case{"key twice",
           u8(R"("shape":[4],"shape":[4],"data_offsets":[0,4])"),
           "the key 'a.shape' twice"},
      Case{"metadata", file_with(R"({"__metadata__":[]})", {}), "not a map of strings"},
      Case{"metadata value", file_with(R"({"__metadata__":{"a":1}})", {}), "that is not a string"},
  };
  const TempFolder folder;
  const std::string path = folder.file("t.safetensors");
  for (const Case& c : cases) {
    CAPTURE(c.name);
    write_bytes(path, c.file);
    const std::string message = error_of([&] { read_all(path); });
    CAPTURE(message);
    CHECK(contains(message, c.message));
    CHECK(contains(message, path));
  }
}

Bytes small_file() {
  const TempFolder folder;
  const Tensor a = counting(DType::float32, {2, 2});
  const Tensor b = counting(DType::boolean, {3});
  write_safetensors(folder.file("t"),
                    std::array{NamedTensor{"a", a.view()}, NamedTensor{"b", b.view()}},
                    {{"k", "v"}});
  return read_file(folder.file("t"));
}

TEST_CASE("safetensors: every truncation and every longer file is refused") {
  const TempFolder folder;
  const Bytes whole = small_file();
  check_truncations(folder.file("t"), whole, read_all);
  write_bytes(folder.file("t"), whole + bytes({0}));
  CHECK(error_of([&] { read_all(folder.file("t")); }) != "");
}

TEST_CASE("safetensors: a flipped bit is refused or changes one tensor, and never crashes") {
  const TempFolder folder;
  check_bit_flips(folder.file("t"), small_file(), read_all, [](const auto& tensors) {
    return tensors.size() <= 2;
  });
}

}  // namespace
}  // namespace halfstep::data::testing
