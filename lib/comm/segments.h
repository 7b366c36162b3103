#pragma once
// Long all-reduces in segments: one is reduced in the caches while the next ones are transferred.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace halfstep::comm {

/// A collective on a segment of the buffer that Communicator::wait() names.
class SegmentCollective : public Collective {
 public:
  void start(std::byte* numbers) final { start(numbers, numbers); }
  virtual void start(std::byte* numbers, const std::byte* buffer) = 0;
};

/// An all-reduce of `count` elements in segments; make(n) returns the collective of n elements.
class SegmentedAllReduce final : public Collective {
 public:
  /// The number of segments, of equal size. A rank reduces 512 KiB of each; smaller segments would
  /// be bound by latency, since a rank sends a message per segment to every other rank.
  static std::int64_t segment_count(std::int64_t count, int ranks, DType dtype) {
    return count * static_cast<std::int64_t>(size_bytes(dtype)) / (std::int64_t{ranks} << 19);
  }
  template <class Make>
  SegmentedAllReduce(std::int64_t count, int ranks, DType dtype, const Make& make)
      : element_bytes_(static_cast<std::int64_t>(size_bytes(dtype))) {
    const std::int64_t segments = SegmentedAllReduce::segment_count(count, ranks, dtype);
    segment_elements_ = padded_count((count + segments - 1) / segments, ranks);
    for (std::int64_t at = 0; at < count; at += segment_elements_) {
      segments_.push_back(make(std::min(count - at, segment_elements_)));
    }
  }
  void start(std::byte* numbers) override {
    const std::byte* buffer = numbers;
    for (const auto& segment : segments_) {
      segment->start(numbers, buffer);
      numbers += segment_elements_ * element_bytes_;
    }
  }

 private:
  std::int64_t element_bytes_, segment_elements_ = 0;
  std::vector<std::unique_ptr<SegmentCollective>> segments_;
};

}  // namespace halfstep::comm
