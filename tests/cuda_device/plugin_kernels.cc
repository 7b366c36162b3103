#include "cuda_device/plugin_kernels.h"

#include <array>
#include <deque>
#include <utility>

#include "backend/cuda/kernel_table.h"
#include "backend/cuda/kernels/few_taps.h"
#include "backend/cuda/plugin/prepare.h"
#include "core/ranges.h"
#include "cuda_device/device.h"
#include "graph/op_handles.h"
#include "graph/ops/ops.h"

namespace halfstep::testing {
namespace {

namespace plugin = backend::cuda::plugin;

Begin g_begin = Begin::aligned;

std::size_t offset_of(DType dtype) {
  if (g_begin == Begin::aligned) return 0;
  return g_begin == Begin::behind_one_element ? size_bytes(dtype) : 16;
}

/// Tensors on the device.
class Copies {
 public:
  /// `holds` a copy of the elements, or is full of NaN.
  explicit Copies(std::span<const TensorView> tensors, bool holds) : host_(tensors) {
    for (const TensorView& tensor : tensors) {
      TensorView& view = views_.emplace_back(tensor);
      view.data = nullptr;
      if (tensor.bytes() == 0) continue;
      const std::size_t shift = offset_of(tensor.dtype);
      const OnDevice& memory = memory_.emplace_back(tensor.bytes() + shift);
      view.data = static_cast<std::byte*>(memory.address()) + shift;
      if (holds) device().upload(view.data, tensor.data, tensor.bytes());
    }
  }

  std::span<const TensorView> views() const { return views_; }
  void read_back() const {
    for (std::size_t i = 0; i < host_.size(); ++i) {
      if (host_[i].bytes() == 0) continue;
      device().download(host_[i].data, views_[i].data, host_[i].bytes());
    }
    device().synchronize();
  }

 private:
  std::span<const TensorView> host_;
  std::deque<OnDevice> memory_;
  std::vector<TensorView> views_;
};

/// A launch of the plugin's code on device memory, and its copies from and to the host.
backend::Prepared on_device(const plugin::PreparedKernel& kernel) {
  return backend::launch([kernel](const backend::Args& args) {
    // Variables arrive as inputs and may have been written.
    const Copies in(args.in, true);
    const Copies out(args.out, false);
    const OnDevice workspace(kernel.workspace_bytes);
    kernel.run({in.views(), out.views(), static_cast<std::byte*>(workspace.address())});
    in.read_back();
    out.read_back();
  });
}

/// Prepares a node by kernel number `i` of backend/cuda/kernel_table.h.
template <std::size_t i>
backend::Prepared prepare(const backend::NodeView& node, const backend::Capabilities&) {
  static const plugin::DeviceContext k_context{.vendor = device(), .tickets = tickets()};
  return on_device(plugin::implementation(backend::cuda::kernel_table()[i].name)(node, k_context));
}

/// One instantiation of prepare() per row: Kernel::prepare is a function pointer without captures,
/// and its arguments do not identify the kernel.
template <std::size_t... i>
constexpr auto prepare_functions(std::index_sequence<i...>) {
  return std::array{prepare<i>...};
}
constexpr auto k_prepare = prepare_functions(std::make_index_sequence<256>());

/// The own kernels of convolutions also where cuDNN's take less time.
backend::Accepts each_convolution(const backend::NodeView& node, const backend::Capabilities&) {
  using backend::cuda::kernels::FewTaps;
  const bool is_gradient = node.node.is(graph::ops::k_conv2d_backprop_filter);
  const Shape& filter = is_gradient ? node.output().shape : node.input(1).shape;
  const DType dtype = node.output().dtype;
  const bool fits = (is_gradient || filter.elements(0, 3) <= FewTaps::k_max) &&
                    filter[2] == node.input(0).shape.back() &&
                    (dtype == DType::float32 || is_half(dtype));
  return fits ? backend::Accepts::yes() : backend::Accepts::no("cuDNN's alone");
}

}  // namespace

std::vector<backend::Kernel> plugin_kernels(std::string_view prefix) {
  std::vector<backend::Kernel> kernels;
  const auto rows = backend::cuda::kernel_table();
  const std::vector<graph::OpDef> collective = graph::ops::collective_ops();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    backend::Kernel kernel = rows[i];
    const bool implemented =
        find_or_null(plugin::implementations(), kernel.name, &plugin::Implementation::name);
    const bool among_ranks = find_or_null(collective, kernel.op, &graph::OpDef::name);
    if (!implemented || among_ranks || !kernel.name.starts_with(prefix)) continue;
    kernel.prepare = k_prepare.at(i);
    if (kernel.name == "cuda/convolution" || kernel.name == "cuda/filter_gradient") {
      kernel.accepts = each_convolution;
    }
    kernels.push_back(kernel);
  }
  return kernels;
}

void place_tensors(Begin begin) { g_begin = begin; }

}  // namespace halfstep::testing
