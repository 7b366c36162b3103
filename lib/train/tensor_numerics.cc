#include "train/tensor_numerics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/dispatch.h"

namespace halfstep::train {
namespace {

constexpr int k_lowest = -1080;  // below the smallest double
constexpr int k_highest = 1030;
/// At a safe scale at most one in this many non-zero values becomes zero.
constexpr std::int64_t k_share_lost = 1000;

class Histogram {
 public:
  void add(double magnitude) {
    ++bins_[static_cast<std::size_t>(std::ilogb(magnitude) - k_lowest)];
  }

  ExponentCounts trimmed() const {
    const auto not_zero = [](std::int64_t n) { return n != 0; };
    const auto first = std::find_if(bins_.begin(), bins_.end(), not_zero);
    const auto last = std::find_if(bins_.rbegin(), bins_.rend(), not_zero).base();
    if (first == bins_.end()) return {};
    return {k_lowest + static_cast<int>(first - bins_.begin()), {first, last}};
  }

 private:
  std::array<std::int64_t, k_highest - k_lowest> bins_{};
};

double smallest_normal(DType dtype) { return dtype == DType::float16 ? 0x1p-14 : 0x1p-126; }

template <class F>
void each(const TensorView& view, F&& f) {
  dispatch_floating(view.dtype, [&]<class T>(Type<T>) {
    const T* x = view.as<T>();
    for (std::int64_t i = 0; i < view.elements(); ++i) {
      f(i, static_cast<double>(static_cast<Compute<T>>(x[i])));
    }
  });
}

}  // namespace

void ExponentCounts::add(const ExponentCounts& other) {
  if (other.counts.empty()) return;
  if (counts.empty()) {
    *this = other;
    return;
  }
  const auto end = [](const ExponentCounts& c) { return c.lo + static_cast<int>(c.counts.size()); };
  const int from = std::min(lo, other.lo), to = std::max(end(*this), end(other));
  std::vector<std::int64_t> sum(static_cast<std::size_t>(to - from), 0);
  for (const ExponentCounts* part : {static_cast<const ExponentCounts*>(this), &other}) {
    for (std::size_t i = 0; i < part->counts.size(); ++i) {
      sum[i + static_cast<std::size_t>(part->lo - from)] += part->counts[i];
    }
  }
  lo = from;
  counts = std::move(sum);
}

std::int64_t ExponentCounts::total() const {
  std::int64_t sum = 0;
  for (std::int64_t n : counts) sum += n;
  return sum;
}

std::int64_t ExponentCounts::below(int exponent) const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < counts.size() && lo + static_cast<int>(i) < exponent; ++i) {
    sum += counts[i];
  }
  return sum;
}

TensorNumerics measure(const TensorView& tensor, const TensorView* source) {
  TensorNumerics n;
  n.dtype = name(tensor.dtype);
  n.elements = tensor.elements();
  if (n.elements == 0) return n;
  const double normal = smallest_normal(tensor.dtype);
  std::int64_t zeros = 0, subnormals = 0, lost = 0;
  Histogram histogram;
  each(tensor, [&](std::int64_t i, double x) {
    const double magnitude = std::abs(x);
    if (!std::isfinite(x)) {
      ++n.nonfinite;
      return;
    }
    if (source == nullptr) n.absmax = std::max(n.absmax, magnitude);
    if (x == 0) {
      ++zeros;
      if (source != nullptr && element_as_double(*source, i) != 0) ++lost;
    } else if (magnitude < normal) {
      ++subnormals;
    }
    if (x != 0 && source == nullptr) histogram.add(magnitude);
  });
  if (source != nullptr) {
    each(*source, [&](std::int64_t, double x) {
      if (x == 0 || !std::isfinite(x)) return;
      histogram.add(std::abs(x));
      n.absmax = std::max(n.absmax, std::abs(x));
    });
  }
  const auto share = [&](std::int64_t count) {
    return static_cast<double>(count) / static_cast<double>(n.elements);
  };
  n.zero_frac = share(zeros);
  n.subnormal_frac = share(subnormals);
  if (source != nullptr) n.zero_underflow_frac = share(lost);
  if (n.absmax > 0) n.headroom_bits = std::log2(max_finite(tensor.dtype) / n.absmax);
  n.exponents = histogram.trimmed();
  return n;
}

