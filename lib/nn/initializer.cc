#include "nn/initializer.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace halfstep::nn {
namespace {

/// The rule of an initializer: a plain distribution, or one whose variance is scaled by the fans.
enum class Rule { constant, uniform, normal, truncated_normal, orthogonal, scaled };
enum class Mode { fan_in, fan_out, fan_avg };
enum class Distribution { uniform, truncated_normal, untruncated_normal };

constexpr std::array k_modes{
    config::Named{Mode::fan_in, "fan_in"},
    config::Named{Mode::fan_out, "fan_out"},
    config::Named{Mode::fan_avg, "fan_avg"},
};
constexpr std::array k_distributions{
    config::Named{Distribution::uniform, "uniform"},
    config::Named{Distribution::truncated_normal, "truncated_normal"},
    config::Named{Distribution::untruncated_normal, "untruncated_normal"},
};

/// The standard deviation of a standard normal distribution truncated at two standard deviations.
constexpr double k_truncated_stddev = 0.87962566103423978;

/// An entry of the table; the fields that a config may set have these defaults.
struct Def {
  std::string_view name;
  Rule rule = Rule::scaled;
  double value = 0;  ///< of constant
  double scale = 1;
  Mode mode = Mode::fan_in;
  Distribution distribution = Distribution::truncated_normal;
  bool open = false;  ///< a config may give its parameters
  std::string_view doc{};
};

constexpr std::array k_defs{
    Def{.name = "constant", .rule = Rule::constant, .open = true, .doc = "One value everywhere."},
    Def{.name = "glorot_normal",
        .mode = Mode::fan_avg,
        .doc = "Truncated normal distribution with variance 2 / (fan_in + fan_out) (Glorot and "
               "Bengio 2010)."},
    Def{.name = "glorot_uniform",
        .mode = Mode::fan_avg,
        .distribution = Distribution::uniform,
        .doc = "Uniform distribution in [-r, r] with r = sqrt(6 / (fan_in + fan_out)) (Glorot and "
               "Bengio 2010)."},
    Def{.name = "he_normal",
        .scale = 2,
        .doc = "Truncated normal distribution with variance 2 / fan_in (He et al. 2015), for "
               "layers behind a relu."},
    Def{.name = "he_uniform",
        .scale = 2,
        .distribution = Distribution::uniform,
        .doc = "Uniform distribution in [-r, r] with r = sqrt(6 / fan_in) (He et al. 2015), for "
               "layers behind a relu."},
    Def{.name = "lecun_normal",
        .doc = "Truncated normal distribution with variance 1 / fan_in (LeCun et al. 1998)."},
    Def{.name = "lecun_uniform",
        .distribution = Distribution::uniform,
        .doc = "Uniform distribution in [-r, r] with r = sqrt(3 / fan_in) (LeCun et al. 1998)."},
    Def{.name = "ones", .rule = Rule::constant, .value = 1, .doc = "One everywhere."},
    Def{.name = "orthogonal",
        .rule = Rule::orthogonal,
        .open = true,
        .doc = "Random matrix with orthonormal rows or columns, whichever are fewer, times gain "
               "(Saxe et al. 2014); axes before the last one are taken as rows."},
    Def{.name = "random_normal", .rule = Rule::normal, .open = true, .doc = "Normal distribution."},
    Def{.name = "random_uniform",
        .rule = Rule::uniform,
        .open = true,
        .doc = "Uniform distribution."},
    Def{.name = "truncated_normal",
        .rule = Rule::truncated_normal,
        .open = true,
        .doc = "Normal distribution without values beyond two standard deviations, which are drawn "
               "again."},
    Def{.name = "variance_scaling",
        .open = true,
        .doc = "Distribution of mean 0 whose variance is scale over fan_in, fan_out or their "
               "average: the general form of glorot, he and lecun."},
    Def{.name = "zeros", .rule = Rule::constant, .doc = "Zero everywhere."},
};

constexpr auto k_names = [] {
  std::array<std::string_view, k_defs.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = k_defs[i].name;
  return names;
}();

/// An entry with the fields of the config applied.
struct Parameters {
  Def def;
  double mean = 0;
  double stddev = 0.05;
  double minval = -0.05;
  double maxval = 0.05;
  double gain = 1;
  std::optional<std::int64_t> seed{};

