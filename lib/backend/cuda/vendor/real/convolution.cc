#include "backend/cuda/vendor/real/conv_plans.h"
#include "backend/cuda/vendor/real/device.h"

namespace halfstep::backend::cuda::real {
namespace {

constexpr std::size_t k_candidates = 8;

class RealConvolution final : public Convolution {
 public:
  RealConvolution(Device& device, ConvArguments arguments, ConvPlan plan)
      : device_(device), arguments_(arguments), plan_(std::move(plan)) {}

  std::size_t workspace_bytes() const override { return plan_.workspace_bytes; }
  std::string description() const override { return plan_.description; }

  void run(const Operands& o, void* workspace) override {
    std::vector<std::int64_t> ids{k_x_id, k_filter_id, k_y_id};
    std::vector<void*> addresses{o.x, o.filter, o.y};
    if (arguments_.bias.elements() > 0) {
      ids.push_back(k_bias_id);
      addresses.push_back(const_cast<void*>(o.bias));
    }
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.integers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
             CUDNN_TYPE_VOID_PTR,
             std::span<void* const>(addresses))
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    pack.finalize();
    check(cudnnBackendExecute(device_.cudnn, plan_.plan->raw(), pack.raw()), "cudnnBackendExecute");
  }

 private:
  Device& device_;
  ConvArguments arguments_;
  ConvPlan plan_;
};

std::size_t bytes_of(const ConvTensor& tensor, DType dtype) {
  return static_cast<std::size_t>(tensor.elements()) * size_bytes(dtype);
}

std::size_t measure(Device& device, const ConvArguments& c, const std::vector<ConvPlan>& plans) {
  const Scratch x(bytes_of(c.x, c.dtype));
  const Scratch filter(bytes_of(c.filter, c.dtype));
  const Scratch y(bytes_of(c.y, c.dtype));
  const Scratch bias(bytes_of(c.bias, c.dtype));
  const Scratch workspace(k_conv_workspace_limit);
  std::vector<std::unique_ptr<RealConvolution>> candidates;
  std::vector<std::function<void()>> runs;
  for (const ConvPlan& plan : plans) {
    candidates.push_back(std::make_unique<RealConvolution>(device, c, plan));
    runs.emplace_back([&, convolution = candidates.back().get()] {
      convolution->run(
          {.x = x.address(), .filter = filter.address(), .y = y.address(), .bias = bias.address()},
          workspace.address());
    });
  }
  return fastest(device, runs);
}

}  // namespace

std::unique_ptr<Convolution> prepare_convolution(Device& device, const ConvKey& key) {
  const ConvArguments arguments = conv_arguments(key);
  const std::size_t wanted = device.autotune == Autotune::measure ? k_candidates : 1;
  std::vector<ConvPlan> plans = conv_plans(
      arguments, {.handle = device.cudnn, .properties = {}}, k_conv_workspace_limit, wanted);
  if (plans.empty()) return nullptr;
  const std::size_t best = choose(
      device, to_string(key), plans.size(), [&] { return measure(device, arguments, plans); });
  return std::make_unique<RealConvolution>(device, arguments, std::move(plans[best]));
}

}  // namespace halfstep::backend::cuda::real
