#pragma once
// Decompression piece by piece, so that the reader decides how much memory it is worth.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace halfstep::data {

/// The wrappers of a deflate stream: none (zip), zlib's (PNG), gzip's.
enum class Wrapper { none, zlib, gzip };

/// No deflate stream grows by more: 258 bytes out of 2 bits.
constexpr std::uint64_t k_largest_expansion = 1032;

/// Whether data starts like a gzip file.
bool is_gzip(std::span<const std::byte> bytes);

/// One compressed stream held in memory; for gzip also several, one after the other.
class Inflater {
 public:
  /// `file` is named in errors. `input` must outlive the inflater.
  Inflater(std::span<const std::byte> input, Wrapper wrapper, std::string file);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Writes up to out.size() bytes and says how many; fewer only at the end, where the checksum of
  /// the wrapper has been compared.
  /// Errors: UserError(data) when the stream is damaged or cut off.
  std::size_t read(std::span<std::byte> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halfstep::data
