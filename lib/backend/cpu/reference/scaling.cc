// The finite check, the loss-scale update and the learning rate. Formulas at the ops' definitions.

#include "graph/ops/scaling.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

#include "backend/cpu/reference/reference.h"
#include "core/dispatch.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu {
namespace {

// A number is finite unless all exponent bits are set.
bool not_finite(float x) { return (std::bit_cast<std::uint32_t>(x) & 0x7f800000U) == 0x7f800000U; }
bool not_finite(float16 x) { return (x.bits & 0x7c00U) == 0x7c00U; }
bool not_finite(bfloat16 x) { return (x.bits & 0x7f80U) == 0x7f80U; }
bool not_finite(double x) {
  constexpr std::uint64_t k_exponent = 0x7ff0000000000000U;
  return (std::bit_cast<std::uint64_t>(x) & k_exponent) == k_exponent;
}

/// Reads blocks until one holds a non-finite element.
template <class T>
bool all_finite(const T* x, std::int64_t n) {
  constexpr std::int64_t k_chunk = 4096;
  std::atomic<bool> bad{false};
  parallel_for(n, 16 * k_chunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; at += k_chunk) {
      if (bad.load(std::memory_order_relaxed)) return;
      const std::int64_t stop = std::min(at + k_chunk, end);
      int found = 0;
      for (std::int64_t i = at; i < stop; ++i) found |= not_finite(x[i]) ? 1 : 0;
      if (found != 0) bad.store(true, std::memory_order_relaxed);
    }
  });
  return !bad;
}

/// Whether each element is finite after conversion to float32 and multiplication by `factor`.
bool all_finite_unscaled(const TensorView& x, float factor) {
  return dispatch_floating(x.dtype, [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      if (not_finite(static_cast<float>(x.as<T>()[i]) * factor)) return false;
    }
    return true;
  });
}

Prepared prepare_all_finite(const NodeView& node, const Capabilities&) {
  const bool unscaled = node.attrs().get<bool>("unscaled");
  const bool reciprocal = node.attrs().get<bool>("reciprocal");
  return launch([unscaled, reciprocal](const Args& a) {
    float factor = unscaled ? *a.in.back().as<float>() : 1.0F;
    if (reciprocal) factor = 1 / factor;
    const auto values = a.in.first(a.in.size() - (unscaled ? 1 : 0));
    *a.out[0].as<bool>() = std::all_of(values.begin(), values.end(), [&](const TensorView& x) {
      if (!is_floating(x.dtype)) return true;
      if (unscaled) return all_finite_unscaled(x, factor);
      return dispatch_floating(
          x.dtype, [&]<class T>(Type<T>) { return all_finite(x.as<T>(), x.elements()); });
    });
  });
}

Prepared prepare_squared_norms(const NodeView& node, const Capabilities&) {
  return launch([unscaled = node.attrs().get<bool>("unscaled")](const Args& a) {
    const float factor = unscaled ? *a.in.back().as<float>() : 1.0F;
    for (std::size_t n = 0; n < a.out.size(); ++n) {
      double sum = 0;
      dispatch_floating(a.in[n].dtype, [&]<class T>(Type<T>) {
        for (std::int64_t i = 0; i < a.in[n].elements(); ++i) {
          const double x = static_cast<float>(a.in[n].as<T>()[i]) * factor;
          sum += x * x;
        }
      });
      *a.out[n].as<float>() = static_cast<float>(sum);
    }
  });
}

Prepared prepare_update_loss_scale(const NodeView& node, const Capabilities&) {
  return launch([rule = graph::ops::LossScaleRule(node.attrs())](const Args& a) {
    const bool ok = *a.in[3].as<bool>();
    rule.update(ok, *a.in[0].as<float>(), *a.in[1].as<std::int32_t>(), *a.in[2].as<std::int32_t>());
    if (a.in.size() > 4 && (ok || rule.counts_all)) ++*a.in[4].as<std::int64_t>();
  });
}

Prepared prepare_learning_rate(const NodeView& node, const Capabilities&) {
  const auto& boundaries = node.attrs().get<std::vector<std::int64_t>>("boundaries");
  const auto& values = node.attrs().get<std::vector<double>>("values");
  return launch([=, schedule = graph::ops::Schedule(node.attrs())](const Args& a) {
    const std::int64_t step = *a.in[0].as<std::int64_t>();
    const double rate = schedule.rate(step, boundaries, values, values.size());
    *a.out[0].as<float>() = static_cast<float>(rate);
  });
}

}  // namespace

std::vector<Kernel> scaling_kernels() {
  return {
      {.op = "AllFinite", .name = "reference/all_finite", .prepare = prepare_all_finite},
      {.op = "SquaredNorms", .name = "reference/squared_norms", .prepare = prepare_squared_norms},
      {.op = "UpdateLossScale",
       .name = "reference/update_loss_scale",
       .prepare = prepare_update_loss_scale},
      {.op = "LearningRate", .name = "reference/learning_rate", .prepare = prepare_learning_rate},
  };
}

}  // namespace halfstep::backend::cpu
