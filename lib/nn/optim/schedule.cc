#include "nn/optim/schedule.h"

#include <array>

#include "config/reader.h"
#include "core/error.h"
#include "nn/missing_arguments.h"

namespace halfstep::nn {
namespace {

using config::FieldOptions;
using config::Fields;
using graph::Attrs;

/// A linear warm-up from `warmup_start` to the first rate of a schedule.
struct WarmUp {
  std::int64_t warmup_steps = 0;
  double warmup_start = 0;

  void warmup_fields(Fields& f) {
    f.field(
        "warmup_steps",
        warmup_steps,
        {.doc =
             "Steps in which the rate rises linearly before the schedule begins; 0: none. [steps]",
         .min = 0});
    f.field("warmup_start", warmup_start, {.doc = "Rate at step 0 of the warm-up.", .min = 0});
  }
  Attrs attrs_of(std::string kind, double first) const {
    return {{"kind", std::move(kind)},
            {"base", first},
            {"warmup_steps", warmup_steps},
            {"warmup_start", warmup_start},
            {"warmup_target", first}};
  }
};

/// The fields that all schedules but one share: Keras's initial_learning_rate and a warm-up.
struct Common : WarmUp {
  double initial_learning_rate = 0.001;

  void common_fields(Fields& f) {
    f.field("initial_learning_rate",
            initial_learning_rate,
            {.doc = "Rate at the end of the warm-up.", .required = true, .min = 0});
    warmup_fields(f);
  }
  Attrs common_attrs(std::string kind) const {
    return attrs_of(std::move(kind), initial_learning_rate);
  }
};

struct Constant : Common {
  void fields(Fields& f) { common_fields(f); }
  Attrs attrs(Diagnostics&, const Where&) const { return common_attrs("constant"); }
};

struct PiecewiseConstant : WarmUp {
  std::vector<std::int64_t> boundaries;
  std::vector<double> values;

  void fields(Fields& f) {
    f.field("boundaries",
            boundaries,
            {.doc = "The last step of each value but the last one, increasing. [steps]",
             .required = true,
             .min = 0});
    f.field("values",
            values,
            {.doc = "Rates, one more than there are boundaries.", .required = true, .min = 0});
    warmup_fields(f);
  }
  Attrs attrs(Diagnostics& diagnostics, const Where& where) const {
    if (values.size() != boundaries.size() + 1) {
      diagnostics.error(where,
                        fmt::format("{} boundaries need {} values, got {}",
                                    boundaries.size(),
                                    boundaries.size() + 1,
                                    values.size()));
    }
    for (std::size_t i = 1; i < boundaries.size(); ++i) {
      if (boundaries[i] <= boundaries[i - 1]) diagnostics.error(where, "boundaries must increase");
    }
    Attrs attrs = attrs_of("piecewise_constant", values.empty() ? 0 : values.front());
    attrs.set("boundaries", boundaries);
    attrs.set("values", values);
    return attrs;
  }
};

struct ExponentialDecay : Common {
  std::int64_t decay_steps = 1;
  double decay_rate = 0.96;
  bool staircase = false;

  void fields(Fields& f) {
    common_fields(f);
    f.field("decay_steps",
            decay_steps,
            {.doc = "Steps in which the schedule decays by decay_rate once. [steps]",
             .required = true,
             .min = 1});
    f.field("decay_rate",
            decay_rate,
            {.doc = "The decay_rate of the formula. [factor]", .required = true, .above = 0});
    f.field(
        "staircase",
        staircase,
        {.doc = "Whether step / decay_steps is rounded down, so that the rate falls in steps."});
  }
  Attrs attrs(Diagnostics&, const Where&) const {
    Attrs attrs = common_attrs("exponential_decay");
    attrs.set("decay_steps", decay_steps);
    attrs.set("decay_rate", decay_rate);
    attrs.set("staircase", staircase);
    return attrs;
  }
};

struct InverseTimeDecay : ExponentialDecay {
  Attrs attrs(Diagnostics& d, const Where& where) const {
    Attrs attrs = ExponentialDecay::attrs(d, where);
    attrs.set("kind", std::string("inverse_time_decay"));
    return attrs;
  }
};

struct CosineDecay : Common {
  std::int64_t decay_steps = 1;
  double alpha = 0;

