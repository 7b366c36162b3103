#include "core/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace halfstep {
namespace {

thread_local TeamMember t_member;

/// The processor's hint for loops that poll an atomic variable: delays the calling thread by some
/// cycles (about 140 on x86 since Skylake) and leaves the shared units of the core to the other
/// hyperthread.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  // YIELD is a no-op on most cores; ISB takes about as long as PAUSE on x86.
  asm volatile("isb" ::: "memory");
#else
  std::this_thread::yield();
#endif
}

/// Longer than the serial work between two loops of a step, and far below a scheduler's time slice.
constexpr std::chrono::microseconds k_spin{200};

/// Blocks until `word` no longer holds `old`; returns the new value. Spins only while may_spin()
/// says that the thread that will change the variable can run at the same time. The writer must use
/// a seq_cst operation and notify afterwards.
template <class MaySpin>
std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& word,
                              std::uint32_t old,
                              MaySpin may_spin) {
  constexpr int k_loads_per_clock_read = 32;
  const auto begin = std::chrono::steady_clock::now();
  while (may_spin() && std::chrono::steady_clock::now() - begin < k_spin) {
    for (int load = 0; load < k_loads_per_clock_read; ++load) {
      const std::uint32_t now = word.load(std::memory_order_acquire);
      if (now != old) return now;
      pause();
    }
  }
  for (;;) {
    word.wait(old, std::memory_order_acquire);
    const std::uint32_t now = word.load(std::memory_order_acquire);
    if (now != old) return now;
  }
}

/// One team runs at a time. The atomic `word` of a worker holds the number of the last team that
/// offered it an index, and the bit k_offered until a thread takes that index by clearing the bit.
/// Thus each index is run once, and a thread that comes too late for a team changes nothing.
class Pool {
 public:
  int start(int size) {
    if (const int running = size_.load(std::memory_order_acquire); running >= size) return size;
    const std::lock_guard lock(start_mutex_);
    while (size_.load(std::memory_order_relaxed) < size && start_worker()) {
    }
    return std::min(size, size_.load(std::memory_order_relaxed));
  }

  bool run(int size, Team team, FunctionRef<void(int)> body) {
    require(size >= 1 && size <= k_max_threads, "a team of {} threads", size);
    const int running = start(size);
    if (team == Team::cooperating && running < size) {
      throw UserError(ErrorKind::unavailable,
                      {},
                      fmt::format("only {} of {} threads could be started", running, size),
                      "use fewer --threads");
    }
    std::unique_lock lock(mutex_, std::defer_lock);
    if (team == Team::cooperating) {
      lock.lock();
    } else if (!lock.try_lock()) {
      return false;
    }
    const Job job{body, size};
    job_ = &job;
    unfinished_.store(static_cast<std::uint32_t>(size), std::memory_order_relaxed);
    caller_processor_.store(sched_getcpu(), std::memory_order_relaxed);
    // The number wraps around after 2^31 teams, which is harmless: two teams could be confused only
    // by a thread descheduled for that long between its load of `word` and its attempt to take the
    // index.
    team_number_ += 2 * k_offered;
    const std::uint32_t offer = team_number_ | k_offered;
    for (int index = 1; index < size; ++index) {
      // Releases job_ and unfinished_ to the thread that takes the index. Sequentially consistent,
      // as is the count of sleepers that notify_one() reads: either that count includes the worker,
      // or the worker sees the new value before it sleeps.
      workers_[index].word.store(offer, std::memory_order_seq_cst);
      workers_[index].word.notify_one();
    }
    work(0, offer);
    for (std::uint32_t left = unfinished_.load(std::memory_order_acquire); left != 0;) {
      left = wait_for_change(unfinished_, left, [&] { return !shares_with_worker(size); });
    }
    return true;
  }

