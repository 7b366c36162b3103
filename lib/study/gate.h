#pragma once
// `--fail-if` expressions: comparisons of a result with a number, joined by `||` and `&&`.
//
//   mixed_float16.val_accuracy.delta_ci_low < -0.3pp || mixed_float16.speedup < 1.2
//
// A quantity is POLICY.NAME or POLICY.METRIC.NAME. Numbers may end in pp (a hundredth), x or ms.
// `or` and `and` are other spellings; `&&` binds more tightly.

#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "report/compare_report.h"

namespace halfstep::study {

/// Whether a value and a limit compare as `<`, `<=`, ... says.
using Relation = bool (*)(double value, double limit);

/// One comparison.
struct Term {
  std::string quantity;
  Relation holds = nullptr;
  double limit = 0;
  std::string text;            ///< as written
  bool limit_is_flag = false;  ///< the limit is `true` or `false`
};

/// A disjunction of conjunctions: true if all terms of one element of `any` hold.
struct Gate {
  std::string expression;
  std::vector<std::vector<Term>> any;
};

/// Errors: UserError(config) with the unexpected and the expected token.
Gate parse_gate(const std::string& expression);

/// The policies and metrics of a comparison, from which the names of its quantities are made.
struct ComparisonNames {
  std::vector<std::string> policies;  ///< in the order of the result
  std::string baseline;
  std::vector<std::string> metrics;  ///< "test_accuracy", "val_loss", ...
  std::string headline;  ///< the headline metric; `accuracy` or `loss` alone mean its split
};

/// Errors: UserError(config) for unknown quantities, with the nearest name, and for limits of the
/// wrong type.
void check_gate(const Gate& gate, const ComparisonNames& names);

/// Runs `action` and collects the problems it throws, so that further checks can run.
template <class Action>
void collect_problems(Diagnostics& diagnostics, Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const UserError& error) {
    for (const Problem& p : error.problems()) diagnostics.error(p.where, p.message, p.hint);
  }
}

/// The same for several expressions; the error lists the problem of each.
std::vector<Gate> parse_gates(const std::vector<std::string>& expressions);
void check_gates(const std::vector<Gate>& gates, const ComparisonNames& names);

/// Errors: InternalError for quantities that check_gate rejects.
report::GateBlock evaluate_gate(const Gate& gate,
                                const ComparisonNames& names,
                                const report::CompareReport& comparison);

/// `0.2pp` or `0.002`, as 0.002. Errors: UserError(config) unless it is above 0 and below 1.
double parse_margin(const std::string& text);

}  // namespace halfstep::study
