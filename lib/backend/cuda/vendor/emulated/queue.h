#pragma once
// The emulated stream: calls wait in a queue until a synchronization, as on a device. During a
// capture they are added to the captured graph instead.

#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace halfstep::backend::cuda::emulated {

class Queue {
 public:
  using Call = std::function<void()>;
  /// Returns whether it is done; if not, it is called again later. Does not block.
  using Attempt = std::function<bool()>;

  void push(Call call) {
    push_attempt([call = std::move(call)] {
      call();
      return true;
    });
  }
  void push_attempt(Attempt attempt) {
    if (capturing_) {
      captured_.push_back(std::move(attempt));
    } else {
      waiting_.push_back(std::move(attempt));
    }
  }

  /// Runs the queued calls in order up to the first that is not done, or that sets `enough`;
  /// returns whether all are done, or enough.
  bool advance(const bool& enough = false) {
    while (!waiting_.empty() && !enough) {
      const Attempt attempt = std::move(waiting_.front());
      waiting_.pop_front();
      bool done = false;
      try {
        done = attempt();
      } catch (...) {
        waiting_.clear();
        throw;
      }
      if (!done) {
        waiting_.push_front(attempt);
        return false;
      }
    }
    return true;
  }

  /// Runs the queued calls in order, until one sets `enough`.
  void drain(const bool& enough = false) {
    while (!advance(enough)) std::this_thread::yield();
  }

  bool capturing() const { return capturing_; }
  void begin_capture() { capturing_ = true; }
  std::vector<Attempt> end_capture() {
    capturing_ = false;
    return std::exchange(captured_, {});
  }

 private:
  bool capturing_ = false;
  std::deque<Attempt> waiting_;
  std::vector<Attempt> captured_;
};

/// Runs `call` in the order of `stream`, a Queue; immediately when it is null.
inline void enqueue(void* stream, Queue::Call call) {
  if (stream == nullptr) return call();
  static_cast<Queue*>(stream)->push(std::move(call));
}

}  // namespace halfstep::backend::cuda::emulated
