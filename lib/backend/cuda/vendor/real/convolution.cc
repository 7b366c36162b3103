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
  bool uses_tensor_cores() const override { return plan_.tensor_cores; }

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

/// Memory for a trial.
struct Trial {
  TrialOperand x, filter, y, bias;
  Scratch workspace;

  explicit Trial(const ConvArguments& c)
      : x(c.x.elements(), c.dtype),
        filter(c.filter.elements(), c.dtype),
        y(c.y.elements(), c.dtype),
        bias(c.bias.elements(), c.dtype),
        workspace(conv_workspace_limit(c)) {}
  Convolution::Operands operands() const {
    return {.x = x.address(), .filter = filter.address(), .y = y.address(), .bias = bias.address()};
  }
};

/// Whether a plan with a ReLU gives NaN for NaN, by which a broken step is found; cuDNN does not
/// promise it. False without memory for a trial.
bool keeps_nan(Device& device, const ConvArguments& c, const ConvPlan& plan) {
  try {
    const Trial trial(c);
    fill_nan(device, {&trial.x, &trial.filter, &trial.bias});
    RealConvolution(device, c, plan).run(trial.operands(), trial.workspace.address());
    return is_nan(device, trial.y);
  } catch (const VendorError& error) {
    if (error.failure() != Failure::out_of_memory) throw;
    return false;
  }
}

/// The fastest plan; the first where memory for a trial is short.
std::size_t measure(Device& device, const ConvArguments& c, const std::vector<ConvPlan>& plans) {
  try {
    const Trial trial(c);
    fill_random(device, {&trial.x, &trial.filter, &trial.y, &trial.bias});
    std::vector<std::unique_ptr<RealConvolution>> candidates;
    std::vector<std::function<void()>> runs;
    for (const ConvPlan& plan : plans) {
      candidates.push_back(std::make_unique<RealConvolution>(device, c, plan));
      runs.emplace_back([&, convolution = candidates.back().get()] {
        convolution->run(trial.operands(), trial.workspace.address());
      });
    }
    return fastest(device, runs);
  } catch (const VendorError& error) {
    if (error.failure() != Failure::out_of_memory) throw;
    return 0;
  }
}

}  // namespace

std::unique_ptr<Convolution> prepare_convolution(Device& device, const ConvKey& key) {
  const ConvArguments arguments = conv_arguments(key);
  // With a ReLU the first plan may drop NaN.
  const bool tries = device.autotune == Autotune::measure || arguments.relu;
  const std::size_t wanted = tries ? k_candidates : 1;
  std::vector<ConvPlan> plans =
      conv_plans(arguments, {.handle = device.cudnn, .properties = {}}, wanted);
  if (arguments.relu) {
    std::erase_if(plans, [&](const ConvPlan& plan) { return !keeps_nan(device, arguments, plan); });
  }
  if (plans.empty()) return nullptr;
  // Candidates are numbered in the order of the heuristics.
  const std::size_t best = choose(device, to_string(key) + ", heuristics B", plans.size(), [&] {
    return measure(device, arguments, plans);
  });
  return std::make_unique<RealConvolution>(device, arguments, std::move(plans[best]));
}

}  // namespace halfstep::backend::cuda::real
