#include "config/precision_spec.h"

namespace halfstep::config {
namespace {

constexpr std::array k_rewrites{Named{Rewrite::none, "none"}, Named{Rewrite::automatic, "auto"}};
constexpr std::array k_levels{
    Named{RewriteLevel::treat_infer_as_deny, "treat_infer_as_deny"},
    Named{RewriteLevel::tensor_cores_only, "tensor_cores_only"},
    Named{RewriteLevel::unsafe_force_all, "unsafe_force_all"},
};
constexpr std::array k_rules{Named{RewriteRules::tensorflow_2_19, "2.19"},
                             Named{RewriteRules::tensorflow_2_20, "2.20+"}};
constexpr std::array k_targets{Named{DType::float16, "float16"},
                               Named{DType::bfloat16, "bfloat16"}};
constexpr std::array k_float32_math{Named{Float32Math::ieee, "ieee"},
                                    Named{Float32Math::tf32, "tf32"}};
constexpr std::array k_accumulate{Named{DType::float32, "float32"},
                                  Named{DType::float16, "float16"}};
constexpr std::array k_fallbacks{Named{Fallback::error, "error"}, Named{Fallback::warn, "warn"}};
constexpr std::array k_grad_dtypes{Named{GradDtype::compute, "compute"},
                                   Named{GradDtype::float32, "float32"}};
constexpr std::array k_float16_gemms{Named{Float16Gemm::x3, "x3"},
                                     Named{Float16Gemm::exact, "exact"}};
constexpr std::array k_on_nonfinite{Named{OnNonfinite::stop, "stop"},
                                    Named{OnNonfinite::skip, "skip"},
                                    Named{OnNonfinite::apply, "apply"}};
constexpr std::array k_modes{Named{LossScaleMode::automatic, "auto"},
                             Named{LossScaleMode::none, "none"},
                             Named{LossScaleMode::fixed, "fixed"},
                             Named{LossScaleMode::dynamic, "dynamic"}};
constexpr std::array k_on_overflow{Named{OnOverflow::skip, "skip"},
                                   Named{OnOverflow::retry, "retry"}};
constexpr std::array k_compats{Named{Compat::tf1, "tf1"},
                               Named{Compat::tf2, "tf2"},
                               Named{Compat::keras3, "keras3"},
                               Named{Compat::torch, "torch"}};
constexpr std::array k_step_counters{Named{StepCounter::applied, "applied"},
                                     Named{StepCounter::attempted, "attempted"}};
constexpr std::array k_checks{Named{ScaleCheck::unscaled, "unscaled"},
                              Named{ScaleCheck::scaled, "scaled"}};

}  // namespace

double initial_scale(const LossScaleSpec& spec) {
  return spec.initial.value_or(spec.compat == Compat::torch ? 65536 : 32768);
}

void LossScaleSpec::fields(Fields& f) {
  f.choice(
      "mode",
      mode,
      k_modes,
      {.doc =
           "Whether the loss is multiplied by a factor before gradients are taken: none, a fixed "
           "factor, a dynamic one that falls on overflow and grows again, or auto: dynamic where "
           "the policy is mixed_float16 or the rewrite's target is float16, else none."});
  const bool fixed = mode == LossScaleMode::fixed;
  f.field("initial",
          initial,
          {.doc = "The fixed scale, or the first one of a dynamic scale; null: 65536 with `compat: "
                  "torch`, else 32768. `loss_scale: 1024` stands for mode fixed with initial 1024. "
                  "[factor]",
           .required = fixed,
           .above = 0});
  f.field("growth_factor",
          growth_factor,
          {.doc = "The dynamic scale is multiplied by this after `growth_steps` good steps in a "
                  "row. [factor]",
           .above = 1});
  f.field(
      "growth_steps",
      growth_steps,
      {.doc = "Steps with finite gradients in a row before the scale grows. [steps]", .min = 1});
  f.field("backoff_factor",
          backoff_factor,
          {.doc = "The dynamic scale is multiplied by this when a gradient is not finite. [factor]",
           .above = 0,
           .below = 1});
  f.field("min",
          min,
          {.doc = "The scale never falls below this; 0: no floor, null: as `compat` says, else 1. "
                  "[factor]",
           .min = 0});
  f.field("max",
          max,
          {.doc = "The scale never grows beyond this; null: only the overflow of float32 bounds "
                  "it. [factor]",
           .above = 0});
  f.field("hysteresis",
          hysteresis,
          {.doc = "Steps with a gradient that is not finite before the scale falls once. [steps]",
           .min = 1});
  f.choice("on_overflow",
           on_overflow,
           k_on_overflow,
           {.doc = "Handling of a batch whose gradients are not finite: skip omits its "
                   "update, retry repeats it with the lower scale."});
  f.field(
      "max_consecutive_skips",
      max_consecutive_skips,
      {.doc = "Skipped steps in a row that end the run with exit code 4; null: none do. [steps]",
       .min = 1});
  f.choice("compat",
           compat,
           k_compats,
           {.doc = "Floor, growth rule, step counter and check of another system: TensorFlow 1 or "
                   "2, Keras 3, PyTorch. null: halfstep's own, which are those of tf1."});
  f.choice("step_counter",
           step_counter,
           k_step_counters,
           {.doc = "Steps by which learning-rate schedules advance: those applied, or all "
                   "attempted; null: as `compat` says, else applied. [steps]"});
  f.choice("check",
           check,
           k_checks,
           {.doc = "Which gradients the finite check looks at: after or before the division by the "
                   "scale; null: as `compat` says, else unscaled."});
}

void ListEdit::fields(Fields& f) {
  f.field("add", add, {.doc = "Op types, by their TensorFlow names, that are put on this list."});
  f.field("remove",
          remove,
          {.doc = "Op types, by their TensorFlow names, that are taken off this list."});
}

void ListEdits::fields(Fields& f) {
  f.section("allow", allow, {.doc = "Ops that are always converted to 16 bits."});
  f.section("infer",
            infer,
            {.doc = "Ops that are converted between converted ops where no op of the deny list "
                    "feeds them."});
  f.section("deny",
            deny,
            {.doc = "Ops that stay in float32, and keep infer ops behind them in float32."});
  f.section("clear",
            clear,
            {.doc = "Ops that do no arithmetic of their own, such as Reshape, and follow their "
                    "neighbours."});
}

void OverrideSpec::fields(Fields& f) {
  f.field("match",
          match,
          {.doc = "A layer's name, or re: and an RE2 expression that must match the whole name; a "
                  "name beats an expression, two matching expressions are an error.",
           .required = true});
  f.one_of("dtype",
           dtype,
           k_policy_names,
           {.doc = "The policy of the layers that match.", .required = true});
}

void rewrite_rules_field(Fields& f, RewriteRules& rules) {
  f.choice("rewrite_rules",
           rules,
           k_rules,
           {.doc = "The TensorFlow release whose rules hold; 2.20+ converts infer ops right after "
                   "a converted op for float16 too, the unscaling of gradients among them."});
}

void PrecisionSpec::fields(Fields& f) {
  f.one_of("policy",
           policy,
           k_policy_names,
           {.doc = "Compute and variable dtype of all layers: mixed_float16 and mixed_bfloat16 "
                   "compute in 16 bits and keep weights in float32, float16 and bfloat16 keep the "
                   "weights in 16 bits too. Losses and metrics are float32 under each."});
  f.choice("rewrite",
           rewrite,
           k_rewrites,
           {.doc = "auto chooses the dtype of each op by TensorFlow's lists, as its graph rewrite "
                   "does; the policy must then be float32."});
  f.choice("target",
           target,
           k_targets,
           {.doc = "The 16-bit dtype that the rewrite converts to; null: float16 on cuda, bfloat16 "
                   "on the CPU."});
  f.choice(
      "level",
      level,
      k_levels,
      {.doc = "How the rewrite departs from the standard: infer ops count as deny, only the allow "
              "list is kept, or every op that can be is converted. null: the standard."});
  rewrite_rules_field(f, rewrite_rules);
  f.choice("float32_math",
           float32_math,
           k_float32_math,
           {.doc = "How float32 matrices are multiplied on cuda: in full, or with TensorFloat-32's "
                   "10 bits of mantissa."});
  f.choice(
      "accumulate",
      accumulate,
      k_accumulate,
      {.doc = "Accumulation dtype of float16 matmuls. No device accumulates in float16 yet: the "
              "run then ends with exit code 6, or with `fallback: warn` accumulates in float32."});
  f.choice("fallback",
           fallback,
           k_fallbacks,
           {.doc = "Handling of a setting that the device does not support: stop with exit code 6, "
                   "or continue with the nearest supported setting and a warning."});
  f.choice(
      "grad_dtype",
      grad_dtype,
      k_grad_dtypes,
      {.doc = "Dtype to which a weight's gradient is rounded before the optimizer reads it in "
              "float32: the layer's compute dtype, as in Keras, or nothing less than float32."});
  f.choice("float16_gemm",
           float16_gemm,
           k_float16_gemms,
           {.doc = "How AMX multiplies float16: as three bfloat16 products, which omit the "
                   "smallest partial product, or exactly, as four."});
  f.choice("on_nonfinite",
           on_nonfinite,
           k_on_nonfinite,
           {.doc = "What happens where no dynamic scale is active and a gradient is not finite: "
                   "the run stops with exit code 4, the step is skipped, or it is applied. With "
                   "apply nothing looks, so that 16-bit matmuls on the CPU can update weights as "
                   "they compute gradients."});
  f.section("loss_scale",
            loss_scale,
            {.doc = "Scaling of the loss, so that small float16 gradients do not become zero.",
             .shorthand_key = "mode",
             .shorthand_number = true});
  f.section("lists", lists, {.doc = "Changes to the lists of the rewrite."});
  f.sections("overrides", overrides, {.doc = "Policies of single layers, by name or expression."});
}

}  // namespace halfstep::config
