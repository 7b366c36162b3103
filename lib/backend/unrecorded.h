#pragma once

#include <memory>

#include "backend/device.h"

namespace halfstep::backend {

/// `device`, launching what it should write down again whenever that is replayed: slower, with the
/// same results, and every launch is seen by tools that look at one after the other.
std::shared_ptr<Device> unrecorded(std::shared_ptr<Device> device);

}  // namespace halfstep::backend