  void barrier(int size) {
    const std::uint32_t round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < static_cast<std::uint32_t>(size)) {
      wait_for_change(round_, round, [&] { return size <= processors_; });
      return;
    }
    // No thread arrives for the next round before round_ has changed.
    arrived_.store(0, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_seq_cst);
    round_.notify_all();
  }

 private:
  static constexpr std::uint32_t k_offered = 1;

  /// Worker `index` serves that index of every team; index 0 is the caller's, its entry is unused.
  struct alignas(64) Worker {
    std::atomic<std::uint32_t> word{0};
    std::atomic<int> processor{-1};  ///< on which it last woke up
  };
  struct Job {
    FunctionRef<void(int)> body;
    int size;
  };

  bool start_worker() {
    const int index = size_.load(std::memory_order_relaxed);
    try {
      start_thread([this, index] { serve(index); }).detach();
    } catch (const UserError& error) {
      if (!refused_)
        log_warning("{}: it continues with {}", error.problems().front().message, index);
      refused_ = true;
      return false;
    }
    size_.store(index + 1, std::memory_order_release);
    return true;
  }

  /// Takes the index that a worker was offered with this number; false where another thread has.
  static bool take(std::atomic<std::uint32_t>& word, std::uint32_t offer) {
    return word.compare_exchange_strong(offer, offer & ~k_offered, std::memory_order_acq_rel);
  }

  /// Whether a worker of the team last woke up on the caller's own processor, as happens under
  /// oversubscription: then the caller must sleep for the worker to run.
  bool shares_with_worker(int size) const {
    const int here = sched_getcpu();
    for (int i = 1; i < size; ++i) {
      if (workers_[i].processor.load(std::memory_order_relaxed) == here) return true;
    }
    return false;
  }

  void serve(int index) {
    Worker& worker = workers_[index];
    std::uint32_t seen = 0;
    for (;;) {
      const std::uint32_t now = wait_for_change(worker.word, seen, [&] {
        return index < processors_ &&
               sched_getcpu() != caller_processor_.load(std::memory_order_relaxed);
      });
      worker.processor.store(sched_getcpu(), std::memory_order_relaxed);
      // If another thread has taken the index, the team may have finished: job_ is not read.
      if ((now & k_offered) != 0 && take(worker.word, now)) work(index, now);
      seen = now & ~k_offered;
    }
  }

  /// Runs an index that the calling thread has taken, then those that no thread has. This cannot
  /// block a cooperating team: an index that is not taken has an idle worker, which takes it as
  /// soon as it is scheduled. Where other processes keep workers from running, the caller thus
  /// waits for them only if the members really wait for each other.
  void work(int index, std::uint32_t offer) noexcept {
    const int size = job_->size;  // *job_ is valid only until the last index has finished
    run_index(index);
    for (int i = 1; i < size; ++i) {
      const int other = (index + i) % size;
      // Once the team has finished, no worker's `word` holds its number together with k_offered.
      if (other != 0 && take(workers_[other].word, offer)) run_index(other);
    }
  }

  void run_index(int index) noexcept {
    t_member = {index, job_->size, true};
    job_->body(index);
    t_member = {};
    // Releases the body's writes to the caller, which may return and end *job_ at once.
    if (unfinished_.fetch_sub(1, std::memory_order_seq_cst) == 1) unfinished_.notify_one();
  }

  const int processors_ = available_processors();
  std::mutex start_mutex_;    ///< held while workers are started
  bool refused_ = false;      ///< whether a refusal was logged
  std::atomic<int> size_{1};  ///< of the largest team: the caller and the workers
  std::mutex mutex_;          ///< held by the caller of the running team
  Worker workers_[k_max_threads];
  const Job* job_ = nullptr;  ///< of the running team
  std::uint32_t team_number_ = 0;
  std::atomic<int> caller_processor_{-1};
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};  ///< indices of the running team
  alignas(64) std::atomic<std::uint32_t> arrived_{0};     ///< members at the barrier
  std::atomic<std::uint32_t> round_{0};                   ///< barriers that all members have left
};

Pool& pool() {
  // Never destroyed: its workers wait in it while the process ends.
  static Pool& k_pool = *new Pool;
  return k_pool;
}

}  // namespace

TeamMember team_member() { return t_member; }

std::jthread start_thread(std::function<void()> body) {
  try {
    return std::jthread(std::move(body));
  } catch (const std::system_error& error) {
    throw UserError(
        ErrorKind::memory,
        {},
        fmt::format("out of memory, or of threads: the system refuses a further thread ({})",
                    error.code().message()));
  }
}

int start_threads(int size) { return pool().start(std::min(size, k_max_threads)); }

bool run_team(int size, Team team, FunctionRef<void(int)> body) {
  return !t_member.in_team && pool().run(size, team, body);
}

void run_alone(FunctionRef<void()> body) {
  const struct Restored {
    TeamMember before = t_member;
    ~Restored() { t_member = before; }
  } k_restored;
  t_member = {0, 1, true};
  body();
}

void team_barrier() {
  if (t_member.size > 1) pool().barrier(t_member.size);
}

}  // namespace halfstep
