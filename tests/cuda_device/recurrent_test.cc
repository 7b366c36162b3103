// Recurrent layers by the plugin's code, matmuls and own kernels together, against the reference.

#include <doctest/doctest.h>

#include <ostream>
#include <vector>

#include "backend/cuda/node_description.h"
#include "backend/cuda/plugin/prepare.h"
#include "backend/cuda/rows.h"
#include "cuda_device/kernel_rows.h"
#include "support/kernels.h"

namespace halfstep::testing {
namespace {

namespace plugin = backend::cuda::plugin;

/// The plugin's launch of one of its kernels of recurrent layers, on the device under test.
template <std::size_t row>
backend::Prepared prepare_recurrent(const backend::NodeView& node, const backend::Capabilities&) {
  const backend::cuda::NodeDescription description(node);
  const plugin::Work work = plugin::recurrent_rows()[row].prepare(
      plugin::Facts(description.node()), plugin::Machine{.vendor = device()});
  return launch_on_device(
      [run = work.run](const backend::Args& args) {
        std::vector<const void*> in;
        std::vector<void*> out;
        for (const TensorView& view : args.in) in.push_back(view.data);
        for (const TensorView& view : args.out) out.push_back(view.data);
        run({in.data(), out.data(), args.workspace});
      },
      work.workspace_bytes);
}

}  // namespace

TEST_CASE("recurrent layers: matmuls and gates give what the reference gives") {
  const auto rows = plugin::recurrent_rows();
  for (backend::Kernel kernel : backend::cuda::rows()) {
    if (kernel.name == rows[0].name) {
      kernel.prepare = prepare_recurrent<0>;
    } else if (kernel.name == rows[1].name) {
      kernel.prepare = prepare_recurrent<1>;
    } else {
      continue;
    }
    CAPTURE(kernel.op);
    const backend::Capabilities here{.compute_capability = device().device().capability};
    CHECK(check_against_reference(kernel, here, recurrent_cases()) > 80);
  }
}

}  // namespace halfstep::testing
