#include "data/deflate.h"

#include <algorithm>
#include <new>

#include "core/error.h"
#include "data/window_bits.h"

namespace halfstep::data {

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

}  // namespace halfstep::data