  void fields(Fields& f) {
    common_fields(f);
    f.field("decay_steps",
            decay_steps,
            {.doc = "Steps from the first rate to the last. [steps]", .required = true, .min = 1});
    f.field("alpha",
            alpha,
            {.doc = "Final rate over initial_learning_rate. [fraction]", .min = 0, .max = 1});
  }
  Attrs attrs(Diagnostics&, const Where&) const {
    Attrs attrs = common_attrs("cosine_decay");
    attrs.set("decay_steps", decay_steps);
    attrs.set("alpha", alpha);
    return attrs;
  }
};

struct CosineDecayRestarts : Common {
  std::int64_t first_decay_steps = 1;
  double t_mul = 2;
  double m_mul = 1;
  double alpha = 0;

  void fields(Fields& f) {
    common_fields(f);
    f.field("first_decay_steps",
            first_decay_steps,
            {.doc = "Steps of the first period. [steps]", .required = true, .min = 1});
    f.field("t_mul",
            t_mul,
            {.doc = "Steps of a period over those of the one before. [factor]", .min = 1});
    f.field("m_mul",
            m_mul,
            {.doc = "First rate of a period over that of the one before. [factor]", .min = 0});
    f.field(
        "alpha",
        alpha,
        {.doc = "Rate at the end of a period over its first rate. [fraction]", .min = 0, .max = 1});
  }
  Attrs attrs(Diagnostics&, const Where&) const {
    Attrs attrs = common_attrs("cosine_decay_restarts");
    attrs.set("decay_steps", first_decay_steps);
    attrs.set("t_mul", t_mul);
    attrs.set("m_mul", m_mul);
    attrs.set("alpha", alpha);
    return attrs;
  }
};

struct PolynomialDecay : Common {
  std::int64_t decay_steps = 1;
  double end_learning_rate = 0.0001;
  double power = 1;
  bool cycle = false;

