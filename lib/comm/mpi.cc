#include "comm/mpi.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/mpi_library.h"
#include "comm/pairwise_collective.h"
#include "comm/pause.h"
#include "comm/peers.h"
#include "comm/segments.h"
#include "core/system.h"

namespace halfstep::comm {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// Interval between two checks that the processes of other ranks are alive.
constexpr std::chrono::milliseconds k_liveness_interval{100};
/// Wait after which a rank announces to the others that it is alive.
constexpr Seconds k_announce_after{1.0};
/// Poll interval of the progress thread; 50 us made a step of mnist_cnn 6 % longer.
constexpr std::chrono::microseconds k_background{250};

/// MPI sends messages up to a limit eagerly, without a rendezvous: Open MPI up to 4 KiB with the
/// header between processes of a host, and more over networks. Chunks of up to k_max_in_eager bytes
/// are sent in messages of k_eager: 4 KiB took 5.1 us in one message and 2.1 in two, 32 KiB 13.5
/// and 9.4 in nine, 64 KiB 16.2 and 16.7.
constexpr int k_eager = 4000, k_max_in_eager = 32 << 10;

class MpiCommunicator final : public Communicator, public CollectiveQueue {
  using State = PairwiseCollective::State;
  using Channel = Mpi::Channel;

 public:
  explicit MpiCommunicator(std::unique_ptr<Mpi> mpi) : mpi_(std::move(mpi)) {
    mpi_->start();
    transport_ = {mpi_->version(), mpi_->serialized() ? "serialized" : "funneled"};
    exchange_hosts();
    if (mpi_->serialized()) {
      progress_thread_ = std::jthread([this](const std::stop_token& stop) { progress_loop(stop); });
    }
  }

  ~MpiCommunicator() override {
    progress_thread_.request_stop();
    pending_changed_.notify_all();
    drop_exact_sums();
  }

  int rank() const override { return mpi_->rank(); }
  int size() const override { return mpi_->size(); }
  const Transport& transport() const override { return transport_; }
  Traffic traffic() const override {
    const std::lock_guard lock(mutex_);
    return traffic_;
  }
  void set_timeout(double seconds) override { timeout_ = Seconds(seconds); }

  std::unique_ptr<Collective> collective(std::int64_t count,
                                         DType dtype,
                                         CollectiveKind kind) override {
    const auto make = [&](std::int64_t n) {
      return std::make_unique<PairwiseCollective>(*this, rank(), size(), n, dtype, kind);
    };
    const bool is_long = SegmentedAllReduce::segment_count(count, size(), dtype) > 1;
    if (kind != CollectiveKind::all_reduce || !is_long) return make(count);
    return std::make_unique<SegmentedAllReduce>(count, size(), dtype, make);
  }

  std::vector<std::string> gather(std::string_view text) override {
    const auto ranks = static_cast<std::size_t>(size());
    const auto self = static_cast<std::size_t>(rank());
    std::vector<int> lengths(ranks), offsets(ranks);
    lengths[self] = static_cast<int>(text.size());
    complete([&] {
      return mpi_->allgather(
          Channel::text, reinterpret_cast<std::byte*>(lengths.data()), sizeof(int));
    });
    int all = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
      offsets[r] = all;
      all += lengths[r];
    }
    std::string joined(static_cast<std::size_t>(all), '\0');
    std::copy(text.begin(), text.end(), joined.begin() + offsets[self]);
    complete([&] {
      return mpi_->allgatherv(Channel::text,
                              reinterpret_cast<std::byte*>(joined.data()),
                              lengths.data(),
                              offsets.data());
    });
    std::vector<std::string> texts;
    for (std::size_t r = 0; r < ranks; ++r) {
      texts.push_back(joined.substr(static_cast<std::size_t>(offsets[r]),
                                    static_cast<std::size_t>(lengths[r])));
    }
    return texts;
  }

