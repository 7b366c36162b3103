#include "cuda_run/device.h"

#include "core/error.h"
#include "support/paths.h"

namespace halfstep::train {

backend::Backend open_emulated(const backend::cuda::DeviceOptions& options) {
  auto opened = backend::cuda::open({test::emulated_plugin().string(), {}}, options);
  const auto* absence = std::get_if<backend::cuda::Absence>(&opened);
  require(absence == nullptr, "{}", absence == nullptr ? "" : absence->reason);
  return std::get<backend::Backend>(std::move(opened));
}

const backend::Backend& emulated() {
  static const backend::Backend backend = open_emulated();
  return backend;
}

}  // namespace halfstep::train
