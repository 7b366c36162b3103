#pragma once
// The draw of the layers that change random elements in training.

#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>

#include "core/philox.h"
#include "nn/layers/layer.h"

namespace halfstep::nn {

/// Layers that change elements at random in training. The draw is a function of (run seed, layer,
/// batch ordinal, sample): the same under every policy and on any number of ranks.
struct RandomElements {
  double rate = 0.5;  ///< probability of a change, where there is one
  std::optional<std::int64_t> seed{};
  int which = 0;  ///< distinguishes the draws of one layer

  void rate_field(config::Fields& f, std::string_view doc) {
    f.field("rate", rate, {.doc = std::string(doc), .required = true, .min = 0, .max = 1});
  }
  void seed_field(config::Fields& f) { nn::seed_field(f, seed); }

  /// The seed of the draws, as an attribute of an op.
  std::int64_t key(const LayerContext& c) const {
    return static_cast<std::int64_t>(seed ? mix(c.seed, static_cast<std::uint64_t>(*seed))
                                          : c.seed);
  }

  /// Numbers in [0, 1), float32. There is a draw for each sample, along the first axis, or one that
  /// all samples of the batch share.
  graph::Value uniform(LayerContext& c, const Shape& shape, bool shared = false) const {
    const std::int64_t first = shared ? 0 : c.first_sample * shape.elements(1, shape.rank());
    return c.b.add(
        "RandomUniformFromOrdinal",
        {c.ordinal},
        {{"shape", shape}, {"seed", key(c)}, {"stream", c.stream(which)}, {"first", first}});
  }

  /// Normal numbers of mean 0 for the elements of x, in its dtype: stddev sqrt(2) erfinv(v) with
  /// v = 2 u - 1 + 2^-24 of the numbers u of uniform(). These are multiples of 2^-24, so v is
  /// exact, symmetric about 0 and neither -1 nor 1: no number is further than 5.42 stddev from 0.
  graph::Value normal(LayerContext& c, graph::Value x, double stddev) const {
    graph::Builder& b = c.b;
    graph::Value standard;
    {
      const Explain explain(b, "float32: normal numbers before their one rounding");
      const auto number = [&](double value) { return b.scalar(DType::float32, value); };
      const graph::Value doubled = b.add("Mul", {uniform(c, b.shape(x)), number(2)});
      const graph::Value centred = b.add("AddV2", {doubled, number(0x1p-24 - 1)});
      standard = b.add("Mul", {b.add("Erfinv", {centred}), number(std::numbers::sqrt2)});
    }
    return b.add("Mul", {b.cast(standard, b.dtype(x)), b.scalar(b.dtype(x), stddev)});
  }

  /// True with probability 1 - rate.
  graph::Value mask(LayerContext& c, const Shape& shape, bool shared = false) const {
    return c.b.add("GreaterEqual", {uniform(c, shape, shared), c.b.scalar(DType::float32, rate)});
  }

  /// Zeroes elements and scales the others by 1 / (1 - rate).
  graph::Value drop(LayerContext& c,
                    graph::Value x,
                    const Shape& mask_shape,
                    bool shared = false) const {
    graph::Builder& b = c.b;
    if (!c.training || rate == 0) return x;
    if (rate == 1) return b.add("ZerosLike", {x});
    const DType dtype = b.dtype(x);
    const graph::Value keep = mask(c, mask_shape, shared);
    const graph::Value scaled = b.add("Mul", {x, b.scalar(dtype, 1 / (1 - rate))});
    return b.add("Mul", {scaled, b.cast(keep, dtype)});
  }
};

}  // namespace halfstep::nn