  void shift(const std::byte* to_next, std::byte* from_before, std::size_t bytes) override {
    constexpr std::size_t k_max = std::size_t{1} << 30;
    const int next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
    for (std::size_t at = 0; at < bytes; at += k_max) {
      const int count = static_cast<int>(std::min(k_max, bytes - at));
      Mpi::Request arrival;
      complete([&] {
        arrival = mpi_->receive(Channel::copies, from_before + at, count, before);
        return mpi_->send(Channel::copies, to_next + at, count, next);
      });
      wait_counted([&] { return mpi_->test(arrival); });
    }
  }

  void close() override {
    progress_thread_.request_stop();
    pending_changed_.notify_all();
    if (progress_thread_.joinable()) progress_thread_.join();
    for (int r = 0; r < size(); ++r) {
      if (r != rank()) mpi_->cancel(peers_[static_cast<std::size_t>(r)].arrival);
    }
    mpi_->finish();
  }

  void start(PairwiseCollective& sum) override {
    {
      const std::lock_guard lock(mutex_);
      sum.state = State::reduced;
      if (sum.kind != CollectiveKind::all_gather) {
        const auto chunk_of = [&](int r) { return sum.direct ? sum.numbers : sum.chunk(r); };
        const auto received = [&](int r) { return sum.receive_buffer(r); };
        exchange(sum, sum.direct ? Channel::direct : Channel::scatter, chunk_of, received);
        sum.state = State::reduce_scatter;
      }
      if (pending_.empty()) busy_since_ = Clock::now();
      pending_.push_back(&sum);
      ++started_;
      traffic_.sent_bytes += sum.sent_bytes;
      if (size_bytes(sum.dtype) == 2) traffic_.saved_bytes += sum.sent_bytes;
    }
    pending_changed_.notify_one();
  }

  void remove(const PairwiseCollective& sum) override {
    const std::lock_guard lock(mutex_);
    std::erase(pending_, &sum);
  }

  void wait(const std::byte* numbers) override {
    wait_counted([&] {
      progress();
      return std::none_of(pending_.begin(), pending_.end(), [&](const PairwiseCollective* sum) {
        return sum->buffer == numbers;
      });
    });
  }

  void wait_for(const std::function<bool()>& done) override { wait_until(done); }

 private:
  /// All-gathers hosts and process ids, and posts a receive for the announcements of each rank.
  void exchange_hosts() {
    const std::vector<std::string> texts = gather(fmt::format("{} {}", ::getpid(), host_name()));
    peers_.resize(texts.size());
    for (std::size_t r = 0; r < texts.size(); ++r) {
      Peer& peer = peers_[r];
      const std::size_t space = texts[r].find(' ');
      peer.process = static_cast<pid_t>(std::stol(texts[r].substr(0, space)));
      peer.host = texts[r].substr(space + 1);
      if (static_cast<int>(r) == rank()) continue;
      // A process of this host is not visible where it has another PID namespace.
      peer.visible = peer.host == host_name() && ::kill(peer.process, 0) == 0;
      listen(static_cast<int>(r));
    }
  }

  void listen(int r) {
    Peer& peer = peers_[static_cast<std::size_t>(r)];
    peer.arrival = mpi_->receive(
        Channel::presence, reinterpret_cast<std::byte*>(&peer.message), sizeof peer.message, r);
  }

  /// Starts a blocking operation and waits until it is complete.
  template <class Begin>
  void complete(Begin begin) {
    std::optional<Mpi::Request> request;
    {
      const std::lock_guard lock(mutex_);
      request = begin();
      ++started_;
    }
    wait_counted([&] { return mpi_->test(*request); });
  }

