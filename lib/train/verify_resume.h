#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "config/run_spec.h"
#include "data/dataset.h"

namespace halfstep::train {

/// How a resumed run compares with one that was never left.
struct ResumeCheck {
  std::int64_t at_step = 0;  ///< batches before the run was left
  std::int64_t steps = 0;    ///< batches of the whole run
  std::string whole_hash;    ///< of all variables
  std::string resumed_hash;
  std::vector<std::string> differing;  ///< variables and other parts that are not equal

  bool equal() const { return differing.empty(); }
};

/// Trains twice as many batches as `at_step` (no more than the config has) in one go, and again in
/// two parts: the first leaves a checkpoint in `directory`, the second goes on from it with
/// everything made anew.
/// Errors: UserError(config) when the run has no batch left after `at_step`; as Session and
/// Trainer.
ResumeCheck verify_resume(const config::RunSpec& spec,
                          const data::Dataset& dataset,
                          const backend::Backend& backend,
                          std::int64_t at_step,
                          const std::string& directory);

}  // namespace halfstep::train
