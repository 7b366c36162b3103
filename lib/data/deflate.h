#pragma once
// Deflate streams: decompression, incremental so that the caller bounds the memory, compression,
// and the checksum of the formats around them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace halfstep::data {

/// The wrappers of a deflate stream: none (zip), zlib's (PNG), gzip's.
enum class Wrapper { none, zlib, gzip };

/// Whether data starts like a gzip file.
bool is_gzip(std::span<const std::byte> bytes);

/// Whether `input` can inflate to at least `bytes` bytes; checked before allocating that much.
/// Deflate expands by a factor of 1032 at most; where that bound would allow much memory, the
/// stream is inflated once and discarded. `file` is named in errors. Errors: UserError(data) when
/// the stream is damaged or truncated.
bool may_hold(std::span<const std::byte> input,
              Wrapper wrapper,
              const std::string& file,
              std::uint64_t bytes);

/// One compressed stream in memory; gzip members may be concatenated.
class Inflater {
 public:
  /// `file` is named in errors. `input` must outlive the inflater.
  Inflater(std::span<const std::byte> input, Wrapper wrapper, std::string file);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Writes up to out.size() bytes and returns how many; fewer only at the end of the stream, after
  /// the wrapper's checksum has been verified. Errors: UserError(data) when the stream is damaged
  /// or truncated.
  std::size_t read(std::span<std::byte> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The content of a file: of a gzip file decompressed, whatever its size, else the bytes.
/// Errors: UserError(data) when the stream is damaged or truncated.
std::vector<std::byte> decompressed(std::vector<std::byte> bytes, const std::string& file);

/// The bytes as one deflate stream in the given wrapper.
std::vector<std::byte> deflate(std::span<const std::byte> bytes, Wrapper wrapper);

/// Continues the CRC-32 of ZIP and PNG, `crc` (0 to begin with), over more bytes.
std::uint32_t crc_of(std::span<const std::byte> bytes, std::uint32_t crc = 0);

}  // namespace halfstep::data
