#include "train/numerics.h"

#include <fmt/format.h>

#include <cmath>

#include "core/dispatch.h"
#include "graph/op_handles.h"
#include "precision/loss_scale.h"
#include "train/device_op.h"

namespace halfstep::train {
namespace {

using graph::Node;
using graph::Phase;

/// A weight's gradient after unscaling, named by lib/nn/training.cc.
bool is_weight_gradient(const Node& node) {
  return node.origin.phase == Phase::unscale && node.name.starts_with("unscale/") &&
         node.name.ends_with("/gradient");
}

/// TensorFlow's name of output `port`.
std::string value_name(const Node& node, int port) {
  return port == 0 ? node.name : fmt::format("{}:{}", node.name, port);
}

/// The float32 tensor that was rounded to this value, if the graph shows it: the input of a cast.
const TensorView* rounded_from(const Node& node, std::span<const TensorView> inputs) {
  const bool rounds =
      node.is(graph::ops::k_cast) && !inputs.empty() && inputs[0].dtype == DType::float32;
  return rounds ? &inputs[0] : nullptr;
}

/// A tensor in host memory: that of a host, or a copy.
class HostTensor {
 public:
  HostTensor(backend::Memory& memory, const TensorView& from) : view_(from) {
    if (memory.is_host()) return;
    copy_.emplace(from.dtype, from.shape);
    view_ = copy_->view();
    memory.download(from.data, view_.data, from.bytes());
  }
  const TensorView& view() const { return view_; }

 private:
  std::optional<Tensor> copy_;
  TensorView view_;
};

class Collector {
 public:
  Collector(NumericsSample& sample, backend::Memory& memory, const graph::Graph& graph)
      : sample_(sample), memory_(memory), graph_(graph) {}

  void see(const Node& node,
           std::span<const TensorView> inputs,
           std::span<const TensorView> outputs) {
    if (is_weight_gradient(node)) {
      add(node, node.name, outputs[0], nullptr, 1);
    } else if (node.is(graph::ops::k_all_finite) && !sample_.loss_scale) {
      // Without a loss scale the gradients are measured unscaled.
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        add(node, gradient_name(node, i), inputs[i], nullptr, 1);
      }
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!is_half(outputs[i].dtype) || is_weight_gradient(node)) continue;
      const bool gradient = node.origin.phase == Phase::backward;
      add(node,
          value_name(node, static_cast<int>(i)),
          outputs[i],
          rounded_from(node, inputs),
          gradient ? std::optional(sample_.loss_scale.value_or(1)) : std::nullopt);
    }
  }

 private:
  std::string gradient_name(const Node& check, std::size_t i) const {
    return value_name(graph_.node(check.inputs[i].node), check.inputs[i].port);
  }

  /// `scale` is the factor in the values of a gradient; nothing for other tensors.
  void add(const Node& node,
           const std::string& name,
           const TensorView& tensor,
           const TensorView* source,
           std::optional<double> scale) {
    const HostTensor values(memory_, tensor);
    std::optional<HostTensor> rounded;
    if (source != nullptr) rounded.emplace(memory_, *source);
    TensorNumerics n = measure(values.view(), rounded ? &rounded->view() : nullptr);
    n.name = name;
    n.op = node.op;
    n.layer = node.origin.layer;
    n.phase = graph::name(node.origin.phase);
    // bfloat16 has float32's exponent range, so a gradient in it needs no loss scale.
    const bool seen_whole = source != nullptr || n.nonfinite == 0;
    if (scale && seen_whole && tensor.dtype != DType::bfloat16) {
      n.safe_loss_scale = safe_window(n.exponents, n.absmax, *scale);
    }
    sample_.tensors.push_back(std::move(n));
  }

  NumericsSample& sample_;
  backend::Memory& memory_;
  const graph::Graph& graph_;
};

}  // namespace

bool is_sampled(const config::NumericsSpec& spec, std::int64_t ordinal) {
  switch (spec.mode) {
    case config::NumericsMode::none:
      return false;
    case config::NumericsMode::sample:
      return ordinal % spec.every == 0;
    case config::NumericsMode::full:
      return true;
  }
  return false;
}

