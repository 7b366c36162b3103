#include "graph/ops/ops.h"
#include "nn/layers/activations.h"
#include "nn/layers/table.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// y = activation(x W + b).  Shapes: x [batch, ..., in], W [in, units], y [batch, ..., units].
struct Dense {
  static constexpr MaskUse k_masks = MaskUse::passed;
  std::int64_t units = 0;
  std::optional<std::string> activation;
  bool use_bias = true;
  InitializerSpec kernel_initializer{"glorot_uniform"};
  InitializerSpec bias_initializer{"zeros"};
  std::optional<RegularizerSpec> kernel_regularizer;
  std::optional<RegularizerSpec> bias_regularizer;

  void fields(config::Fields& f) {
    f.field(
        "units",
        units,
        {.doc = "Outputs of the layer. [values]", .required = true, .min = 1, .max = k_max_units});
    activation_field(f, activation);
    f.field("use_bias", use_bias, {.doc = "Whether a bias is added."});
    initializer_field(f, "kernel_initializer", kernel_initializer, "Initial values of the kernel.");
    initializer_field(f, "bias_initializer", bias_initializer, "Initial values of the bias.");
    regularizer_field(f, "kernel_regularizer", kernel_regularizer, "Penalty on the kernel.");
    regularizer_field(f, "bias_regularizer", bias_regularizer, "Penalty on the bias.");
  }

  void check(Diagnostics& diagnostics, const Where&) const {
    nn::check(kernel_initializer, diagnostics);
    nn::check(bias_initializer, diagnostics);
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    const Shape in = c.b.shape(x[0]);
    if (in.rank() < 2) c.fail("dense needs samples with at least one axis, got scalars");
    const Value kernel =
        c.weight("kernel", {in.back(), units}, kernel_initializer, kernel_regularizer);
    const Value flat = graph::ops::reshape(c.b, x[0], {in.elements(0, in.rank() - 1), in.back()});
    Value y = c.b.add("MatMul", {flat, kernel});
    y = graph::ops::reshape(c.b, y, in.with(in.rank() - 1, units));
    if (use_bias) {
      y = c.b.add("BiasAdd", {y, c.weight("bias", {units}, bias_initializer, bias_regularizer)});
    }
    return activate(c.b, activation, y);
  }
};

}  // namespace

extern const LayerDefs k_dense_layers{
    layer_def<Dense>("dense",
                     "Fully connected layer, y = activation(x kernel + bias) along the last axis.",
                     {.example = "{units: 3, activation: relu}",
                      .shapes = "x [batch, ..., in], y [batch, ..., units], kernel [in, units]",
                      .numerics = "The matmul accumulates in float32 under every policy."})};

}  // namespace halfstep::nn
