#include <utility>

#include "backend/device.h"

namespace halfstep::backend {
namespace {

class EagerGraph final : public CapturedGraph {
 public:
  explicit EagerGraph(std::function<void()> enqueue) : enqueue_(std::move(enqueue)) {}
  void launch() override { enqueue_(); }
  std::size_t nodes() const override { return 0; }

 private:
  std::function<void()> enqueue_;
};

class EagerDevice final : public Device {
 public:
  explicit EagerDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  Prepared prepare(const Kernel& kernel, const NodeView& node) override {
    return device_->prepare(kernel, node);
  }
  void synchronize() override { device_->synchronize(); }
  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& enqueue) override {
    return std::make_unique<EagerGraph>(enqueue);
  }
  std::unique_ptr<Event> make_event() override { return device_->make_event(); }

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace

std::shared_ptr<Device> eager_device(std::shared_ptr<Device> device) {
  return std::make_shared<EagerDevice>(std::move(device));
}

}  // namespace halfstep::backend
