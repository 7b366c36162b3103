#include "backend/backend.h"

namespace halfstep::backend {

Choice choose(const Backend& backend, const NodeView& node) {
  Choice choice;
  for (const Kernel& kernel : backend.kernels) {
    if (kernel.op != node.node.op) continue;
    Accepts accepts = kernel.accepts ? kernel.accepts(node, backend.capabilities) : Accepts::yes();
    if (accepts) {
      choice.kernel = &kernel;
      break;
    }
    choice.refused.emplace_back(kernel.name, std::move(accepts.refusal));
  }
  return choice;
}

}  // namespace halfstep::backend
