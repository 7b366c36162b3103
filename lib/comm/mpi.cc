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

#include "comm/exchanged_sum.h"
#include "comm/mpi_library.h"
#include "comm/pause.h"
#include "comm/peers.h"
#include "comm/pieces.h"
#include "core/system.h"

namespace halfstep::comm {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// Between two looks at the processes of other ranks.
constexpr Seconds k_look{0.1};
/// Wait after which a rank tells the others that it is there.
constexpr Seconds k_tell{1.0};
/// Between two polls for sums that nobody waits for yet; 50 us made a step of mnist_cnn 6 % longer.
constexpr std::chrono::microseconds k_background{250};

/// MPI sends messages up to a limit eagerly, without a rendezvous: Open MPI up to 4 KiB with the
/// header between processes of a host, and more over networks. Parts of up to k_max_in_eager bytes
/// are sent in messages of k_eager: 4 KiB took 5.1 us in one message and 2.1 in two, 32 KiB 13.5
/// and 9.4 in nine, 64 KiB 16.2 and 16.7.
constexpr int k_eager = 4000, k_max_in_eager = 32 << 10;

class Exchange final : public Communicator, public SumQueue {
  using State = ExchangedSum::State;
  using Channel = Mpi::Channel;

 public:
  explicit Exchange(std::unique_ptr<Mpi> mpi) : mpi_(std::move(mpi)) {
    mpi_->start();
    transport_ = {mpi_->version(), mpi_->serialized() ? "serialized" : "funneled"};
    meet();
    if (mpi_->serialized()) {
      progress_thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
    }
  }

