#pragma once
// A single op on a device, outside of a plan.

#include <span>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "graph/attr.h"

namespace halfstep::train {

class DeviceOp {
 public:
  struct Port {
    DType dtype{};
    Shape shape;
    bool variable = false;  ///< the op writes it
  };

  /// Errors: InternalError when the device has no kernel for it, or the kernel needs a workspace.
  DeviceOp(const backend::Backend& backend,
           std::string_view op,
           const std::vector<Port>& inputs,
           graph::Attrs attrs);

  /// Enqueues the op; does not block.
  void run(std::span<const TensorView> in, std::span<const TensorView> out) const;

 private:
  std::unique_ptr<backend::Launch> launch_;
};

}  // namespace halfstep::train
