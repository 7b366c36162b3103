#pragma once
// Every warning and hint of halfstep: code, meaning and remedy. The messages themselves, with names
// and numbers, are in the code that finds the problem.

#include <span>
#include <string>
#include <string_view>

#include "config/run_spec.h"

namespace halfstep::config {

struct WarningCode {
  std::string_view code;     ///< "W101"; stable: never given to another warning
  std::string_view meaning;  ///< a sentence
  std::string_view remedy;   ///< a sentence
};

/// In the order of their codes. 1xx: the config and its requirements. 2xx: the dtypes that ops
/// compute in; `explain` prints most of them as hints. 3xx: a run and its measurements.
std::span<const WarningCode> warning_codes();

/// The entry of the table with this code. Errors: InternalError where there is none.
const WarningCode& warning_code(std::string_view code);

// The codes, by subject.
inline constexpr std::string_view k_idle_rewrite_setting = "W101";
inline constexpr std::string_view k_half_weights_requested = "W102";
inline constexpr std::string_view k_idle_initial_scale = "W103";
inline constexpr std::string_view k_rounding_scale = "W104";
inline constexpr std::string_view k_idle_variable = "W105";
inline constexpr std::string_view k_idle_loss_scale = "W106";
inline constexpr std::string_view k_idle_override = "W111";
inline constexpr std::string_view k_replaced_dtype = "W112";
inline constexpr std::string_view k_loss_gets_scores = "W113";
inline constexpr std::string_view k_loss_gets_probabilities = "W114";
inline constexpr std::string_view k_other_precision = "W115";
inline constexpr std::string_view k_fallback_used = "W116";
inline constexpr std::string_view k_many_threads = "W117";
inline constexpr std::string_view k_shuffled_state = "W118";
inline constexpr std::string_view k_samples_skipped = "W119";
inline constexpr std::string_view k_idle_state_setting = "W120";
inline constexpr std::string_view k_untrained_weights = "W121";
inline constexpr std::string_view k_infinite_input = "W122";
inline constexpr std::string_view k_equal_labels = "W123";
inline constexpr std::string_view k_shared_gpu = "W124";
inline constexpr std::string_view k_unread_input = "W125";
inline constexpr std::string_view k_masked_tokens = "W126";
inline constexpr std::string_view k_half_output = "W201";
inline constexpr std::string_view k_half_weights = "W202";
inline constexpr std::string_view k_padded_extent = "W203";
inline constexpr std::string_view k_little_work = "W204";
inline constexpr std::string_view k_denied_op = "W205";
inline constexpr std::string_view k_no_matrix_unit = "W206";
inline constexpr std::string_view k_many_casts = "W207";
inline constexpr std::string_view k_lost_epsilon = "W208";
inline constexpr std::string_view k_unsuitable_gpu = "W209";
inline constexpr std::string_view k_idle_rewrite = "W210";
inline constexpr std::string_view k_half_unscaling = "W211";
inline constexpr std::string_view k_few_steps_timed = "W301";
inline constexpr std::string_view k_other_machine = "W302";
inline constexpr std::string_view k_random_samples = "W303";
inline constexpr std::string_view k_idle_end = "W304";
inline constexpr std::string_view k_loss_without_value = "W305";
inline constexpr std::string_view k_nonfinite_results = "W306";

/// A warning with one of those codes.
inline Warning warning(std::string_view code, Where where, std::string message) {
  return {std::string(warning_code(code).code), std::move(where), std::move(message)};
}

}  // namespace halfstep::config
