#include "cuda_device/kernel_rows.h"

#include <algorithm>
#include <deque>
#include <iterator>

#include "backend/cuda/node_description.h"

namespace halfstep::testing {
namespace {

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

}  // namespace

std::vector<backend::Kernel> cuda_kernel_rows() {
  std::vector<backend::Kernel> all;
  for (auto family : {elementwise_rows, training_rows, image_rows, array_rows, attention_rows}) {
    const std::vector<backend::Kernel> rows = family();
    std::copy(rows.begin(), rows.end(), std::back_inserter(all));
  }
  return all;
}

void place_tensors(Begin begin) { g_begin = begin; }

backend::Prepared launch_on_device(std::function<void(const backend::Args&)> run,
                                   std::size_t workspace_bytes) {
  return backend::launch([run = std::move(run), workspace_bytes](const backend::Args& args) {
    // Variables arrive as inputs and may have been written.
    const Copies in(args.in, true);
    const Copies out(args.out, false);
    const OnDevice workspace(workspace_bytes);
    run({in.views(), out.views(), static_cast<std::byte*>(workspace.address())});
    in.read_back();
    out.read_back();
  });
}

backend::Prepared prepare_by_plugin(backend::cuda::plugin::Prepare prepare,
                                    const backend::NodeView& node) {
  namespace plugin = backend::cuda::plugin;
  const backend::cuda::NodeDescription description(node);
  const plugin::Work work =
      prepare(plugin::Facts(description.node()), plugin::Machine{.vendor = device()});
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

}  // namespace halfstep::testing
