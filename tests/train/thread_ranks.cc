#include "train/thread_ranks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <ostream>
#include <thread>

namespace halfstep::train {
namespace {

class ThreadCommunicator final : public comm::Communicator {
 public:
  ThreadCommunicator(Hub& hub, int rank) : hub_(hub), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return hub_.ranks(); }
  const comm::Transport& transport() const override { return transport_; }
  comm::Traffic traffic() const override { return {}; }
  void set_timeout(double) override {}
  void close() override {}

  std::unique_ptr<comm::Collective> collective(std::int64_t count,
                                               DType dtype,
                                               comm::CollectiveKind kind) override {
    return std::make_unique<ThreadCollective>(
        *this, comm::padded_count(count, size()), dtype, kind);
  }

  void wait(const std::byte* numbers) override {
    const auto found = std::find_if(
        started_.begin(), started_.end(), [&](const Started& s) { return s.numbers == numbers; });
    if (found == started_.end()) return;
    const Started sum = *found;
    started_.erase(found);
    const std::vector<std::string> buffers = hub_.take(sum.number);
    const std::size_t part = buffers.front().size() / buffers.size();
    if (sum.kind == comm::CollectiveKind::all_gather) {
      for (std::size_t r = 0; r < buffers.size(); ++r) {
        std::memcpy(sum.numbers + r * part, buffers[r].data() + r * part, part);
      }
      return;
    }
    std::vector<const std::byte*> parts;
    for (const std::string& buffer : buffers) {
      parts.push_back(reinterpret_cast<const std::byte*>(buffer.data()));
    }
    comm::reduce_sum(parts, sum.count, sum.dtype, sum.numbers);
    if (sum.kind == comm::CollectiveKind::all_reduce) return;
    // Whoever reads another rank's part reads NaN.
    for (std::size_t r = 0; r < buffers.size(); ++r) {
      if (static_cast<int>(r) != rank_) std::memset(sum.numbers + r * part, 0xFF, part);
    }
  }

  void wait_for(const std::function<bool()>& done) override {
    while (!done()) {
      hub_.expect_all();
      std::this_thread::yield();
    }
  }

  std::vector<std::string> gather(std::string_view text) override {
    const std::int64_t number = next_++;
    hub_.give(number, rank_, std::string(text));
    return hub_.take(number);
  }

  void shift(const std::byte* to_next, std::byte* from_before, std::size_t bytes) override {
    const auto all = gather({reinterpret_cast<const char*>(to_next), bytes});
    const auto before = static_cast<std::size_t>((rank_ + size() - 1) % size());
    std::copy_n(reinterpret_cast<const std::byte*>(all[before].data()), bytes, from_before);
  }

 private:
  struct Started {
    std::byte* numbers;
    std::int64_t number, count;
    DType dtype;
    comm::CollectiveKind kind;
  };

  class ThreadCollective final : public comm::Collective {
   public:
    ThreadCollective(ThreadCommunicator& of,
                     std::int64_t count,
                     DType dtype,
                     comm::CollectiveKind kind)
        : of_(of), count_(count), dtype_(dtype), kind_(kind) {}
    void start(std::byte* numbers) override {
      const std::int64_t number = of_.next_++;
      const std::size_t bytes = static_cast<std::size_t>(count_) * size_bytes(dtype_);
      of_.hub_.give(number, of_.rank_, std::string(reinterpret_cast<const char*>(numbers), bytes));
      of_.started_.push_back({numbers, number, count_, dtype_, kind_});
    }

   private:
    ThreadCommunicator& of_;
    std::int64_t count_;
    DType dtype_;
    comm::CollectiveKind kind_;
  };

  Hub& hub_;
  int rank_;
  comm::Transport transport_{"threads", "serialized"};
  std::int64_t next_ = 0;
  std::vector<Started> started_;
};

}  // namespace

void Hub::give(std::int64_t number, int rank, std::string part) {
  const std::lock_guard lock(mutex_);
  if (kill_ && rank == kill_->rank && number >= kill_->message) throw Killed();
  parts_[number][rank] = std::move(part);
  changed_.notify_all();
}

std::vector<std::string> Hub::take(std::int64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return std::ssize(parts_[number]) == ranks_ || !lost_.empty(); });
  if (std::ssize(parts_[number]) < ranks_) throw comm::RankLost(lost_, "a rank is lost", "");
  std::vector<std::string> all;
  for (const auto& [rank, part] : parts_[number]) all.push_back(part);
  return all;
}

void Hub::expect_all() {
  const std::lock_guard lock(mutex_);
  if (!lost_.empty()) throw comm::RankLost(lost_, "a rank is lost", "");
}

void Hub::lose(int rank) {
  const std::lock_guard lock(mutex_);
  lost_.push_back(rank);
  changed_.notify_all();
}

void run_ranks(Hub& hub, const std::function<void(std::shared_ptr<comm::Communicator>)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(hub.ranks()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < hub.ranks(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(std::make_shared<ThreadCommunicator>(hub, rank));
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
        hub.lose(rank);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

void run_trainers(Hub& hub,
                  const config::RunSpec& spec,
                  const data::Dataset& dataset,
                  const std::string& directory,
                  const std::function<void(Run&, int rank)>& body) {
  const TrainOptions options = directory.empty() ? TrainOptions() : in_directory(directory);
  run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
    backend::Backend backend = cpu();
    backend.capabilities.ranks = communicator;
    TrainOptions own = options;
    own.saves = communicator->rank() == 0;
    Run run(spec, own, dataset, backend);
    body(run, communicator->rank());
  });
}

std::vector<TrainResult> train_ranks(const config::RunSpec& spec,
                                     int ranks,
                                     const data::Dataset& dataset,
                                     const std::string& directory,
                                     const std::optional<Kill>& kill) {
  Hub hub(ranks);
  if (kill) hub.kill(*kill);
  std::vector<TrainResult> results(static_cast<std::size_t>(ranks));
  run_trainers(hub, spec, dataset, directory, [&](Run& run, int rank) {
    results[static_cast<std::size_t>(rank)] = run.finish();
  });
  return results;
}

void check_same_training(const TrainResult& result, const TrainResult& wanted, double tolerance) {
  CHECK(result.status == Status::completed);
  CHECK(result.counters.applied == wanted.counters.applied);
  CHECK(result.batch_order_hash == wanted.batch_order_hash);
  REQUIRE(result.history.size() == wanted.history.size());
  const auto check_same = [&](const Metrics& metrics, const Metrics& same) {
    CHECK(metrics.size() == same.size());
    for (const auto& [name, value] : same) {
      CAPTURE(name);
      // In 16 bits one sample of 60 may be on the other side of a near tie.
      const double moved = tolerance > 1e-3 && name.ends_with("accuracy") ? 1.001 / 60 : 0;
      CHECK(std::abs(metrics.at(name) - value) <= tolerance * std::max(value, 0.1) + moved);
    }
  };
  for (std::size_t epoch = 0; epoch < wanted.history.size(); ++epoch) {
    check_same(result.history[epoch].train, wanted.history[epoch].train);
  }
  check_same(result.test->metrics, wanted.test->metrics);
}

}  // namespace halfstep::train