  /// Sends `chunk_to(r)` to every other rank r, and receives from it to `chunk_from(r)`.
  template <class To, class From>
  void exchange(PairwiseCollective& sum,
                Channel channel,
                const To& chunk_to,
                const From& chunk_from) {
    const int each = sum.chunk_bytes <= k_max_in_eager ? k_eager : sum.chunk_bytes;
    // In round i all ranks have different targets.
    for (int i = 1; i < size(); ++i) {
      const int from = (rank() + size() - i) % size(), to = (rank() + i) % size();
      for (int at = 0; at < sum.chunk_bytes; at += each) {
        const int bytes = std::min(each, sum.chunk_bytes - at);
        sum.requests.push_back(mpi_->receive(channel, chunk_from(from) + at, bytes, from));
        sum.requests.push_back(mpi_->send(channel, chunk_to(to) + at, bytes, to));
      }
    }
  }

  bool completed(PairwiseCollective& sum) {
    while (!sum.requests.empty() && mpi_->test(sum.requests.back())) sum.requests.pop_back();
    return sum.requests.empty();
  }

  /// Advances the pending collectives. An all-gather phase starts after those of all earlier
  /// collectives, so that all ranks start them in the same order.
  void progress() {
    bool earlier_gather = true;
    for (PairwiseCollective* sum : pending_) {
      if (sum->state == State::reduce_scatter && completed(*sum)) {
        reduce_sum(sum->inputs, sum->chunk_elements, sum->dtype, sum->local_chunk());
        sum->state = sum->has_all_gather ? State::reduced : State::idle;
      }
      if (!sum->has_all_gather) continue;
      if (sum->state == State::reduced && earlier_gather) {
        const auto chunk_of = [sum](int r) { return sum->chunk(r); };
        exchange(
            *sum, Channel::gather, [sum](int) { return sum->local_chunk(); }, chunk_of);
        sum->state = State::all_gather;
      } else if (sum->state == State::all_gather && completed(*sum)) {
        sum->state = State::idle;
      }
      earlier_gather = sum->state != State::reduce_scatter && sum->state != State::reduced;
    }
    const auto ended = std::erase_if(
        pending_, [](const PairwiseCollective* sum) { return sum->state == State::idle; });
    if (ended > 0 && pending_.empty()) {
      traffic_.busy_seconds += Seconds(Clock::now() - busy_since_).count();
    }
  }

  /// wait_until() that counts the time in traffic().
  template <class Done>
  void wait_counted(Done done) {
    const Clock::time_point begin = Clock::now();
    wait_until(done);
    const std::lock_guard lock(mutex_);
    traffic_.waited_seconds += Seconds(Clock::now() - begin).count();
  }

