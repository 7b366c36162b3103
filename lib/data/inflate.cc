#include "data/inflate.h"

#include <algorithm>
#include <new>
#include <vector>

#include "data/file.h"
#include "data/window_bits.h"

namespace halfstep::data {

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
      } else if (std::any_of(
                     after.begin(), after.end(), [](std::byte b) { return b != std::byte{0}; })) {
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

}  // namespace halfstep::data
