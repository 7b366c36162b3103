#pragma once
// The functions that `activation:` may name; the activation layers use the same ones.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/fields.h"
#include "graph/builder.h"

namespace halfstep::nn {

/// An entry of the table: Keras's function with its defaults.
struct ActivationDef {
  std::string_view name;
  std::string_view doc;
  graph::Value (*apply)(graph::Builder& b, graph::Value x);
};

/// All activations, alphabetical.
std::span<const ActivationDef> activation_table();
std::span<const std::string_view> activation_names();

/// Declares an `activation` field; `null` and absence mean linear.
void activation_field(config::Fields& f, std::optional<std::string>& activation);

/// Errors: InternalError for a name that is not in the table.
graph::Value activate(graph::Builder& b,
                      const std::optional<std::string>& activation,
                      graph::Value x);

/// The parameters of Keras's ReLU layer.
struct ReluOptions {
  double negative_slope = 0;
  std::optional<double> max_value;
  double threshold = 0;
};

// The functions themselves, built of the ops that Keras's TensorFlow backend uses.

/// max_value where x >= max_value, x from threshold on, negative_slope (x - threshold) below.
graph::Value relu(graph::Builder& b, graph::Value x, const ReluOptions& options = {});
/// x where x > 0, slope x elsewhere.
graph::Value leaky_relu(graph::Builder& b, graph::Value x, double slope);
/// x where x > 0, alpha (exp(x) - 1) elsewhere.
graph::Value elu(graph::Builder& b, graph::Value x, double alpha);
/// x Phi(x) by the error function, or its approximation by tanh.
/// Source: Hendrycks and Gimpel 2016.
graph::Value gelu(graph::Builder& b, graph::Value x, bool approximate);
/// x sigmoid(x).
graph::Value silu(graph::Builder& b, graph::Value x);
/// "Softmax" or "LogSoftmax" along any axis; a negative one counts from the last.
graph::Value softmax(graph::Builder& b, std::string_view op, graph::Value x, std::int64_t axis);

}  // namespace halfstep::nn
