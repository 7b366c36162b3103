// Random damage to files of every format: the file is read, or rejected with a message.

#include "support/damage.h"

#include "data/deflate.h"
#include "data/image.h"
#include "data/tensor_files.h"
#include "files.h"

namespace halfstep::data::testing {
namespace {

using namespace std::string_view_literals;
using test::DamageOutcome;

constexpr int k_rounds = 500;

std::string text_of(const Bytes& content) {
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

std::string file_text(const std::string& path) { return text_of(read_file(path)); }

/// Damages the text of a file, puts it into the form that `wrap` gives it, and reads it.
template <class Wrap, class Read>
DamageOutcome damage(const std::string& valid,
                     std::span<const std::string_view> tokens,
                     Wrap wrap,
                     Read read) {
  const TempFolder folder;
  const std::string path = folder.file("f");
  return test::read_damaged(valid, tokens, k_rounds, [&](const std::string& text) {
    write_bytes(path, wrap(bytes(text)));
    read(path);
  });
}

Bytes as_it_is(const Bytes& content) { return content; }

Tensor read_picture(const std::string& path) { return read_image(path); }

/// Both ways must be taken, or the damage is of the wrong size.
void check_both(const DamageOutcome& outcome) {
  CHECK(outcome.read > 0);
  CHECK(outcome.refused > 0);
}

TEST_CASE("damage: IDX, plain and compressed") {
  const TempFolder folder;
  write_idx(folder.file("t"), counting(DType::uint8, {4, 3, 2}).view());
  const std::string valid = file_text(folder.file("t"));
  constexpr std::array k_tokens{
      "\0\0\x08\x03"sv, "\x7f\xff\xff\xff"sv, "\xff\xff\xff\xff"sv, "\0\0\0\0"sv, "\x1f\x8b"sv};
  check_both(damage(valid, k_tokens, as_it_is, read_idx));
  const auto compress = [](const Bytes& content) { return deflate(content, Wrapper::gzip); };
  check_both(damage(valid, k_tokens, compress, read_idx));
  const std::string compressed = text_of(compress(bytes(valid)));
  damage(compressed, k_tokens, as_it_is, read_idx);
}

TEST_CASE("damage: NPY and NPZ") {
  const Tensor numbers = counting(DType::float32, {3, 2});
  const Bytes header = npy_header(numbers.dtype(), numbers.shape());
  const std::string valid =
      text_of(header) + std::string(numbers.as<const char>(), numbers.bytes());
  constexpr std::array k_tokens{"9"sv,
                                "99999999999999999999"sv,
                                "-1"sv,
                                "("sv,
                                ")"sv,
                                ","sv,
                                "{"sv,
                                "}"sv,
                                "'"sv,
                                "True"sv,
                                "'<u8'"sv,
                                "'|O'"sv,
                                "[('a', '<f4')]"sv};
  check_both(test::read_damaged(
      valid, k_tokens, k_rounds, [](const std::string& text) { read_npy(bytes(text), "array"); }));

  const TempFolder folder;
  write_npz(folder.file("t"),
            std::array{NamedTensor{"x", numbers.view()}, NamedTensor{"y", numbers.view()}});
  constexpr std::array k_zip_tokens{"PK\x01\x02"sv,
                                    "PK\x03\x04"sv,
                                    "PK\x05\x06"sv,
                                    "PK\x06\x06"sv,
                                    "PK\x06\x07"sv,
                                    "\xff\xff\xff\xff"sv,
                                    "\x01\0\x10\0"sv};
  check_both(
      damage(file_text(folder.file("t")), k_zip_tokens, as_it_is, [](const std::string& path) {
        const NpzReader reader(path);
        for (const std::string& name : reader.names()) reader.read(name);
      }));
}

TEST_CASE("damage: pictures") {
  check_both(damage("P5 3 2 255\n\x01\x02\x03\x04\x05\x06",
                    std::array{"#"sv, "99999"sv, "-1"sv, "P2"sv, "\n"sv},
                    as_it_is,
                    read_picture));
  check_both(damage("P3 2 1 255 1 2 3 4 5 6",
                    std::array{"#"sv, "99999"sv, "256"sv, "-1"sv, "P2"sv, "\n"sv},
                    as_it_is,
                    read_picture));

  const auto number = [](std::size_t value) {
    return bytes({static_cast<int>(value >> 24U & 0xFFU),
                  static_cast<int>(value >> 16U & 0xFFU),
                  static_cast<int>(value >> 8U & 0xFFU),
                  static_cast<int>(value & 0xFFU)});
  };
  const auto chunk = [&](std::string_view type, const Bytes& content) {
    const Bytes body = bytes(type) + content;
    return number(content.size()) + body + number(crc_of(body));
  };
  const auto png = [&](const Bytes& header, const Bytes& rows) {
    return bytes({0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}) + chunk("IHDR", header) +
           chunk("IDAT", deflate(rows, Wrapper::zlib)) + chunk("IEND", {});
  };
  const Bytes header = bytes({0, 0, 0, 3, 0, 0, 0, 2, 8, 0, 0, 0, 0});
  const Bytes rows = bytes({0, 1, 2, 3, 1, 4, 5, 6});
  constexpr std::array k_tokens{"IHDR"sv, "IDAT"sv, "IEND"sv, "\xff\xff\xff\xff"sv, "\0\0\0\0"sv};
  damage(text_of(png(header, rows)), k_tokens, as_it_is, read_picture);
  // With the checksums of the damaged contents.
  check_both(damage(
      text_of(header),
      k_tokens,
      [&](const Bytes& damaged) { return png(damaged, rows); },
      read_picture));
  check_both(damage(
      text_of(rows),
      k_tokens,
      [&](const Bytes& damaged) { return png(header, damaged); },
      read_picture));
}

TEST_CASE("damage: safetensors") {
  const TempFolder folder;
  const Tensor a = counting(DType::float32, {2, 3}), b = counting(DType::boolean, {4});
  write_safetensors(folder.file("t"),
                    std::array{NamedTensor{"a", a.view()}, NamedTensor{"b", b.view()}},
                    {{"format", "halfstep"}});
  constexpr std::array k_tokens{"{"sv,
                                "}"sv,
                                "["sv,
                                "]"sv,
                                "\""sv,
                                ","sv,
                                ":"sv,
                                "1e999"sv,
                                "-1"sv,
                                "null"sv,
                                "18446744073709551615"sv,
                                "\"F64\""sv,
                                "\"a\""sv,
                                "\\ud800"sv};
  const auto read_all = [](const std::string& path) {
    const SafetensorsReader reader(path);
    for (const SafetensorsEntry& entry : reader.entries()) reader.read(entry);
  };
  const std::string valid = file_text(folder.file("t"));
  check_both(damage(valid, k_tokens, as_it_is, read_all));
  // With the length of the header that was damaged.
  const std::size_t length = static_cast<unsigned char>(valid[0]);
  check_both(damage(
      valid.substr(8, length),
      k_tokens,
      [&](const Bytes& header) {
        const std::uint64_t size = header.size();
        const auto prefix = std::as_bytes(std::span(&size, 1));
        return Bytes(prefix.begin(), prefix.end()) + header + bytes(valid.substr(8 + length));
      },
      read_all));
}

}  // namespace
}  // namespace halfstep::data::testing
