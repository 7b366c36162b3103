#pragma once
// Long sums in pieces, of which one is added in the caches while the next ones travel.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace halfstep::comm {

/// A sum of a part of the buffer for which Communicator::wait() waits.
class PieceOfSum : public Sum {
 public:
  void start(std::byte* numbers) final { start(numbers, numbers); }
  virtual void start(std::byte* numbers, const std::byte* buffer) = 0;
};

/// An all-reduce of `count` numbers, in pieces that make() returns for their number of elements.
class SumOfPieces final : public Sum {
 public:
  /// The number of pieces, which have equal sizes, so that none is short. A rank adds 512 KiB of
  /// each: of smaller ones it would send more messages than latency allows, since it sends one to
  /// every other rank.
  static std::int64_t pieces(std::int64_t count, int ranks, DType dtype) {
    return count * static_cast<std::int64_t>(size_bytes(dtype)) / (std::int64_t{ranks} << 19);
  }
  template <class Make>
  SumOfPieces(std::int64_t count, int ranks, DType dtype, const Make& make)
      : number_bytes_(static_cast<std::int64_t>(size_bytes(dtype))) {
    const std::int64_t pieces = SumOfPieces::pieces(count, ranks, dtype);
    each_ = padded_count((count + pieces - 1) / pieces, ranks);
    for (std::int64_t at = 0; at < count; at += each_) {
      pieces_.push_back(make(std::min(count - at, each_)));
    }
  }
  void start(std::byte* numbers) override {
    const std::byte* buffer = numbers;
    for (const auto& piece : pieces_) {
      piece->start(numbers, buffer);
      numbers += each_ * number_bytes_;
    }
  }

 private:
  std::int64_t number_bytes_, each_ = 0;
  std::vector<std::unique_ptr<PieceOfSum>> pieces_;
};

}  // namespace halfstep::comm
