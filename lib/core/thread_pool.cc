#include "core/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "core/pause.h"

namespace halfstep {
namespace {

thread_local TeamPlace t_place;

/// Longer than the serial work between two loops of a step, and far below a scheduler's time slice.
constexpr std::chrono::microseconds k_spin{200};

/// Returns what `word` holds as soon as that is not `old`. Spins only as long as may_spin() says
/// that the thread that changes the word can run meanwhile.
template <class MaySpin>
std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& word,
                              std::uint32_t old,
                              MaySpin may_spin) {
  constexpr int k_looks_per_clock = 32;
  const auto begin = std::chrono::steady_clock::now();
  while (may_spin() && std::chrono::steady_clock::now() - begin < k_spin) {
    for (int look = 0; look < k_looks_per_clock; ++look) {
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

class Pool {
 public:
  bool run(int size, Team team, FunctionRef<void(int)> body) {
    std::unique_lock lock(mutex_, std::defer_lock);
    if (team == Team::together) {
      lock.lock();
    } else if (!lock.try_lock()) {
      return false;
    }
    require(size <= k_most_threads, "a team of {} threads", size);
    while (count_ < size) add_worker();
    const Job job{body, size, team};
    job_ = &job;
    unfinished_.store(static_cast<std::uint32_t>(size), std::memory_order_relaxed);
    caller_processor_.store(sched_getcpu(), std::memory_order_relaxed);
    generation_ += 2 * k_offered;
    const std::uint32_t offer = generation_ | k_offered;
    for (int index = 1; index < size; ++index) {
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
      wait_for_change(round_, round, [] { return true; });
      return;
    }
    arrived_.store(0, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_seq_cst);
    round_.notify_all();
  }

 private:
  /// The last bit of a worker's word says that its index of a job is to be had; the others are the
  /// job's number. Whoever takes the bit away does the work.
  static constexpr std::uint32_t k_offered = 1;

  struct alignas(64) Worker {
    std::atomic<std::uint32_t> word{0};
    std::atomic<int> processor{-1};  ///< where it began its last work
  };
  struct Job {
    FunctionRef<void(int)> body;
    int size;
    Team team;
  };

  void add_worker() {
    // Index 0 is the caller's. The threads live as long as the process.
    const int index = count_;
    if (index > 0) std::thread([this, index] { serve(index); }).detach();
    ++count_;
  }

  static bool take(std::atomic<std::uint32_t>& word, std::uint32_t offer) {
    return word.compare_exchange_strong(offer, offer & ~k_offered, std::memory_order_acq_rel);
  }

  /// Whether a thread that works for the caller was on the caller's own processor: other processes
  /// have the rest, and one of the two must sleep for the other to go on.
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
        return sched_getcpu() != caller_processor_.load(std::memory_order_relaxed);
      });
      worker.processor.store(sched_getcpu(), std::memory_order_relaxed);
      // Where another thread has taken the work, the job may be over.
      if ((now & k_offered) != 0 && take(worker.word, now)) work(index, now);
      seen = now & ~k_offered;
    }
  }

  void work(int index, std::uint32_t offer) {
    // The job lasts until its last index is done: what is needed afterwards is read before.
    const int size = job_->size;
    const bool any_order = job_->team == Team::any_order;
    do_index(index);
    for (int i = 1; any_order && i < size; ++i) {
      const int other = (index + i) % size;
      // An offer with this job's number can be taken only while the job lasts.
      if (other != 0 && take(workers_[other].word, offer)) do_index(other);
    }
  }

  void do_index(int index) {
    t_place = {index, job_->size, true};
    job_->body(index);
    t_place = {};
    if (unfinished_.fetch_sub(1, std::memory_order_seq_cst) == 1) unfinished_.notify_one();
  }

  std::mutex mutex_;
  Worker workers_[k_most_threads];
  int count_ = 0;  ///< of workers_
  const Job* job_ = nullptr;
  std::uint32_t generation_ = 0;
  std::atomic<int> caller_processor_{-1};
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  std::atomic<std::uint32_t> round_{0};
};

Pool& pool() {
  // Never destroyed: its threads wait in it while the process ends.
  static Pool& k_pool = *new Pool;
  return k_pool;
}

}  // namespace

TeamPlace team_place() { return t_place; }

bool run_team(int size, Team team, FunctionRef<void(int)> body) {
  return !t_place.inside && pool().run(size, team, body);
}

void as_team_of_one(FunctionRef<void()> body) {
  const TeamPlace before = t_place;
  t_place = {0, 1, before.inside};
  body();
  t_place = before;
}

void team_barrier() {
  if (t_place.size > 1) pool().barrier(t_place.size);
}

}  // namespace halfstep
