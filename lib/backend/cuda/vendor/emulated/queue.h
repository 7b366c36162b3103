#pragma once
// The emulated stream: calls wait in a queue until a synchronization, as on a device. During a
// capture they are added to the captured graph instead.

#include <functional>
#include <utility>
#include <vector>

namespace halfstep::backend::cuda::emulated {

class Queue {
 public:
  using Call = std::function<void()>;

  void push(Call call) { (capturing_ ? captured_ : waiting_).push_back(std::move(call)); }

  /// Runs the queued calls in order.
  void drain() {
    std::vector<Call> calls;
    calls.swap(waiting_);
    for (const Call& call : calls) call();
  }

  bool capturing() const { return capturing_; }
  void begin_capture() { capturing_ = true; }
  std::vector<Call> end_capture() {
    capturing_ = false;
    return std::exchange(captured_, {});
  }

 private:
  bool capturing_ = false;
  std::vector<Call> waiting_;
  std::vector<Call> captured_;
};

/// Runs `call` in the order of `stream`, a Queue; immediately when it is null.
inline void enqueue(void* stream, Queue::Call call) {
  if (stream == nullptr) return call();
  static_cast<Queue*>(stream)->push(std::move(call));
}

}  // namespace halfstep::backend::cuda::emulated
