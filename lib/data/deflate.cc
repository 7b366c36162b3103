#include "data/deflate.h"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <vector>

#include "core/error.h"
#include "data/file.h"

namespace halfstep::data {
namespace {

/// zlib's encoding of the wrapper of a stream.
int window_bits(Wrapper wrapper) {
  switch (wrapper) {
    case Wrapper::none:
      return -MAX_WBITS;
    case Wrapper::zlib:
      return MAX_WBITS;
    case Wrapper::gzip:
      return MAX_WBITS + 16;
  }
  return 0;
}

/// zlib's counters have 32 bits.
constexpr std::size_t k_largest_piece = std::size_t{1} << 30;

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

bool may_hold(std::span<const std::byte> input,
              Wrapper wrapper,
              const std::string& file,
              std::uint64_t bytes) {
  constexpr std::uint64_t k_largest_expansion = 1032;  // 258 bytes out of 2 bits
  constexpr std::uint64_t k_much = std::uint64_t{64} << 20U;
  if (bytes / k_largest_expansion > input.size()) return false;
  if (bytes <= k_much) return true;
  Inflater inflater(input, wrapper, file);
  std::vector<std::byte> piece(std::size_t{1} << 18U);
  for (std::uint64_t left = bytes; left > 0;) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size()));
    if (inflater.read(std::span(piece).first(wanted)) < wanted) return false;
    left -= wanted;
  }
  return true;
}

struct Inflater::State {
  z_stream stream{};
  std::span<const std::byte> rest;  ///< not yet passed to zlib
  Wrapper wrapper;
  std::string file;
  bool done = false;

  void refill() {
    if (stream.avail_in > 0 || rest.empty()) return;
    const std::size_t piece = std::min(rest.size(), k_largest_piece);
    // zlib does not write through next_in.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest.data()));
    stream.avail_in = static_cast<uInt>(piece);
    rest = rest.subspan(piece);
  }

  std::span<const std::byte> unread() const {
    return {reinterpret_cast<const std::byte*>(stream.next_in), stream.avail_in + rest.size()};
  }
};

Inflater::Inflater(std::span<const std::byte> input, Wrapper wrapper, std::string file)
    : state_(std::make_unique<State>()) {
  state_->rest = input;
  state_->wrapper = wrapper;
  state_->file = std::move(file);
  if (inflateInit2(&state_->stream, window_bits(wrapper)) != Z_OK) throw std::bad_alloc();
}

Inflater::~Inflater() { inflateEnd(&state_->stream); }

std::size_t Inflater::read(std::span<std::byte> out) {
  State& s = *state_;
  std::size_t written = 0;
  while (written < out.size() && !s.done) {
    s.refill();
    const std::size_t piece = std::min(out.size() - written, k_largest_piece);
    s.stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    s.stream.avail_out = static_cast<uInt>(piece);
    const int status = inflate(&s.stream, Z_NO_FLUSH);
    written += piece - s.stream.avail_out;
    if (status == Z_STREAM_END) {
      s.done = true;
      if (s.wrapper != Wrapper::gzip) continue;
      const std::span<const std::byte> after = s.unread();
      if (is_gzip(after)) {
        inflateReset(&s.stream);
        s.done = false;
      } else if (std::ranges::any_of(after, [](std::byte b) { return b != std::byte{0}; })) {
        throw file_error(s.file, "{} bytes follow the end of its gzip data", after.size());
      }
    } else if (status == Z_BUF_ERROR) {
      throw file_error(s.file, "is cut off in the middle of its compressed data");
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != Z_OK) {
      throw file_error(s.file,
                       "has damaged compressed data{}{}",
                       s.stream.msg != nullptr ? ": " : "",
                       s.stream.msg != nullptr ? s.stream.msg : "");
    }
  }
  return written;
}

std::vector<std::byte> decompressed(std::vector<std::byte> bytes, const std::string& file) {
  if (!is_gzip(bytes)) return bytes;
  Inflater inflater(bytes, Wrapper::gzip, file);
  std::vector<std::byte> plain;
  for (std::size_t got = 0, piece = std::size_t{1} << 20;;) {
    plain.resize(got + piece);
    const std::size_t n = inflater.read(std::span(plain).subspan(got));
    got += n;
    if (n == piece) continue;
    plain.resize(got);
    return plain;
  }
}

std::vector<std::byte> deflate(std::span<const std::byte> bytes, Wrapper wrapper) {
  z_stream stream{};
  const int ready = deflateInit2(
      &stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window_bits(wrapper), 8, Z_DEFAULT_STRATEGY);
  if (ready != Z_OK) throw std::bad_alloc();
  std::vector<std::byte> out(1024 + bytes.size() / 2);
  std::size_t written = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0 && !bytes.empty()) {
      const std::size_t piece = std::min(bytes.size(), k_largest_piece);
      // zlib does not write through next_in.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(piece);
      bytes = bytes.subspan(piece);
    }
    if (written == out.size()) out.resize(2 * out.size());
    const std::size_t piece = std::min(out.size() - written, k_largest_piece);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + written);
    stream.avail_out = static_cast<uInt>(piece);
    status = ::deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    written += piece - stream.avail_out;
  }
  deflateEnd(&stream);
  require(status == Z_STREAM_END, "zlib stopped with {}", status);
  out.resize(written);
  return out;
}

std::uint32_t crc_of(std::span<const std::byte> bytes, std::uint32_t crc) {
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), k_largest_piece);
    crc = static_cast<std::uint32_t>(
        crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(n)));
    bytes = bytes.subspan(n);
  }
  return crc;
}

}  // namespace halfstep::data
