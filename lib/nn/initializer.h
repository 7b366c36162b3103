#pragma once
// Keras's initializers: a name or a map (`{type: truncated_normal, stddev: 0.05}`).

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/fields.h"
#include "graph/graph.h"

namespace halfstep::nn {

/// An initializer before the shape of its variable is known.
struct InitializerSpec {
  config::Typed typed;
  std::int64_t ones_begin = 0, ones_end = 0;  ///< see graph::Initializer

  explicit InitializerSpec(std::string type) { typed.type = std::move(type); }
};

/// Names: zeros, ones, constant, glorot_uniform, glorot_normal, he_uniform, he_normal,
/// lecun_uniform, lecun_normal, orthogonal, random_uniform, random_normal, truncated_normal,
/// variance_scaling.
std::span<const std::string_view> initializer_names();

/// The distribution of an initializer in a sentence; "" for a name that initializer_names() does
/// not have.
std::string_view initializer_doc(std::string_view name);

/// The numbers of inputs and outputs of one unit of a variable.
struct Fans {
  std::int64_t in = 1;
  std::int64_t out = 1;
};

/// Keras's fans: [in, out] for matrices, receptive field times channels for filters
/// [h, w, in, out], the length twice for vectors.
Fans fans(const Shape& shape);

/// The distribution for a variable of `shape`. Errors: UserError(config) for unknown fields.
graph::Initializer resolve(const InitializerSpec& spec, const Shape& shape);

/// Reports unknown fields of the initializer and values out of range.
void check(const InitializerSpec& spec, Diagnostics& diagnostics);

/// Visits the fields that an initializer of this name may have.
void visit_initializer(std::string_view name, config::Fields& f);

/// Declares the field `seed` of an initializer or of a layer that draws random numbers.
void seed_field(config::Fields& f, std::optional<std::int64_t>& seed);

/// Declares an initializer field of a layer.
void initializer_field(config::Fields& f,
                       std::string_view name,
                       InitializerSpec& spec,
                       std::string_view doc);

}  // namespace halfstep::nn
