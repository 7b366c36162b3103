#include <fmt/format.h>

#include "core/philox.h"
#include "nn/layers/table.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// In training, zeroes elements with probability `rate` and scales the others by 1 / (1 - rate).
/// The mask is a function of (run seed, layer, batch ordinal): the same under every policy.
/// Source: Srivastava et al. 2014.
struct Dropout {
  double rate = 0.5;
  std::vector<std::int64_t> noise_shape;
  std::optional<std::int64_t> seed;

  void fields(config::Fields& f) {
    f.field("rate",
            rate,
            {.doc = "Probability with which an element is zeroed. [fraction]",
             .required = true,
             .min = 0,
             .max = 1});
    f.field("noise_shape",
            noise_shape,
            {.doc = "Shape of the mask with the batch first: 1 shares the draw along an axis, -1 "
                    "takes the extent of the input; []: the shape of the input.",
             .min = -1});
    f.field(
        "seed", seed, {.doc = "Mixed with the seed of the run; null: that seed alone.", .min = 0});
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    if (!c.training || rate == 0) return x[0];
    if (rate == 1) return b.add("ZerosLike", {x[0]});
    const DType dtype = b.dtype(x[0]);
    const std::uint64_t key = seed ? mix(c.seed, static_cast<std::uint64_t>(*seed)) : c.seed;
    const Value uniform = b.add("RandomUniformFromOrdinal",
                                {c.ordinal},
                                {{"shape", mask_shape(c, b.shape(x[0]))},
                                 {"seed", static_cast<std::int64_t>(key)},
                                 {"stream", c.stream()}});
    const Value keep = b.add("GreaterEqual", {uniform, b.scalar(DType::float32, rate)});
    const Value scaled = b.add("Mul", {x[0], b.scalar(dtype, 1 / (1 - rate))});
    return b.add("Mul", {scaled, b.cast(keep, dtype)});
  }

 private:
  Shape mask_shape(const LayerContext& c, const Shape& x) const {
    if (noise_shape.empty()) return x;
    Shape shape = x;
    bool fits = noise_shape.size() == x.rank();
    for (std::size_t i = 0; fits && i < x.rank(); ++i) {
      fits = noise_shape[i] == -1 || noise_shape[i] == 1 || noise_shape[i] == x[i];
      if (noise_shape[i] == 1) shape = shape.with(i, 1);
    }
    if (!fits) {
      c.fail(fmt::format("noise_shape [{}] does not fit inputs of shape {}",
                         fmt::join(noise_shape, ", "),
                         to_string(x)));
    }
    return shape;
  }
};

}  // namespace

extern const LayerDef k_dropout = layer_def<Dropout>(
    "dropout",
    "In training zeroes elements with probability `rate` and multiplies the rest by 1 / (1 - "
    "rate); otherwise y = x (Srivastava et al. 2014).",
    {.example = "{rate: 0.5}",
     .numerics =
         "The mask follows from (seed, layer name, batch): it is the same under every policy."});

}  // namespace halfstep::nn
