#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include "backend/backend.h"

namespace halfstep::backend {

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

}  // namespace halfstep::backend
