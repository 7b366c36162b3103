#pragma once

#include <memory>

#include "backend/device.h"

namespace halfstep::backend {

/// A wrapper of `device` that launches eagerly every time a captured graph would be launched:
/// slower, with the same results, and profilers see each kernel launch.
std::shared_ptr<Device> eager_device(std::shared_ptr<Device> device);

}  // namespace halfstep::backend
