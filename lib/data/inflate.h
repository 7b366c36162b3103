#pragma once
// Decompression piece by piece, so that the reader decides how much memory it is worth.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace halfstep::data {

/// The wrappers of a deflate stream: none (zip), zlib's (PNG), gzip's.
enum class Wrapper { none, zlib, gzip };

/// Whether data starts like a gzip file.
bool is_gzip(std::span<const std::byte> bytes);

/// Whether `input` can be expected to inflate to at least `bytes` bytes, so that memory may be
/// taken for them: no deflate stream grows by more than its limit, and where that would be much
/// memory, the stream is inflated once and nothing kept. `file` is named in errors. Errors:
/// UserError(data) when the stream is damaged or cut off.
bool may_hold(std::span<const std::byte> input,
              Wrapper wrapper,
              const std::string& file,
              std::uint64_t bytes);

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
