// The interface that the plugin exports.

#include "backend/cuda/plugin.h"

#include "backend/cuda/plugin/prepare.h"
#include "core/ranges.h"

namespace halfstep::backend::cuda {

extern "C" __attribute__((visibility("default"))) const Plugin* halfstep_cuda_plugin() {
  static const Plugin k_plugin{.build_id = build_id(),
                               .flavour = vendor_name(),
                               .probe = probe,
                               .kernels =
                                   [] {
                                     return mapped<std::string_view>(plugin::implementations(),
                                                                     &plugin::Implementation::name);
                                   },
                               .open = plugin::open_gpu};
  return &k_plugin;
}

}  // namespace halfstep::backend::cuda
