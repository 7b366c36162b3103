#pragma once
// Collective communication of the ranks of a data-parallel run, as in MPI or NCCL: all-reduce,
// reduce-scatter and all-gather of tensors, and a gather of strings. A run of one process has no
// communicator.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"

namespace halfstep::comm {

/// Some ranks have ended or do not answer. The communicator is unusable afterwards; the variables
/// are those of the last step that all ranks applied.
class RankLost : public UserError {
 public:
  RankLost(std::vector<int> ranks, const std::string& message, const std::string& hint);

  /// The ranks known to be lost; empty if they cannot be distinguished from waiting ranks.
  const std::vector<int>& ranks() const { return ranks_; }
  bool has(int rank) const;
  /// The lowest rank that is not known to be lost.
  int lowest_left() const;

 private:
  std::vector<int> ranks_;
};

/// The kind of a collective. Chunk r of a buffer is its r-th part when it is divided evenly by the
/// number of ranks.
enum class CollectiveKind {
  all_reduce,      ///< all ranks get the sum of the whole buffer
  reduce_scatter,  ///< rank r gets the sum of chunk r; the other chunks are undefined
  all_gather,      ///< rank r contributes its chunk r, and all ranks get all chunks
};

/// Whether a buffer of this size is exchanged in one message per pair of ranks, without
/// reduce-scatter: each rank sends its whole buffer to all others and sums all buffers itself,
/// which costs one latency instead of two.
bool is_single_message(CollectiveKind kind, std::int64_t bytes, int ranks);
/// Bytes that a rank sends to the others in such a collective.
std::int64_t sent_bytes(CollectiveKind kind, std::int64_t bytes, int ranks);

/// A collective over a buffer of fixed size, which can be started repeatedly (MPI: a persistent
/// collective). All ranks must start the same collectives in the same order.
class Collective {
 public:
  virtual ~Collective() = default;

  /// Starts the collective in place on padded_count() elements at `numbers`. Not blocking: the
  /// buffer belongs to the communicator until Communicator::wait() returns. Elements are summed in
  /// rank order, accumulated in float32 (float64 for float64) and rounded once, so the result has
  /// the same bits on all ranks and with every MPI library.
  virtual void start(std::byte* numbers) = 0;
};

/// The size of a buffer for a collective of `count` elements: `count` rounded up to a multiple of
/// the number of ranks, each of which reduces one chunk.
std::int64_t padded_count(std::int64_t count, int ranks);

/// to[i] = sum over r of inputs[r][i] for i < count. `dtype` is float64, float32, bfloat16 or
/// float16; accumulates in float64 for float64, else in float32. `to` may be one of the inputs.
void reduce_sum(std::span<const std::byte* const> inputs,
                std::int64_t count,
                DType dtype,
                std::byte* to);

/// The transport, for reports and `doctor`.
struct Transport {
  std::string library;  ///< "Open MPI v4.1.4"
  std::string threads;  ///< MPI's thread level; with "serialized" collectives overlap computation
};

/// Communication statistics of this rank since its start.
struct Traffic {
  double waited_seconds = 0;      ///< that callers were blocked in wait() and gather()
  double busy_seconds = 0;        ///< during which a collective was in flight
  std::uint64_t sent_bytes = 0;   ///< payload sent to other ranks
  std::uint64_t saved_bytes = 0;  ///< additional bytes that float32 instead of 16 bits would send
};

/// The rounding error of all-reduces in 16 bits, relative to the same all-reduces in float32. Only
/// elements with a finite error count.
struct RoundingError {
  std::int64_t steps = 0;
  double squared_errors = 0;  ///< sum over the elements of (16 bits - float32)^2
  double squared_sums = 0;    ///< sum over the elements of float32^2
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const Transport& transport() const = 0;
  virtual Traffic traffic() const = 0;
  /// Sets the wait after which another rank counts as lost; 60 s by default.
  virtual void set_timeout(double seconds) = 0;
  /// A collective of `count` elements of float64, float32, bfloat16 or float16. Allocates its
  /// receive buffers.
  virtual std::unique_ptr<Collective> collective(std::int64_t count,
                                                 DType dtype,
                                                 CollectiveKind kind) = 0;
  /// Blocks until the collective started on this buffer is complete. Errors: RankLost.
  virtual void wait(const std::byte* numbers) = 0;
  /// Polls `done` until it returns true, for collectives of another library such as NCCL. Not
  /// counted in traffic(). Errors: RankLost as in wait(), and where `done` throws a UserError.
  virtual void wait_for(const std::function<bool()>& done) = 0;
  /// All-gather of strings, by rank. All ranks call it at the same point, with no collective in
  /// flight. Blocking. Errors: RankLost.
  virtual std::vector<std::string> gather(std::string_view text) = 0;
  /// Ring shift: sends `bytes` to the next rank and receives as many from the previous one. All
  /// ranks call it at the same point. Blocking. Errors: RankLost.
  virtual void shift(const std::byte* to_next, std::byte* from_before, std::size_t bytes) = 0;
  /// Finalizes the communicator; all ranks call it last. The other ranks report a process that ends
  /// without it as lost.
  virtual void close() = 0;

  /// Turns on or off that 16-bit all-reduces are repeated in float32 to measure their rounding
  /// error. All ranks call it at the same point.
  void measure_errors(bool measure) {
    measures_errors_ = measure;
    if (measure) ++error_.steps;
  }
  const RoundingError& error() const { return error_; }
  /// While errors are measured, starts a float32 all-reduce beside the 16-bit one of `numbers`.
  /// `fill` writes its `count` elements, the values before rounding to 16 bits.
  void start_exact(const std::byte* numbers,
                   std::int64_t count,
                   const std::function<void(float*)>& fill);
  /// Waits for the float32 all-reduce that belongs to `numbers`, if there is one, and accumulates
  /// the differences of elements [begin, begin + count).
  void compare_exact(const std::byte* numbers, std::int64_t begin, std::int64_t count, DType dtype);

 protected:
  /// For destructors of derived classes, to which a Collective may refer.
  void drop_exact_sums() { exact_.clear(); }

 private:
  struct ExactSum {
    std::vector<float> numbers;
    std::unique_ptr<Collective> sum;
    bool started = false;
  };
  bool measures_errors_ = false;
  RoundingError error_;
  std::map<const std::byte*, ExactSum> exact_;
};

/// Rank 0 of `ranks` ranks that do not exist, to compile and explain the step of such a run without
/// starting it. Errors: InternalError where a collective is started.
std::shared_ptr<Communicator> simulated_ranks(int ranks);

/// All-reduce of a few float64 values, in place. Blocking. Errors: RankLost.
void all_reduce_sum(Communicator& ranks, std::vector<double>& numbers);

}  // namespace halfstep::comm
