#pragma once
// The ranks of a run: processes that train together, each with its share of every batch. A
// communicator adds numbers over all ranks and exchanges short texts. A run of one process has
// none.

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

/// Ranks that have ended or do not answer. After it the communicator is unusable; the
/// variables are those of the last step that all ranks applied.
class RankLost : public UserError {
 public:
  RankLost(std::vector<int> ranks, const std::string& message, const std::string& hint);

  /// The ranks that are known to be lost; empty where nothing tells them from those that wait.
  const std::vector<int>& ranks() const { return ranks_; }
  bool has(int rank) const;
  /// The lowest rank that is not known to be lost.
  int lowest_left() const;

 private:
  std::vector<int> ranks_;
};

/// The halves of a sum over the ranks that are done. Part r of a buffer is the r-th of as many
/// equal parts as there are ranks.
enum class SumKind {
  all_reduce,      ///< both: all ranks get all sums
  reduce_scatter,  ///< the first: rank r gets the sums of part r; the other parts are undefined
  all_gather,      ///< the second, without sums: rank r gives its part r, and all get all parts
};

/// Whether a sum of so many bytes travels in one message: each rank sends all of its numbers to
/// every other one and adds those of all, which is one latency instead of two.
bool in_one_message(SumKind kind, std::int64_t bytes, int ranks);
/// The bytes that a rank sends to others for it.
std::int64_t sent_bytes(SumKind kind, std::int64_t bytes, int ranks);

/// The sum over all ranks of a buffer of fixed size, as often as needed. All ranks start the same
/// sums in the same order.
class Sum {
 public:
  virtual ~Sum() = default;

  /// Begins the sum of `numbers`, padded_count() of them, in place. Returns at once: the buffer
  /// belongs to the communicator until Communicator::wait() returns. Element i of the result is the
  /// sum in the order of the ranks, accumulated in float32 (float64 of float64) and rounded once:
  /// it has the same bits on all ranks, whatever library transports it.
  virtual void start(std::byte* numbers) = 0;
};

/// The elements of a buffer for the sum of `count` numbers: `count` rounded up to a multiple of the
/// number of ranks, each of which adds one part.
std::int64_t padded_count(std::int64_t count, int ranks);

/// The arithmetic of a Sum: to[i] = the sum over r of parts[r][i], i < count, of float64, float32,
/// bfloat16 or float16. `to` may be one of the parts.
void add_parts(std::span<const std::byte* const> parts,
               std::int64_t count,
               DType dtype,
               std::byte* to);

/// The transport, for reports and `doctor`.
struct Transport {
  std::string library;  ///< "Open MPI v4.1.4"
  std::string threads;  ///< thread level: "serialized" lets sums progress beside the computation
};

/// The traffic of this rank so far.
struct Traffic {
  double waited_seconds = 0;      ///< of the calling threads in wait() and gather()
  double summing_seconds = 0;     ///< in which a sum was under way, waited for or not
  std::uint64_t sent_bytes = 0;   ///< of numbers, to other ranks
  std::uint64_t saved_bytes = 0;  ///< that float32 instead of 16 bits would have sent beside them
};

/// The distance of sums in 16 bits from sums of the same numbers in float32, over those that were
/// done in both ways and are finite.
struct SumError {
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
  /// The wait after which another rank counts as lost; 60 s at first.
  virtual void set_timeout(double seconds) = 0;
  /// A sum of `count` numbers of float64, float32, bfloat16 or float16. Allocates its buffers.
  virtual std::unique_ptr<Sum> sum(std::int64_t count, DType dtype, SumKind kind) = 0;
  /// Blocks until the sum that was started in this buffer has been written. Errors: RankLost.
  virtual void wait(const std::byte* numbers) = 0;
  /// Calls `done` until it returns true, for sums that another library carries. Not counted in
  /// traffic(). Errors: RankLost, also where `done` throws a UserError, and as in wait() after
  /// the timeout.
  virtual void wait_for(const std::function<bool()>& done) = 0;
  /// The texts of all ranks, by rank; all ranks call it at the same point, with no sum started and
  /// not waited for. Blocking. Errors: RankLost.
  virtual std::vector<std::string> gather(std::string_view text) = 0;
  /// Sends `bytes` to the next rank, and receives as many from the one before; rank 0 is next to
  /// the last. All ranks call it at the same point. Blocking. Errors: RankLost.
  virtual void shift(const std::byte* to_next, std::byte* from_before, std::size_t bytes) = 0;
  /// Ends the exchange; all ranks call it, and nothing after it. A process that ends without it
  /// leaves the others to find that it is lost.
  virtual void close() = 0;

  /// Has the sums of 16 bits that are started from now on done in float32 as well, or no longer.
  /// All ranks call it at the same point.
  void measure_errors(bool measure) {
    measures_errors_ = measure;
    if (measure) ++error_.steps;
  }
  const SumError& error() const { return error_; }
  /// While errors are measured, starts a sum in float32 beside that of the 16-bit numbers at
  /// `numbers`: of `count` numbers that `fill` writes, before their rounding.
  void start_exact(const std::byte* numbers,
                   std::int64_t count,
                   const std::function<void(float*)>& fill);
  /// Waits for the exact sum beside the one at `numbers`, if there is any, and adds the difference
  /// of `count` numbers from number `begin` on.
  void compare_exact(const std::byte* numbers, std::int64_t begin, std::int64_t count, DType dtype);

 protected:
  /// Destructors of derived classes call it, since a Sum may refer to them.
  void drop_exact_sums() { exact_.clear(); }

 private:
  struct ExactSum {
    std::vector<float> numbers;
    std::unique_ptr<Sum> sum;
    bool started = false;
  };
  bool measures_errors_ = false;
  SumError error_;
  std::map<const std::byte*, ExactSum> exact_;
};

/// Ranks of which this process is the first and the others do not exist, so that a step of them can
/// be compiled and explained. Nothing may be sent: a sum that is started is an InternalError.
std::shared_ptr<Communicator> pretended_ranks(int ranks);

/// The sums of a few float64 numbers over all ranks, in place. Blocking. Errors: RankLost.
void add_over_ranks(Communicator& ranks, std::vector<double>& numbers);

}  // namespace halfstep::comm