  void fields(Fields& f) {
    common_fields(f);
    f.field("decay_steps",
            decay_steps,
            {.doc = "Steps from the first rate to the last. [steps]", .required = true, .min = 1});
    f.field("end_learning_rate", end_learning_rate, {.doc = "Rate after the decay.", .min = 0});
    f.field("power", power, {.doc = "Exponent; 1 is linear.", .above = 0});
    f.field("cycle",
            cycle,
            {.doc = "Whether decay_steps is stretched to its next multiple once it has passed, so "
                    "that the rate rises again."});
  }
  Attrs attrs(Diagnostics&, const Where&) const {
    Attrs attrs = common_attrs("polynomial_decay");
    attrs.set("decay_steps", decay_steps);
    attrs.set("end", end_learning_rate);
    attrs.set("power", power);
    attrs.set("cycle", cycle);
    return attrs;
  }
};

constexpr MissingArgument k_not_in_schedules[] = {
    {"warmup_target",
     "the rate at the end of the warm-up is initial_learning_rate, that at its start warmup_start"},
};

template <class S>
constexpr ScheduleDef schedule_def(std::string_view type,
                                   std::string_view doc,
                                   std::string_view example) {
  ScheduleDef def{type, doc, example, nullptr, nullptr};
  def.fields = [](Fields& f) { S().fields(f); };
  def.read = [](const config::Node& node, Diagnostics& diagnostics) {
    auto skipped = refuse_missing(
        k_not_in_schedules, node, [](Fields& f) { S().fields(f); }, diagnostics);
    skipped.emplace_back("type");
    S schedule;
    config::read(node, schedule, diagnostics, skipped);
    return schedule.attrs(diagnostics, node.where);
  };
  return def;
}

constexpr std::array k_schedules{
    schedule_def<Constant>("constant",
                           "One rate: initial_learning_rate, after the warm-up.",
                           "{type: constant, initial_learning_rate: 1e-3, warmup_steps: 100}"),
    schedule_def<CosineDecay>(
        "cosine_decay",
        "Half a cosine: initial_learning_rate ((1 - alpha) (1 + cos(pi step / decay_steps)) / 2 + "
        "alpha), and alpha initial_learning_rate from decay_steps on.",
        "{type: cosine_decay, initial_learning_rate: 1e-3, decay_steps: 900, warmup_steps: 100}"),
    schedule_def<CosineDecayRestarts>(
        "cosine_decay_restarts",
        "Half a cosine in each of several periods: in period i = 0, 1, ..., of first_decay_steps "
        "t_mul^i steps, of which the part p is done, initial_learning_rate ((1 - alpha) m_mul^i "
        "(1 + cos(pi p)) / 2 + alpha) (Loshchilov and Hutter 2017).",
        "{type: cosine_decay_restarts, initial_learning_rate: 1e-3, first_decay_steps: 100}"),
    schedule_def<ExponentialDecay>("exponential_decay",
                                   "initial_learning_rate decay_rate^(step / decay_steps).",
                                   "{type: exponential_decay, initial_learning_rate: 1e-3, "
                                   "decay_steps: 100, decay_rate: 0.96}"),
    schedule_def<InverseTimeDecay>("inverse_time_decay",
                                   "initial_learning_rate / (1 + decay_rate step / decay_steps).",
                                   "{type: inverse_time_decay, initial_learning_rate: 1e-3, "
                                   "decay_steps: 100, decay_rate: 0.5}"),
    schedule_def<PiecewiseConstant>(
        "piecewise_constant",
        "values[i] up to and with step boundaries[i], the last value afterwards.",
        "{type: piecewise_constant, boundaries: [500, 800], values: [1e-3, 5e-4, 1e-4]}"),
    schedule_def<PolynomialDecay>(
        "polynomial_decay",
        "(initial_learning_rate - end_learning_rate) (1 - step / decay_steps)^power + "
        "end_learning_rate, and end_learning_rate from decay_steps on.",
        "{type: polynomial_decay, initial_learning_rate: 1e-3, decay_steps: 1000, "
        "end_learning_rate: 1e-5}"),
};

/// A bare number, read through a field for the field's checks and messages.
struct BareRate {
  double learning_rate = 0;

  void fields(Fields& f) {
    f.field("learning_rate", learning_rate, {.doc = "Learning rate.", .min = 0});
  }
};

}  // namespace

std::span<const ScheduleDef> schedule_table() { return k_schedules; }

Attrs read_schedule(const config::Node& node, double fallback, Diagnostics& diagnostics) {
  using Kind = config::Node::Kind;
  if (node.kind == Kind::null) return {{"kind", std::string("constant")}, {"base", fallback}};
  if (node.kind != Kind::map) {
    config::Node map;
    map.kind = Kind::map;
    map.where = node.where;
    map.entries.push_back({"learning_rate", node.where, node});
    BareRate rate;
    config::read(map, rate, diagnostics);
    return {{"kind", std::string("constant")}, {"base", rate.learning_rate}};
  }
  const config::Node* type = node.find("type");
  std::vector<std::string> known;
  for (const ScheduleDef& def : k_schedules) {
    if (type != nullptr && type->text == def.type) return def.read(node, diagnostics);
    known.emplace_back(def.type);
  }
  diagnostics.error(type != nullptr ? type->where : node.where,
                    type != nullptr ? fmt::format("unknown schedule '{}'", type->text)
                                    : "a schedule needs a type",
                    choices(type != nullptr ? type->text : "", known));
  return {};
}

}  // namespace halfstep::nn