  /// Calls `done` until it returns true. Errors: RankLost.
  template <class Done>
  void wait_until(Done done) {
    const Clock::time_point begin = Clock::now();
    Clock::time_point look = begin + k_liveness_interval;
    bool announced = false;
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (failure_) std::rethrow_exception(failure_);
        try {
          if (done()) return;
        } catch (const UserError& error) {
          failure_ = std::make_exception_ptr(lost(ended_of(peers_), error.what()));
          std::rethrow_exception(failure_);
        }
      }
      const Clock::time_point now = Clock::now();
      const Clock::duration waited = now - begin;
      pause_after(waited);
      if (now < look) continue;
      look = now + k_liveness_interval;
      if (std::vector<int> gone = ended_of(peers_); !gone.empty()) {
        lose(gone, fmt::format("{} ended before the others", names_of(gone, peers_)));
      }
      if (!announced && waited > k_announce_after) {
        announced = true;
        announce();
      }
      if (waited > timeout_) {
        const std::vector<int> missing = unresponsive();
        lose(missing,
             missing.empty()
                 ? fmt::format("no answer from other ranks for {:.0f} s, and all of them wait: "
                               "the network between them may be down",
                               timeout_.count())
                 : fmt::format("no answer from {} for {:.0f} s",
                               names_of(missing, peers_),
                               timeout_.count()));
      }
    }
  }

  static RankLost lost(const std::vector<int>& ranks, const std::string& message) {
    return {ranks, message, "--resume auto continues from the newest checkpoint"};
  }

  /// Fails this wait and all later ones. No collective advances any more, so buffers may be freed.
  [[noreturn]] void lose(const std::vector<int>& ranks, const std::string& message) {
    const std::lock_guard lock(mutex_);
    failure_ = std::make_exception_ptr(lost(ranks, message));
    std::rethrow_exception(failure_);
  }

  /// Sends the number of operations that this rank has started to all ranks.
  void announce() {
    const std::lock_guard lock(mutex_);
    announced_ = started_;
    for (int r = 0; r < size(); ++r) {
      // The requests are not waited for: a rank that does not answer may not receive either.
      if (r != rank())
        mpi_->send(Channel::presence,
                   reinterpret_cast<const std::byte*>(&announced_),
                   sizeof announced_,
                   r);
    }
  }

  /// The ranks that have announced fewer started operations than this one.
  std::vector<int> unresponsive() {
    const std::lock_guard lock(mutex_);
    std::vector<int> ranks;
    for (int r = 0; r < std::ssize(peers_); ++r) {
      if (r == rank()) continue;
      Peer& peer = peers_[static_cast<std::size_t>(r)];
      while (mpi_->test(peer.arrival)) {
        peer.started = std::max(peer.started, peer.message);
        listen(r);
      }
      if (peer.started < started_) ranks.push_back(r);
    }
    return ranks;
  }

  /// Advances collectives while no thread waits for them.
  void progress_loop(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      {
        std::unique_lock lock(mutex_);
        pending_changed_.wait(lock, stop, [this] { return !pending_.empty() || failure_; });
        if (failure_) return;
        try {
          progress();
        } catch (const UserError& error) {
          failure_ = std::make_exception_ptr(lost(ended_of(peers_), error.what()));
          return;
        }
      }
      std::this_thread::sleep_for(k_background);
    }
  }

  std::unique_ptr<Mpi> mpi_;
  Seconds timeout_{60};
  Transport transport_;
  Traffic traffic_;
  std::vector<Peer> peers_;
  mutable std::mutex mutex_;  ///< guards all below, traffic_, and calls of mpi_
  std::condition_variable_any pending_changed_;
  std::vector<PairwiseCollective*> pending_;  ///< in the order of their start
  Clock::time_point busy_since_;              ///< valid while pending_ is not empty
  std::int64_t started_ = 0;                  ///< operations of this rank
  std::int64_t announced_ = 0;
  std::exception_ptr failure_;  ///< a RankLost, after which MPI is not called any more
  std::jthread progress_thread_;
};

}  // namespace

std::shared_ptr<Communicator> start_mpi(const MpiOptions& options) {
  const FoundLibrary found = find_library(options.library, options.mpich);
  if (!found.library) {
    throw UserError(ErrorKind::unavailable,
                    {},
                    fmt::format("{} started this process as one of several ranks, and no MPI "
                                "library can be loaded: {}",
                                options.launcher,
                                found.problem),
                    "install the MPI library that the launcher belongs to (openmpi-bin), or name "
                    "its file with HALFSTEP_MPI");
  }
  auto ranks = std::make_shared<MpiCommunicator>(open_mpi_library(*found.library));
  if (options.ranks > 0 && ranks->size() != options.ranks) {
    throw UserError(ErrorKind::unavailable,
                    {found.file, 0, 0, ""},
                    fmt::format("{} started {} ranks, and {} sees {}",
                                options.launcher,
                                options.ranks,
                                ranks->transport().library,
                                ranks->size()),
                    options.launcher == "srun"
                        ? "srun --mpi=list names the ways that this Slurm knows (--mpi=pmix for "
                          "Open MPI)"
                        : "name the library that the launcher belongs to with HALFSTEP_MPI");
  }
  return ranks;
}

}  // namespace halfstep::comm