NumericsSample collect_numerics(plan::Plan& plan,
                                const backend::Backend& backend,
                                std::int64_t ordinal,
                                std::optional<double> loss_scale) {
  NumericsSample sample{ordinal, loss_scale, {}};
  Collector collector(sample, *backend.memory, plan.graph());
  plan.trace([&](const Node& node,
                 std::span<const TensorView> inputs,
                 std::span<const TensorView> outputs) { collector.see(node, inputs, outputs); });
  return sample;
}

namespace {

/// Counts of the non-finite values of a tensor.
struct NonfiniteCounts {
  std::int64_t infinities = 0;
  std::int64_t nans = 0;
  double finite_absmax = 0;
};

NonfiniteCounts scan(const TensorView& view) {
  NonfiniteCounts result;
  dispatch_floating(view.dtype, [&]<class T>(Type<T>) {
    const T* x = view.as<T>();
    for (std::int64_t i = 0; i < view.elements(); ++i) {
      const double value = static_cast<double>(static_cast<Compute<T>>(x[i]));
      if (std::isnan(value)) {
        ++result.nans;
      } else if (std::isinf(value)) {
        ++result.infinities;
      } else {
        result.finite_absmax = std::max(result.finite_absmax, std::abs(value));
      }
    }
  });
  return result;
}

/// Whether all floating elements of some tensors in the memory of a device are finite.
class DeviceCheck {
 public:
  explicit DeviceCheck(const backend::Backend& backend)
      : backend_(backend), flag_(backend.memory, sizeof(bool)) {}

  bool finite(std::span<const TensorView> tensors) const {
    std::vector<TensorView> checked;
    std::vector<DeviceOp::Port> ports;
    std::vector<DType> dtypes;
    for (const TensorView& tensor : tensors) {
      if (!is_floating(tensor.dtype)) continue;
      checked.push_back(tensor);
      ports.push_back({tensor.dtype, tensor.shape});
      dtypes.push_back(tensor.dtype);
    }
    if (checked.empty()) return true;
    const TensorView flag{DType::boolean, {}, flag_.data()};
    DeviceOp(backend_, "AllFinite", ports, {{"Tin", std::move(dtypes)}}).run(checked, {&flag, 1});
    bool finite = true;
    backend_.memory->download(flag_.data(), &finite, sizeof finite);
    return finite;
  }

 private:
  const backend::Backend& backend_;
  backend::Buffer flag_;
};

}  // namespace

std::optional<FirstNonfinite> attribute(plan::Plan& plan,
                                        const backend::Backend& backend,
                                        plan::State& state,
                                        std::optional<double> scale) {
  std::optional<float> after;
  if (scale && state.contains(precision::k_scale_variable)) {
    after = state.read<float>(precision::k_scale_variable);
    state.write(precision::k_scale_variable, static_cast<float>(*scale));
  }
  std::optional<FirstNonfinite> first;
  std::optional<DeviceCheck> check;
  if (backend.device) check.emplace(backend);
  plan.trace([&](const graph::Node& node,
                 std::span<const TensorView> /*inputs*/,
                 std::span<const TensorView> outputs) {
    // The launches after the first bad one are needed for the loss only.
    if (first || (check && check->finite(outputs))) return;
    for (const TensorView& out : outputs) {
      if (first || !is_floating(out.dtype)) continue;
      const NonfiniteCounts found = scan(HostTensor(*backend.memory, out).view());
      if (found.infinities + found.nans == 0) continue;
      first = FirstNonfinite{node.name,
                             node.op,
                             node.origin.layer,
                             std::string(name(node.origin.phase)),
                             std::string(name(out.dtype)),
                             found.nans > 0 ? "nan" : "inf",
                             found.infinities + found.nans,
                             found.finite_absmax,
                             true};
    }
  });
  if (first) first->loss_finite = std::isfinite(plan.read<float>("loss"));
  if (after) state.write(precision::k_scale_variable, *after);
  return first;
}

std::string describe(const FirstNonfinite& first) {
  return fmt::format("{} first in {} ({}{}{}, {})",
                     first.kind == "nan" ? "NaN" : "Inf",
                     first.tensor,
                     first.op,
                     first.layer.empty() ? "" : " of ",
                     first.layer,
                     first.dtype);
}

}  // namespace halfstep::train
