#include "cuda_run/device.h"

#include <cstdlib>
#include <string>

#include "core/error.h"
#include "support/paths.h"

namespace halfstep::train {

namespace {

backend::Backend open_plugin(const std::string& path,
                             const backend::cuda::DeviceOptions& options = {}) {
  auto opened = backend::cuda::open({path, {}}, options);
  const auto* unavailable = std::get_if<backend::cuda::Unavailable>(&opened);
  require(unavailable == nullptr, "{}", unavailable == nullptr ? "" : unavailable->reason);
  return std::get<backend::Backend>(std::move(opened));
}

}  // namespace

backend::Backend open_emulated(const backend::cuda::DeviceOptions& options) {
  return open_plugin(test::emulated_plugin().string(), options);
}

const backend::Backend& emulated() {
  static const backend::Backend backend = open_emulated();
  return backend;
}

const backend::Backend& emulated_or_named() {
  static const char* named = std::getenv("HALFSTEP_CUDA_PLUGIN");
  static const backend::Backend backend = named == nullptr ? open_emulated() : open_plugin(named);
  return backend;
}

}  // namespace halfstep::train
