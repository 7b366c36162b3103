#pragma once

#include <utility>

#include "core/error.h"

namespace halfstep::study {

/// Runs `action` and collects the problems it throws, so that further checks can run.
template <class Action>
void collect_problems(Diagnostics& diagnostics, Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const UserError& error) {
    for (const Problem& p : error.problems()) diagnostics.error(p.where, p.message, p.hint);
  }
}

}  // namespace halfstep::study
