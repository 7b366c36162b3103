#pragma once
// The ranks of a run as threads of this process.

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "train/fixture.h"

namespace halfstep::train {

/// A rank that is killed, and at the number of its message, from 0.
struct Kill {
  int rank = 0;
  std::int64_t message = 0;
};

/// Carries the sums and texts of all ranks.
class Hub {
 public:
  explicit Hub(int ranks) : ranks_(ranks) {}

  int ranks() const { return ranks_; }
  void give(std::int64_t number, int rank, std::string part);
  /// The parts of all ranks; blocks until they have given theirs. Errors: comm::RankLost.
  std::vector<std::string> take(std::int64_t number);
  /// Errors: comm::RankLost after lose().
  void expect_all();
  /// Every wait fails from now on.
  void lose(int rank);
  /// A rank is killed instead of beginning a message.
  void kill(const Kill& kill) { kill_ = kill; }

 private:
  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, std::map<int, std::string>> parts_;
  std::vector<int> lost_;
  std::optional<Kill> kill_;
};

/// The end of a rank that is killed.
struct Killed {};

/// Calls `body` once for each rank, on a thread of its own, with its communicator, and returns when
/// all have returned. Rethrows the error of the lowest rank that has one.
void run_ranks(Hub& hub, const std::function<void(std::shared_ptr<comm::Communicator>)>& body);

/// The same with a run of each rank. Rank 0 writes its checkpoints to `directory`, unless it is
/// empty, and all resume from the newest one there.
void run_trainers(Hub& hub,
                  const config::RunSpec& spec,
                  const data::Dataset& dataset,
                  const std::string& directory,
                  const std::function<void(Run&, int rank)>& body);

/// The results of each rank of such a run. Errors: Killed.
std::vector<TrainResult> train_ranks(const config::RunSpec& spec,
                                     int ranks,
                                     const data::Dataset& dataset = digits(),
                                     const std::string& directory = {},
                                     const std::optional<Kill>& kill = {});

/// Checks that a run did the steps of another one: the same batches, and losses and metrics that
/// differ by less than `tolerance`, relative, in each epoch and in the test.
void check_same_training(const TrainResult& result, const TrainResult& wanted, double tolerance);

}  // namespace halfstep::train
