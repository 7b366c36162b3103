// The backend of a GPU that is not present, for `explain --arch`.

#include <functional>
#include <memory>

#include "backend/cuda/kernel_table.h"
#include "core/error.h"

namespace halfstep::backend::cuda {
namespace {

/// A device whose launches cannot run.
class NoDevice final : public Device {
 public:
  Prepared prepare(const Kernel&, const NodeView&) override {
    return launch([](const Args&) { require(false, "there is no device to run on"); });
  }
  void synchronize() override {}
  std::unique_ptr<CapturedGraph> capture(const std::function<void()>&) override { return nullptr; }
  std::unique_ptr<Event> make_event() override { return nullptr; }
};

}  // namespace

Backend absent_gpu(int compute_capability) {
  Backend backend;
  backend.name = "cuda";
  backend.kernels = kernel_table();
  backend.capabilities.compute_capability = compute_capability;
  backend.device = std::make_shared<NoDevice>();
  return backend;
}

}  // namespace halfstep::backend::cuda
