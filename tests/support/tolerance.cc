#include "support/tolerance.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "core/dispatch.h"

namespace halfstep::testing {
namespace {

/// The element's position: "[2, 0, 5]".
std::string position(const Shape& shape, std::int64_t i) {
  std::string text;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    text = fmt::format("{}{}{}", i % shape[axis], text.empty() ? "" : ", ", text);
    i /= shape[axis];
  }
  return fmt::format("[{}]", text);
}

/// Collects misses in the order in which they are found.
class Report {
 public:
  explicit Report(const TensorView& got) : got_(got) {}

  void add(double got, double want, double allowed) {
    const double error = std::abs(got - want);
    const double share = std::isnan(error) ? std::numeric_limits<double>::infinity()
                                           : error / std::max(allowed, 1e-300);
    result_.worst = std::max(result_.worst, got == want ? 0 : share);
  }
  void miss(std::int64_t i, double got, double want, double allowed) {
    const std::string line =
        fmt::format("  {}: got {:.9g}, want {:.9g}, off by {:.3g}, allowed {:.3g}\n",
                    position(got_.shape, i),
                    got,
                    want,
                    std::abs(got - want),
                    allowed);
    if (result_.misses++ < 5) result_.text += line;
    const double share = std::abs(got - want) / std::max(allowed, 1e-300);
    if (worst_.empty() || !(share <= worst_share_)) {
      worst_share_ = share;
      worst_ = line;
    }
  }
  Comparison take() {
    if (result_.misses > 0) {
      result_.text = fmt::format("{} of {} elements of {} {} missed\n{}  the worst:\n{}",
                                 result_.misses,
                                 got_.elements(),
                                 name(got_.dtype),
                                 to_string(got_.shape),
                                 result_.text,
                                 worst_);
    }
    return std::move(result_);
  }

 private:
  TensorView got_;
  Comparison result_;
  std::string worst_;
  double worst_share_ = 0;
};

Comparison mismatch(const TensorView& got, const TensorView& want) {
  return {.misses = 1,
          .worst = std::numeric_limits<double>::infinity(),
          .text = fmt::format("got {} {}, want {} {}\n",
                              name(got.dtype),
                              to_string(got.shape),
                              name(want.dtype),
                              to_string(want.shape))};
}

double element(const TensorView& view, std::int64_t i) {
  return view.dtype == DType::boolean ? (view.as<bool>()[i] ? 1 : 0) : element_as_double(view, i);
}

}  // namespace

double smallest(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 0x1p-24;
    case DType::bfloat16:
      return 0x1p-133;
    case DType::float32:
      return 0x1p-149;
    default:
      return 0x1p-1074;
  }
}

double tolerance(
    DType stored, DType accumulated, std::int64_t terms, double magnitude, double result) {
  return 0.5 * (epsilon(stored) * std::abs(result) + smallest(stored)) +
         static_cast<double>(terms) * epsilon(accumulated) * magnitude;
}

double tolerance(DType stored, DType accumulated, std::int64_t terms, double magnitude) {
  return tolerance(stored, accumulated, terms, magnitude, magnitude);
}

double rounded(DType dtype, double x) {
  return dispatch_floating(dtype, [&]<class T>(Type<T>) {
    return static_cast<double>(static_cast<Compute<T>>(static_cast<T>(static_cast<Compute<T>>(x))));
  });
}

Comparison compare(const TensorView& got,
                   const TensorView& want,
                   DType accumulated,
                   std::int64_t terms,
                   double magnitude) {
  if (got.shape != want.shape || is_floating(got.dtype) != is_floating(want.dtype)) {
    return mismatch(got, want);
  }
  Report report(got);
  const bool exact = !is_floating(got.dtype);
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double g = element(got, i);
    const double w = element(want, i);
    if (exact) {
      if (g != w) report.miss(i, g, w, 0);
      continue;
    }
    if (std::isnan(g) && std::isnan(w)) continue;
    const double allowed = tolerance(got.dtype, accumulated, terms, magnitude, w);
    // Near the largest number either of it and infinity is right.
    const bool overflow = std::isinf(g) && (g > 0) == (w > 0) &&
                          std::isinf(rounded(got.dtype, w + std::copysign(allowed, w)));
    if (overflow || g == w) continue;
    report.add(g, w, allowed);
    if (!(std::abs(g - w) <= allowed)) report.miss(i, g, w, allowed);
  }
  return report.take();
}

Comparison compare_bits(const TensorView& got, const TensorView& want) {
  if (got.shape != want.shape || got.dtype != want.dtype) return mismatch(got, want);
  Report report(got);
  const std::size_t size = size_bytes(got.dtype);
  const auto at = [&](const TensorView& view, std::int64_t i) {
    return static_cast<const std::byte*>(view.data) + static_cast<std::size_t>(i) * size;
  };
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    if (std::memcmp(at(got, i), at(want, i), size) != 0) {
      report.miss(i, element(got, i), element(want, i), 0);
    }
  }
  return report.take();
}

}  // namespace halfstep::testing