std::optional<ScaleWindow> safe_window(const ExponentCounts& exponents,
                                       double absmax,
                                       double scale) {
  const std::int64_t total = exponents.total();
  if (total == 0 || absmax == 0 || scale <= 0) return std::nullopt;
  // The smallest float16 above zero. A value of more than half of it still rounds up to it, but the
  // histogram has whole powers of two only.
  constexpr int k_smallest = -24;
  int cut = exponents.lo;
  while (exponents.below(cut + 1) * k_share_lost <= total) ++cut;
  ScaleWindow window;
  window.low = std::exp2(std::ceil(std::log2(std::ldexp(scale, k_smallest - cut))));
  window.high = std::exp2(std::floor(std::log2(max_finite(DType::float16) / absmax * scale)));
  return window;
}

void merge(TensorNumerics& sum, const TensorNumerics& other) {
  const auto steps = static_cast<double>(sum.steps), more = static_cast<double>(other.steps);
  const auto mean = [&](double a, double b) { return (a * steps + b * more) / (steps + more); };
  sum.absmax = std::max(sum.absmax, other.absmax);
  if (other.headroom_bits) {
    sum.headroom_bits =
        std::min(sum.headroom_bits.value_or(*other.headroom_bits), *other.headroom_bits);
  }
  sum.zero_frac = mean(sum.zero_frac, other.zero_frac);
  if (sum.zero_underflow_frac && other.zero_underflow_frac) {
    sum.zero_underflow_frac = mean(*sum.zero_underflow_frac, *other.zero_underflow_frac);
  }
  sum.subnormal_frac = mean(sum.subnormal_frac, other.subnormal_frac);
  sum.nonfinite += other.nonfinite;
  sum.exponents.add(other.exponents);
  if (other.safe_loss_scale) {
    const ScaleWindow a = sum.safe_loss_scale.value_or(*other.safe_loss_scale);
    sum.safe_loss_scale = ScaleWindow{std::max(a.low, other.safe_loss_scale->low),
                                      std::min(a.high, other.safe_loss_scale->high)};
  }
  sum.steps += other.steps;
}

void NumericsSummary::add(const NumericsSample& sample) {
  sampled_steps.push_back(sample.ordinal);
  for (const TensorNumerics& tensor : sample.tensors) {
    const auto [entry, added] = index_.try_emplace(tensor.name, tensors.size());
    if (added) {
      tensors.push_back(tensor);
    } else {
      merge(tensors[entry->second], tensor);
    }
  }
}

void ExponentCounts::fields(Fields& f) {
  f("lo", lo, "floor(log2 |x|) of the first count");
  f("counts", counts, "values by exponent, without zeros");
}

void TensorNumerics::fields(Fields& f) {
  constexpr auto k_fraction = [](std::string_view doc) {
    return FieldOptions{.doc = doc, .min = 0, .max = 1};
  };
  f("name", name, "of the node that made it");
  f("op", op, "of that node");
  f("layer", layer, "empty outside of layers");
  f("phase", phase, "of the step");
  f("dtype", dtype, "of its values");
  f("elements", elements, "in one step");
  f("absmax", absmax, "largest finite magnitude, of the float32 it was rounded from where seen");
  f("headroom_bits",
    headroom_bits,
    "log2(largest number of the dtype / absmax); minimum over all steps");
  f.fraction("zero_frac", zero_frac, "values that are zero");
  f("zero_underflow_frac",
    zero_underflow_frac,
    k_fraction("values that became zero by rounding; null where the float32 they were rounded from "
               "is not seen"));
  f.fraction("subnormal_frac", subnormal_frac, "nonzero values below the smallest normal number");
  f("nonfinite", nonfinite, "values that are NaN or infinite, over all steps");
  f("safe_loss_scale",
    safe_loss_scale,
    "powers of two at which a float16 gradient neither overflows nor loses more than one in a "
    "thousand values; low above high: none");
  f("exponent_counts", exponents, "finite values by binary exponent, over all steps");
  f("steps", steps, {.doc = "sampled, that these numbers are of", .min = 1});
}

}  // namespace halfstep::train
