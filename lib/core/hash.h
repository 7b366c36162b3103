#pragma once
// XXH3-128 for tensors (fast), SHA-256 for files (the hash that published checksums use).

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace halfstep {

/// Incremental XXH3-128.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  Hasher& add(std::span<const std::byte> bytes);
  Hasher& add(std::string_view text);
  /// 32 lower-case hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// XXH3-128 of a file's bytes. Errors: UserError(data) when it cannot be read.
std::string hash_file(const std::string& path);

/// 64 lower-case hexadecimal digits (FIPS 180-4).
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace halfstep
