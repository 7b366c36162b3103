#pragma once
// Collectives by messages between all pairs of ranks.

#include <limits>
#include <vector>

#include "comm/mpi_library.h"
#include "comm/segments.h"

namespace halfstep::comm {

struct PairwiseCollective;

/// Runs collectives in the order of their start.
class CollectiveQueue {
 public:
  virtual ~CollectiveQueue() = default;
  virtual void start(PairwiseCollective& sum) = 0;
  /// Removes a collective that is destroyed, complete or not.
  virtual void remove(const PairwiseCollective& sum) = 0;
};

/// An all-reduce is a reduce-scatter and an all-gather: each rank sends chunk r to rank r, sums the
/// chunks that it receives, and sends the result to all. Each phase transfers (N - 1) / N of the
/// bytes, the minimum. A short all-reduce is `direct`, in one phase: all ranks send their whole
/// buffer to all others; it does not wait for other collectives.
struct PairwiseCollective final : SegmentCollective {
  enum class State { idle, reduce_scatter, reduced, all_gather };

  PairwiseCollective(CollectiveQueue& of,
                     int rank_index,
                     int ranks,
                     std::int64_t count,
                     DType element_type,
                     CollectiveKind collective_kind)
      : queue(of), rank(rank_index), dtype(element_type), kind(collective_kind) {
    const auto size = static_cast<std::int64_t>(size_bytes(dtype));
    const std::int64_t all = padded_count(count, ranks);
    direct = is_single_message(kind, all * size, ranks);
    has_all_gather = !direct && kind != CollectiveKind::reduce_scatter;
    chunk_elements = direct ? all : all / ranks;
    require(chunk_elements * size <= std::numeric_limits<int>::max(),
            "a collective of {} elements",
            count);
    chunk_bytes = static_cast<int>(chunk_elements * size);
    sent_bytes = static_cast<std::uint64_t>(comm::sent_bytes(kind, all * size, ranks));
    if (kind == CollectiveKind::all_gather) return;
    received.resize(static_cast<std::size_t>(chunk_bytes) * static_cast<std::size_t>(ranks - 1));
    for (int r = 0; r < ranks; ++r) inputs.push_back(receive_buffer(r));
  }
  ~PairwiseCollective() override { queue.remove(*this); }

  void start(std::byte* first, const std::byte* waited_for) override {
    numbers = first;
    buffer = waited_for;
    if (!inputs.empty()) inputs[static_cast<std::size_t>(rank)] = local_chunk();
    queue.start(*this);
  }

  std::byte* chunk(int r) const { return numbers + r * std::ptrdiff_t{chunk_bytes}; }
  /// The elements that this rank reduces.
  std::byte* local_chunk() const { return direct ? numbers : chunk(rank); }
  /// Memory for the chunk received from rank `r`.
  std::byte* receive_buffer(int r) {
    return received.data() + (r < rank ? r : r - 1) * std::ptrdiff_t{chunk_bytes};
  }

  CollectiveQueue& queue;
  const int rank;
  const DType dtype;
  const CollectiveKind kind;
  bool direct, has_all_gather;  ///< is_single_message(); whether there is a second phase
  std::int64_t chunk_elements;  ///< that this rank reduces
  int chunk_bytes;
  std::uint64_t sent_bytes;
  std::vector<std::byte> received;       ///< of the other ranks
  std::vector<const std::byte*> inputs;  ///< of reduce_sum(), by rank
  std::byte* numbers = nullptr;
  const std::byte* buffer = nullptr;  ///< argument of Communicator::wait()
  State state = State::idle;
  std::vector<Mpi::Request> requests;  ///< not yet complete
};

}  // namespace halfstep::comm