  void fields(config::Fields& f) {
    if (def.open && def.rule == Rule::constant) {
      f.field("value", def.value, {.doc = "Value of every element."});
    }
    if (def.open && (def.rule == Rule::normal || def.rule == Rule::truncated_normal)) {
      f.field("mean", mean, {.doc = "Mean of the distribution."});
      f.field(
          "stddev",
          stddev,
          {.doc = "Standard deviation, before values beyond two of it are drawn again.", .min = 0});
    }
    if (def.open && def.rule == Rule::uniform) {
      f.field("minval", minval, {.doc = "Least value."});
      f.field("maxval", maxval, {.doc = "Greatest value."});
    }
    if (def.open && def.rule == Rule::orthogonal) {
      f.field("gain", gain, {.doc = "Factor of the matrix. [factor]"});
    }
    if (def.open && def.rule == Rule::scaled) {
      f.field("scale", def.scale, {.doc = "Factor of the variance. [factor]", .above = 0.0});
      f.choice(
          "mode",
          def.mode,
          k_modes,
          {.doc =
               "Divisor of the variance: the inputs of one unit, the outputs, or their average."});
      f.choice("distribution",
               def.distribution,
               k_distributions,
               {.doc = "Shape of the distribution; the truncated normal one keeps its variance."});
    }
    if (def.rule != Rule::constant) seed_field(f, seed);
  }
};

std::optional<Parameters> read_parameters(const InitializerSpec& spec, Diagnostics& diagnostics) {
  for (const Def& def : k_defs) {
    if (def.name != spec.typed.type) continue;
    Parameters p{.def = def};
    config::read(spec.typed.node, p, diagnostics);
    if (p.minval > p.maxval) {
      diagnostics.error(spec.typed.where,
                        fmt::format("minval {} is above maxval {}", p.minval, p.maxval));
    }
    return p;
  }
  return std::nullopt;  // the field has reported the unknown name already
}

double fan(const Def& def, const Fans& f) {
  if (def.mode == Mode::fan_in) return static_cast<double>(f.in);
  if (def.mode == Mode::fan_out) return static_cast<double>(f.out);
  return static_cast<double>(f.in + f.out) / 2;
}

/// Source: Glorot and Bengio 2010, He et al. 2015, LeCun et al. 1998.
graph::Initializer scaled(const Def& def, const Shape& shape) {
  using Kind = graph::Initializer::Kind;
  const double variance = def.scale / std::max(1.0, fan(def, fans(shape)));
  if (def.distribution == Distribution::uniform) {
    const double limit = std::sqrt(3 * variance);
    return {Kind::uniform, -limit, limit};
  }
  if (def.distribution == Distribution::untruncated_normal) {
    return {Kind::normal, 0, std::sqrt(variance)};
  }
  return {Kind::truncated_normal, 0, std::sqrt(variance) / k_truncated_stddev};
}

}  // namespace

std::span<const std::string_view> initializer_names() { return k_names; }

std::string_view initializer_doc(std::string_view name) {
  for (const Def& def : k_defs) {
    if (def.name == name) return def.doc;
  }
  return {};
}

Fans fans(const Shape& shape) {
  if (shape.rank() == 0) return {1, 1};
  if (shape.rank() == 1) return {shape[0], shape[0]};
  const std::int64_t field = shape.elements(0, shape.rank() - 2);
  return {field * shape[shape.rank() - 2], field * shape.back()};
}

graph::Initializer resolve(const InitializerSpec& spec, const Shape& shape) {
  using Kind = graph::Initializer::Kind;
  Diagnostics diagnostics;
  const std::optional<Parameters> p = read_parameters(spec, diagnostics);
  diagnostics.throw_if_any();
  require(p.has_value(), "unknown initializer '{}'", spec.typed.type);
  graph::Initializer result;
  switch (p->def.rule) {
    case Rule::constant:
      result = {Kind::constant, p->def.value, 0};
      break;
    case Rule::uniform:
      result = {Kind::uniform, p->minval, p->maxval};
      break;
    case Rule::normal:
      result = {Kind::normal, p->mean, p->stddev};
      break;
    case Rule::truncated_normal:
      result = {Kind::truncated_normal, p->mean, p->stddev};
      break;
    case Rule::orthogonal:
      result = {Kind::orthogonal, p->gain, 0};
      break;
    case Rule::scaled:
      result = scaled(p->def, shape);
      break;
  }
  result.seed = static_cast<std::uint64_t>(p->seed.value_or(0));
  result.ones_begin = spec.ones_begin;
  result.ones_end = spec.ones_end;
  return result;
}

void check(const InitializerSpec& spec, Diagnostics& diagnostics) {
  read_parameters(spec, diagnostics);
}

void visit_initializer(std::string_view name, config::Fields& f) {
  for (const Def& def : k_defs) {
    if (def.name == name) Parameters{.def = def}.fields(f);
  }
}

void seed_field(config::Fields& f, std::optional<std::int64_t>& seed) {
  f.field(
      "seed", seed, {.doc = "Mixed with the seed of the run; null: that seed alone.", .min = 0});
}

void initializer_field(config::Fields& f,
                       std::string_view name,
                       InitializerSpec& spec,
                       std::string_view doc) {
  f.field(name, spec.typed, initializer_names(), {.doc = doc});
}

}  // namespace halfstep::nn
