#pragma once
// Counter-based random numbers: the same (key, stream, index) gives the same number on every
// machine, thread count and backend.
// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (Philox-4x32-10).

#include <array>
#include <cstdint>
#include <span>
#include <utility>

namespace halfstep {

/// Ten rounds of Philox-4x32.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

/// A 64-bit mix of two numbers, to derive independent seeds (SplitMix64's finaliser).
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + 0x9E3779B97F4A7C15U * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

/// FNV-1a of a name, to key a stream by it.
constexpr std::uint64_t name_key(const char* text, std::size_t size) {
  std::uint64_t h = 0xcbf29ce484222325U;
  for (std::size_t i = 0; i < size; ++i) {
    h = (h ^ static_cast<unsigned char>(text[i])) * 0x100000001b3U;
  }
  return h;
}

/// A uniform in [0, 1) with 24 bits.
constexpr float to_uniform(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

/// Four random 32-bit words: block `index` of stream `stream` of `seed`.
constexpr std::array<std::uint32_t, 4> random_words(std::uint64_t seed,
                                                    std::uint64_t stream,
                                                    std::uint64_t index) {
  return philox({static_cast<std::uint32_t>(index),
                 static_cast<std::uint32_t>(index >> 32),
                 static_cast<std::uint32_t>(stream),
                 static_cast<std::uint32_t>(stream >> 32)},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

/// A sequential reader over one stream.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
  std::uint32_t next() {
    if (used_ == 4) {
      words_ = random_words(seed_, stream_, index_++);
      used_ = 0;
    }
    return words_[used_++];
  }
  /// [0, 1)
  float uniform() { return to_uniform(next()); }
  /// An integer in [0, n) without bias; n >= 1.
  std::uint64_t below(std::uint64_t n) {
    const std::uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    for (;;) {
      const std::uint64_t high = next();
      const std::uint64_t x = high << 32 | next();
      if (x < limit) return x % n;
    }
  }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t index_ = 0;
  std::array<std::uint32_t, 4> words_{};
  std::size_t used_ = 4;
};

/// Draws an order of the elements.
template <class T>
void shuffle(std::span<T> elements, RandomStream& random) {
  for (std::size_t i = elements.size(); i > 1; --i) {
    std::swap(elements[i - 1], elements[random.below(i)]);
  }
}

}  // namespace halfstep
