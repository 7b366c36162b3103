#pragma once
// The section `precision`: policy, rewrite, arithmetic, loss scale.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace halfstep::config {

/// The names that `policy` and the `dtype` of an override or a layer may have.
inline constexpr std::array<std::string_view, 5> k_policy_names{
    "float32", "mixed_float16", "mixed_bfloat16", "float16", "bfloat16"};

enum class Rewrite { none, automatic };
/// The release of TensorFlow whose rules the rewrite follows: up to 2.19, or 2.20 and later. From
/// 2.20 on, infer ops right after a converted op are converted for float16 too, not for bfloat16
/// alone.
enum class RewriteRules { tensorflow_2_19, tensorflow_2_20 };
enum class RewriteLevel { treat_infer_as_deny, tensor_cores_only, unsafe_force_all };
enum class Float32Math { ieee, tf32 };
enum class Fallback { error, warn };
enum class GradDtype { compute, float32 };
enum class Float16Gemm { x3, exact };
enum class OnNonfinite { stop, skip, apply };
enum class LossScaleMode { automatic, none, fixed, dynamic };
enum class OnOverflow { skip, retry };
enum class Compat { tf1, tf2, keras3, torch };
enum class StepCounter { applied, attempted };
enum class ScaleCheck { unscaled, scaled };

struct LossScaleSpec {
  /// automatic: dynamic when the policy is mixed_float16 or the rewrite's target is float16.
  LossScaleMode mode = LossScaleMode::automatic;
  std::optional<double> initial;  ///< absent: as initial_scale() says
  double growth_factor = 2;
  std::int64_t growth_steps = 2000;
  double backoff_factor = 0.5;
  std::optional<double> min;  ///< absent: by `compat`, else 1; 0 means no lower bound
  std::optional<double> max;  ///< absent: only the overflow of float32 bounds the scale
  std::int64_t hysteresis = 1;
  OnOverflow on_overflow = OnOverflow::skip;
  std::optional<std::int64_t> max_consecutive_skips = 50;
  std::optional<Compat> compat;
  std::optional<StepCounter> step_counter;  ///< absent: by `compat`, else applied
  std::optional<ScaleCheck> check;          ///< absent: by `compat`, else unscaled

  void fields(Fields& f);
};

/// The fixed scale, or the first one of a dynamic scale; without `initial` by `compat`.
double initial_scale(const LossScaleSpec& spec);

/// Changes to one list of the rewrite; ops are named as TensorFlow names them.
struct ListEdit {
  std::vector<std::string> add;
  std::vector<std::string> remove;

  void fields(Fields& f);
};

struct ListEdits {
  ListEdit allow, infer, deny, clear;

  void fields(Fields& f);
};

/// `match` is a layer's exact name, or `re:` and a regular expression for the whole name.
struct OverrideSpec {
  std::string match;
  std::string dtype = "float32";  ///< one of k_policy_names

  void fields(Fields& f);
};

/// The field `rewrite_rules`, which `explain --graph` has without the rest of the section.
void rewrite_rules_field(Fields& f, RewriteRules& rules);

struct PrecisionSpec {
  std::string policy = "float32";
  Rewrite rewrite = Rewrite::none;
  std::optional<DType> target;  ///< of the rewrite; absent: float16 on CUDA, bfloat16 on the CPU
  std::optional<RewriteLevel> level;
  RewriteRules rewrite_rules = RewriteRules::tensorflow_2_19;
  Float32Math float32_math = Float32Math::ieee;
  DType accumulate = DType::float32;
  Fallback fallback = Fallback::error;
  GradDtype grad_dtype = GradDtype::compute;
  Float16Gemm float16_gemm = Float16Gemm::x3;
  OnNonfinite on_nonfinite = OnNonfinite::stop;  ///< where no dynamic scale is active
  LossScaleSpec loss_scale;
  ListEdits lists;
  std::vector<OverrideSpec> overrides;
  /// TensorFlow's own switches of the rewrite by their full names, from the environment; no field.
  std::map<std::string, std::string> tensorflow_variables;

  void fields(Fields& f);
};

}  // namespace halfstep::config
