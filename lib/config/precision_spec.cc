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

void LossScaleSpec::fields(Fields& f) {
  f.choice("mode", mode, k_modes, {.doc = "auto: dynamic for float16, else none"});
  const bool fixed = mode == LossScaleMode::fixed;
  f.field(
      "initial", initial, {.doc = "the scale, or the first one", .required = fixed, .above = 0});
  f.field("growth_factor",
          growth_factor,
          {.doc = "applied after `growth_steps` good steps in a row", .above = 1});
  f.field("growth_steps", growth_steps, {.doc = "good steps before the scale grows", .min = 1});
  f.field("backoff_factor",
          backoff_factor,
          {.doc = "applied when a gradient is not finite", .above = 0, .below = 1});
  f.field("min", min, {.doc = "the scale never falls below; 0: no floor", .min = 0});
  f.field("max", max, {.doc = "the scale never grows beyond", .above = 0});
  f.field("hysteresis", hysteresis, {.doc = "bad steps before the scale falls", .min = 1});
  f.choice("on_overflow", on_overflow, k_on_overflow, {.doc = "retry: the same batch once more"});
  f.field("max_consecutive_skips",
          max_consecutive_skips,
          {.doc = "bad steps in a row that end the run; null: no end", .min = 1});
  f.choice("compat", compat, k_compats, {.doc = "the rules of another system, in one word"});
  f.choice("step_counter", step_counter, k_step_counters, {.doc = "which steps schedules count"});
  f.choice("check", check, k_checks, {.doc = "which gradients must be finite"});
}

void ListEdit::fields(Fields& f) {
  f.field("add", add, {.doc = "op types to put on this list"});
  f.field("remove", remove, {.doc = "op types to take off this list"});
}

void ListEdits::fields(Fields& f) {
  f.section("allow", allow, {.doc = "always in 16 bits"});
  f.section("infer", infer, {.doc = "in 16 bits between ops of the allow list"});
  f.section("deny", deny, {.doc = "never in 16 bits"});
  f.section("clear", clear, {.doc = "as their neighbours"});
}

void OverrideSpec::fields(Fields& f) {
  f.field("match",
          match,
          {.doc = "a layer's name, or re:<RE2 regex> for the whole name", .required = true});
  f.one_of("dtype", dtype, k_policy_names, {.doc = "the policy of the layer", .required = true});
}

void rewrite_rules_field(Fields& f, RewriteRules& rules) {
  f.choice(
      "rewrite_rules",
      rules,
      k_rules,
      {.doc = "the TensorFlow release whose rules hold; 2.20+ converts infer ops right after a "
              "converted op for float16 too, the unscaling of gradients among them"});
}

void PrecisionSpec::fields(Fields& f) {
  f.one_of("policy", policy, k_policy_names, {.doc = "compute and variable dtype of all layers"});
  f.choice("rewrite", rewrite, k_rewrites, {.doc = "auto: choose the dtype op by op, by lists"});
  f.choice("target", target, k_targets, {.doc = "of the rewrite; null: by device"});
  f.choice("level", level, k_levels, {.doc = "how bold the rewrite is"});
  rewrite_rules_field(f, rewrite_rules);
  f.choice("float32_math", float32_math, k_float32_math, {.doc = "how float32 is multiplied"});
  f.choice("accumulate", accumulate, k_accumulate, {.doc = "dtype of sums in float16 products"});
  f.choice("fallback",
           fallback,
           k_fallbacks,
           {.doc = "when the device cannot do what is asked: stop, or go on with a warning"});
  f.choice("grad_dtype",
           grad_dtype,
           k_grad_dtypes,
           {.doc = "what a weight's gradient is rounded to before float32"});
  f.choice("float16_gemm", float16_gemm, k_float16_gemms, {.doc = "float16 products on the CPU"});
  f.choice(
      "on_nonfinite",
      on_nonfinite,
      k_on_nonfinite,
      {.doc = "a gradient is not finite and no dynamic scale is active; apply: nothing looks, so "
              "that 16-bit products on the CPU can update weights as they compute gradients"});
  f.section("loss_scale",
            loss_scale,
            {.doc = "scaling of the loss", .bare = "mode", .bare_number = true});
  f.section("lists", lists, {.doc = "changes to the lists of the rewrite"});
  f.sections("overrides", overrides, {.doc = "policies of single layers"});
}

}  // namespace halfstep::config