  ~Exchange() override {
    progress_thread_.request_stop();
    under_way_changed_.notify_all();
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

  std::unique_ptr<Sum> sum(std::int64_t count, DType dtype, SumKind kind) override {
    const auto make = [&](std::int64_t n) {
      return std::make_unique<ExchangedSum>(*this, rank(), size(), n, dtype, kind);
    };
    const bool is_long = SumOfPieces::pieces(count, size(), dtype) > 1;
    if (kind != SumKind::all_reduce || !is_long) return make(count);
    return std::make_unique<SumOfPieces>(count, size(), dtype, make);
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
    under_way_changed_.notify_all();
    if (progress_thread_.joinable()) progress_thread_.join();
    for (int r = 0; r < size(); ++r) {
      if (r != rank()) mpi_->cancel(peers_[static_cast<std::size_t>(r)].arrival);
    }
    mpi_->finish();
  }

  void start(ExchangedSum& sum) override {
    {
      const std::lock_guard lock(mutex_);
      sum.state = State::added;
      if (sum.kind != SumKind::all_gather) {
        const auto part_of = [&](int r) { return sum.whole ? sum.numbers : sum.part(r); };
        const auto received = [&](int r) { return sum.received_from(r); };
        exchange(sum, sum.whole ? Channel::whole : Channel::scatter, part_of, received);
        sum.state = State::scattering;
      }
      if (under_way_.empty()) summing_since_ = Clock::now();
      under_way_.push_back(&sum);
      ++started_;
      traffic_.sent_bytes += sum.sent_bytes;
      if (size_bytes(sum.dtype) == 2) traffic_.saved_bytes += sum.sent_bytes;
    }
    under_way_changed_.notify_one();
  }

  void forget(const ExchangedSum& sum) override {
    const std::lock_guard lock(mutex_);
    std::erase(under_way_, &sum);
  }

  void wait(const std::byte* numbers) override {
    wait_counted([&] {
      progress();
      return std::none_of(under_way_.begin(), under_way_.end(), [&](const ExchangedSum* sum) {
        return sum->buffer == numbers;
      });
    });
  }

  void wait_for(const std::function<bool()>& done) override { wait_until(done); }

 private:
  /// Exchanges hosts and processes, and listens to all ranks.
  void meet() {
    const std::vector<std::string> texts = gather(fmt::format("{} {}", ::getpid(), host_name()));
    peers_.resize(texts.size());
    for (std::size_t r = 0; r < texts.size(); ++r) {
      Peer& peer = peers_[r];
      const std::size_t space = texts[r].find(' ');
      peer.process = static_cast<pid_t>(std::stol(texts[r].substr(0, space)));
      peer.host = texts[r].substr(space + 1);
      if (static_cast<int>(r) == rank()) continue;
      // In a container of its own a process of this host may be out of sight.
      peer.visible = peer.host == host_name() && ::kill(peer.process, 0) == 0;
      listen(static_cast<int>(r));
    }
  }

  void listen(int r) {
    Peer& peer = peers_[static_cast<std::size_t>(r)];
    peer.arrival = mpi_->receive(
        Channel::presence, reinterpret_cast<std::byte*>(&peer.message), sizeof peer.message, r);
  }

  /// Runs an operation of this thread alone to its end.
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

  /// Sends `part_to(r)` to every other rank r, and receives to `part_from(r)`.
  template <class To, class From>
  void exchange(ExchangedSum& sum, Channel channel, const To& part_to, const From& part_from) {
    const int each = sum.part_bytes <= k_max_in_eager ? k_eager : sum.part_bytes;
    // In rounds, in each of which a rank receives from another one.
    for (int i = 1; i < size(); ++i) {
      const int from = (rank() + size() - i) % size(), to = (rank() + i) % size();
      for (int at = 0; at < sum.part_bytes; at += each) {
        const int bytes = std::min(each, sum.part_bytes - at);
        sum.requests.push_back(mpi_->receive(channel, part_from(from) + at, bytes, from));
        sum.requests.push_back(mpi_->send(channel, part_to(to) + at, bytes, to));
      }
    }
  }

  bool completed(ExchangedSum& sum) {
    while (!sum.requests.empty() && mpi_->test(sum.requests.back())) sum.requests.pop_back();
    return sum.requests.empty();
  }

  /// Lets the sums progress. The second half of a sum begins after that of all earlier ones, so
  /// that all ranks begin them in the same order.
  void progress() {
    bool earlier_gather = true;
    for (ExchangedSum* sum : under_way_) {
      if (sum->state == State::scattering && completed(*sum)) {
        add_parts(sum->parts, sum->part_count, sum->dtype, sum->own());
        sum->state = sum->gathers ? State::added : State::idle;
      }
      if (!sum->gathers) continue;
      if (sum->state == State::added && earlier_gather) {
        const auto part_of = [sum](int r) { return sum->part(r); };
        exchange(
            *sum, Channel::gather, [sum](int) { return sum->own(); }, part_of);
        sum->state = State::gathering;
      } else if (sum->state == State::gathering && completed(*sum)) {
        sum->state = State::idle;
      }
      earlier_gather = sum->state != State::scattering && sum->state != State::added;
    }
    const auto ended = std::erase_if(
        under_way_, [](const ExchangedSum* sum) { return sum->state == State::idle; });
    if (ended > 0 && under_way_.empty()) {
      traffic_.summing_seconds += Seconds(Clock::now() - summing_since_).count();
    }
  }

  /// The same as wait_until(), counted in traffic().
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
    Clock::time_point look = begin + std::chrono::duration_cast<Clock::duration>(k_look);
    bool told = false;
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
      look = now + std::chrono::duration_cast<Clock::duration>(k_look);
      if (std::vector<int> gone = ended_of(peers_); !gone.empty()) {
        lose(gone, fmt::format("{} ended before the others", names_of(gone, peers_)));
      }
      if (!told && waited > k_tell) {
        told = true;
        tell();
      }
      if (waited > timeout_) {
        const std::vector<int> missing = silent();
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
    return {ranks, message, "--resume auto goes on from the newest checkpoint"};
  }

  /// Fails this wait and all later ones. No sum progresses any more, so its buffers may be freed.
  [[noreturn]] void lose(const std::vector<int>& ranks, const std::string& message) {
    const std::lock_guard lock(mutex_);
    failure_ = std::make_exception_ptr(lost(ranks, message));
    std::rethrow_exception(failure_);
  }

  /// Tells all ranks how many operations this one has started.
  void tell() {
    const std::lock_guard lock(mutex_);
    told_ = started_;
    for (int r = 0; r < size(); ++r) {
      // The requests are not waited for: whoever does not answer may not receive either.
      if (r != rank())
        mpi_->send(Channel::presence, reinterpret_cast<const std::byte*>(&told_), sizeof told_, r);
    }
  }

  /// The ranks that have not said that they started all that this one has.
  std::vector<int> silent() {
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

  /// Lets sums progress that nobody waits for.
  void serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      {
        std::unique_lock lock(mutex_);
        under_way_changed_.wait(lock, stop, [this] { return !under_way_.empty() || failure_; });
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
  mutable std::mutex mutex_;  ///< of all below, of traffic_, and of the calls of mpi_
  std::condition_variable_any under_way_changed_;
  std::vector<ExchangedSum*> under_way_;  ///< in the order of their start
  Clock::time_point summing_since_;       ///< while there are any
  std::int64_t started_ = 0;              ///< operations of this rank
  std::int64_t told_ = 0;
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
  auto ranks = std::make_shared<Exchange>(open_mpi_library(*found.library));
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
