#pragma once
// A sum that messages between all pairs of ranks carry.

#include <limits>
#include <vector>

#include "comm/mpi_library.h"
#include "comm/pieces.h"

namespace halfstep::comm {

struct ExchangedSum;

/// Carries out sums in the order of their start.
class SumQueue {
 public:
  virtual ~SumQueue() = default;
  virtual void start(ExchangedSum& sum) = 0;
  /// The sum ends before it is done, because a rank is lost.
  virtual void forget(const ExchangedSum& sum) = 0;
};

/// Each rank sends every other one its part of the numbers, adds the parts it receives, and sends
/// the total to all: (N - 1) / N of the bytes each way in both halves, which is the least possible.
/// Of a short sum each rank gets all numbers of all others instead, and waits for no other sum.
struct ExchangedSum final : PieceOfSum {
  enum class State { idle, scattering, added, gathering };

  ExchangedSum(
      SumQueue& of, int own_rank, int ranks, std::int64_t count, DType number, SumKind halves)
      : queue(of), rank(own_rank), dtype(number), kind(halves) {
    const auto size = static_cast<std::int64_t>(size_bytes(dtype));
    const std::int64_t all = padded_count(count, ranks);
    whole = in_one_message(kind, all * size, ranks);
    gathers = !whole && kind != SumKind::reduce_scatter;
    part_count = whole ? all : all / ranks;
    require(part_count * size <= std::numeric_limits<int>::max(), "a sum of {} numbers", count);
    part_bytes = static_cast<int>(part_count * size);
    sent_bytes = static_cast<std::uint64_t>(comm::sent_bytes(kind, all * size, ranks));
    if (kind == SumKind::all_gather) return;
    received.resize(static_cast<std::size_t>(part_bytes) * static_cast<std::size_t>(ranks - 1));
    for (int r = 0; r < ranks; ++r) parts.push_back(received_from(r));
  }
  ~ExchangedSum() override { queue.forget(*this); }

  void start(std::byte* first, const std::byte* waited_for) override {
    numbers = first;
    buffer = waited_for;
    if (!parts.empty()) parts[static_cast<std::size_t>(rank)] = own();
    queue.start(*this);
  }

  std::byte* part(int r) const { return numbers + r * std::ptrdiff_t{part_bytes}; }
  /// The numbers whose total this rank computes.
  std::byte* own() const { return whole ? numbers : part(rank); }
  /// The memory for the numbers of another rank, before they are added.
  std::byte* received_from(int r) {
    return received.data() + (r < rank ? r : r - 1) * std::ptrdiff_t{part_bytes};
  }

  SumQueue& queue;
  const int rank;
  const DType dtype;
  const SumKind kind;
  bool whole, gathers;      ///< in_one_message(), or in parts with a second half
  std::int64_t part_count;  ///< that this rank adds
  int part_bytes;
  std::uint64_t sent_bytes;
  std::vector<std::byte> received;      ///< of the other ranks
  std::vector<const std::byte*> parts;  ///< of all, by rank
  std::byte* numbers = nullptr;
  const std::byte* buffer = nullptr;  ///< by which it is waited for
  State state = State::idle;
  std::vector<Mpi::Request> requests;  ///< not known to be completed
};

}  // namespace halfstep::comm
