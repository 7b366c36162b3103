#include <utility>

#include "backend/device.h"

namespace halfstep::backend {
namespace {

class Again final : public CapturedGraph {
 public:
  explicit Again(std::function<void()> enqueue) : enqueue_(std::move(enqueue)) {}
  void launch() override { enqueue_(); }
  std::size_t nodes() const override { return 0; }

 private:
  std::function<void()> enqueue_;
};

class Unrecorded final : public Device {
 public:
  explicit Unrecorded(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  Prepared prepare(const Kernel& row, const NodeView& node) override {
    return device_->prepare(row, node);
  }
  void synchronize() override { device_->synchronize(); }
  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& enqueue) override {
    return std::make_unique<Again>(enqueue);
  }
  std::unique_ptr<Event> make_event() override { return device_->make_event(); }

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace

std::shared_ptr<Device> eager_device(std::shared_ptr<Device> device) {
  return std::make_shared<Unrecorded>(std::move(device));
}

}  // namespace halfstep::backend
