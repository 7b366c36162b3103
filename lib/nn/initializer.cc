#include "nn/initializer.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace halfstep::nn {
namespace {

/// What a name stands for: a plain distribution, or one whose spread follows from the fans.
enum class Rule { constant, uniform, normal, truncated_normal, scaled };
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

/// The standard deviation of a normal distribution cut off at two of its own.
constexpr double k_truncated_stddev = 0.87962566103423978;

/// A row of the table; the fields that a config may change start from these values.
struct Row {
  std::string_view name;
  Rule rule;
  double value = 0;  ///< of constant
  double scale = 1;
  Mode mode = Mode::fan_in;
  Distribution distribution = Distribution::truncated_normal;
  bool open = false;  ///< its parameters may be given
};

constexpr auto k_uniform = Distribution::uniform;
constexpr auto k_truncated = Distribution::truncated_normal;

constexpr std::array k_rows{
    Row{"constant", Rule::constant, 0, 1, Mode::fan_in, k_truncated, true},
    Row{"glorot_normal", Rule::scaled, 0, 1, Mode::fan_avg, k_truncated},
    Row{"glorot_uniform", Rule::scaled, 0, 1, Mode::fan_avg, k_uniform},
    Row{"he_normal", Rule::scaled, 0, 2, Mode::fan_in, k_truncated},
    Row{"he_uniform", Rule::scaled, 0, 2, Mode::fan_in, k_uniform},
    Row{"lecun_normal", Rule::scaled, 0, 1, Mode::fan_in, k_truncated},
    Row{"lecun_uniform", Rule::scaled, 0, 1, Mode::fan_in, k_uniform},
    Row{"ones", Rule::constant, 1},
    Row{"random_normal", Rule::normal, 0, 1, Mode::fan_in, k_truncated, true},
    Row{"random_uniform", Rule::uniform, 0, 1, Mode::fan_in, k_truncated, true},
    Row{"truncated_normal", Rule::truncated_normal, 0, 1, Mode::fan_in, k_truncated, true},
    Row{"variance_scaling", Rule::scaled, 0, 1, Mode::fan_in, k_truncated, true},
    Row{"zeros", Rule::constant},
};

constexpr auto k_names = [] {
  std::array<std::string_view, k_rows.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = k_rows[i].name;
  return names;
}();

/// A row with the fields of the config filled in.
struct Parameters {
  Row row;
  double mean = 0;
  double stddev = 0.05;
  double minval = -0.05;
  double maxval = 0.05;
  std::optional<std::int64_t> seed{};

  void fields(config::Fields& f) {
    if (row.open && row.rule == Rule::constant) {
      f.field("value", row.value, {.doc = "of every element"});
    }
    if (row.open && (row.rule == Rule::normal || row.rule == Rule::truncated_normal)) {
      f.field("mean", mean, {.doc = "mean of the distribution"});
      f.field("stddev", stddev, {.doc = "standard deviation before any truncation", .min = 0});
    }
    if (row.open && row.rule == Rule::uniform) {
      f.field("minval", minval, {.doc = "low end"});
      f.field("maxval", maxval, {.doc = "high end"});
    }
    if (row.open && row.rule == Rule::scaled) {
      f.field("scale", row.scale, {.doc = "factor of the variance", .above = 0.0});
      f.choice("mode", row.mode, k_modes, {.doc = "what the variance is divided by"});
      f.choice("distribution", row.distribution, k_distributions, {.doc = "shape"});
    }
    if (row.rule != Rule::constant) {
      f.field("seed", seed, {.doc = "added to the run's seed", .min = 0});
    }
  }
};

std::optional<Parameters> read_parameters(const InitializerSpec& spec, Diagnostics& diagnostics) {
  for (const Row& row : k_rows) {
    if (row.name != spec.typed.type) continue;
    Parameters p{.row = row};
    config::read(spec.typed.node, p, diagnostics);
    if (p.minval > p.maxval) {
      diagnostics.error(spec.typed.where,
                        fmt::format("minval {} lies above maxval {}", p.minval, p.maxval));
    }
    return p;
  }
  return std::nullopt;  // the field has reported the unknown name already
}

double fan(const Row& row, const Fans& f) {
  if (row.mode == Mode::fan_in) return static_cast<double>(f.in);
  if (row.mode == Mode::fan_out) return static_cast<double>(f.out);
  return static_cast<double>(f.in + f.out) / 2;
}

/// Source: Glorot and Bengio 2010, He et al. 2015, LeCun et al. 1998.
graph::Initializer scaled(const Row& row, const Shape& shape) {
  using Kind = graph::Initializer::Kind;
  const double variance = row.scale / std::max(1.0, fan(row, fans(shape)));
  if (row.distribution == Distribution::uniform) {
    const double limit = std::sqrt(3 * variance);
    return {Kind::uniform, -limit, limit};
  }
  if (row.distribution == Distribution::untruncated_normal) {
    return {Kind::normal, 0, std::sqrt(variance)};
  }
  return {Kind::truncated_normal, 0, std::sqrt(variance) / k_truncated_stddev};
}

}  // namespace

std::span<const std::string_view> initializer_names() { return k_names; }

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
  switch (p->row.rule) {
    case Rule::constant:
      result = {Kind::constant, p->row.value, 0};
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
    case Rule::scaled:
      result = scaled(p->row, shape);
      break;
  }
  result.seed = static_cast<std::uint64_t>(p->seed.value_or(0));
  return result;
}

void check(const InitializerSpec& spec, Diagnostics& diagnostics) {
  read_parameters(spec, diagnostics);
}

void visit_initializer(std::string_view name, config::Fields& f) {
  for (const Row& row : k_rows) {
    if (row.name == name) Parameters{.row = row}.fields(f);
  }
}

void initializer_field(config::Fields& f,
                       std::string_view name,
                       InitializerSpec& spec,
                       std::string_view doc) {
  f.field(name, spec.typed, initializer_names(), {.doc = doc});
}

}  // namespace halfstep::nn
