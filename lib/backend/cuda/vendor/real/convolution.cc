#include <fmt/format.h>

#include "backend/cuda/vendor/conv_trial.h"
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

  Trial(const ConvArguments& c, std::size_t workspace_bytes)
      : x(c.x.elements(), c.dtype),
        filter(c.filter.elements(), c.dtype),
        y(c.y.elements(), c.dtype),
        bias(c.bias.elements(), c.dtype),
        workspace(workspace_bytes) {}
  Convolution::Operands operands() const {
    return {.x = x.address(), .filter = filter.address(), .y = y.address(), .bias = bias.address()};
  }
};

/// A fault of a plan, "" without one. In float32 cuDNN 9.19 has an engine whose gradient of a
/// filter is wrong for strides of 2 and one cell of padding at the end. With a ReLU, cuDNN does not
/// promise to propagate NaN, by which the finite check finds a broken step.
std::string fault_of(Device& device, const ConvArguments& c, const ConvPlan& plan) {
  const Trial trial(c, plan.workspace_bytes);
  RealConvolution convolution(device, c, plan);
  const auto run = [&] { convolution.run(trial.operands(), trial.workspace.address()); };
  const auto fill = [&](const TrialOperand& operand, ConvOperand which) {
    if (operand.memory.bytes() > 0) fill_repeated(device, operand, trial_values(which));
  };
  fill(trial.x, ConvOperand::x);
  fill(trial.filter, ConvOperand::filter);
  fill(trial.y, ConvOperand::y);
  fill(trial.bias, ConvOperand::bias);
  const TrialOperand& result = c.kind == ConvKind::forward          ? trial.y
                               : c.kind == ConvKind::input_gradient ? trial.x
                                                                    : trial.filter;
  fill_nan(device, {&result});
  run();
  const auto fault = conv_fault(c, [&](std::int64_t i) { return element(device, result, i); });
  if (fault || !c.relu) return fault.value_or("");
  fill_nan(device, {&trial.x, &trial.filter, &trial.bias});
  run();
  return is_nan(device, trial.y) ? "" : "NaN is lost in the ReLU";
}

/// Removes plans that fail to run or give a wrong result, and returns the first fault. A plan for
/// whose trial there is no memory is kept, unless it has a ReLU, and its description says so.
std::string drop_faulty(Device& device,
                        const ConvKey& key,
                        const ConvArguments& c,
                        std::vector<ConvPlan>& plans) {
  std::string first;
  std::erase_if(plans, [&](ConvPlan& plan) {
    const std::string engine =
        plan.description + (plan.knobs.empty() ? "" : ", knobs " + plan.knobs);
    const std::string name = to_string(key) + ", " + engine;
    auto known = device.trials.find(name);
    try {
      if (known == device.trials.end()) {
        known = device.trials.emplace(name, fault_of(device, c, plan)).first;
      }
    } catch (const VendorError& error) {
      if (error.failure() == Failure::out_of_memory) {
        plan.description += ", not checked for lack of memory";
        return c.relu;
      }
      known = device.trials.emplace(name, error.what()).first;
    }
    if (first.empty() && !known->second.empty()) {
      first = fmt::format("{}: {}", engine, known->second);
    }
    return !known->second.empty();
  });
  if (!first.empty() && !plans.empty()) {
    plans.front().description += fmt::format(", in place of {}", first);
  }
  return first;
}

/// The fastest plan.
std::size_t measure(Device& device, const ConvArguments& c, const std::vector<ConvPlan>& plans) {
  const Trial trial(c, conv_workspace_limit(c));
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
}

}  // namespace

std::unique_ptr<Convolution> prepare_convolution(Device& device, const ConvKey& key) {
  const ConvArguments arguments = conv_arguments(key);
  const bool measures = device.autotune == Autotune::measure;
  std::vector<ConvPlan> plans;
  std::string fault;
  for (const std::size_t wanted : {measures ? k_candidates : 1, k_candidates}) {
    plans = conv_plans(arguments, {.handle = device.cudnn, .properties = {}}, wanted);
    fault = drop_faulty(device, key, arguments, plans);
    if (!plans.empty()) break;
  }
  if (plans.empty()) {
    // A bias can be added by an own kernel.
    if (fault.empty() || key.bias) return nullptr;
    throw VendorError(
        Failure::failed,
        fmt::format("no engine of cuDNN computes {}: {}; use another release of cuDNN",
                    to_string(key),
                    fault));
  }
  // Candidates are numbered in the order of the heuristics.
  const std::size_t best = choose(device, to_string(key) + ", heuristics B", plans.size(), [&] {
    return measure(device, arguments, plans);
  });
  return std::make_unique<RealConvolution>(device, arguments, std::move(plans[best]));
}

}  // namespace halfstep::backend::cuda::real
