#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"
#include "config/run_spec.h"
#include "data/dataset.h"

namespace halfstep::train {

/// A resumed run compared with an uninterrupted one.
struct ResumeCheck {
  std::int64_t at_step = 0;  ///< batches before the interruption
  std::int64_t steps = 0;    ///< batches of the uninterrupted run
  std::string whole_hash;    ///< of all variables
  std::string resumed_hash;
  std::vector<std::string> differing;  ///< names of variables and other parts that differ

  bool equal() const { return differing.empty(); }
};

/// Trains twice as many batches as `at_step` (at most those of the config) without interruption,
/// and again in two parts: the first writes a checkpoint to `directory`, the second resumes from it
/// with a new session. Errors: UserError(config) when the run has no batch left after `at_step` or
/// ends before it; as Session and Trainer.
ResumeCheck verify_resume(const config::RunSpec& spec,
                          const data::Dataset& dataset,
                          const backend::Backend& backend,
                          std::int64_t at_step,
                          const std::string& directory);

}  // namespace halfstep::train
