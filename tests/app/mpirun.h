#pragma once
// Runs of several ranks: processes that Open MPI's mpirun starts on this machine.

#include <string>
#include <vector>

#include "app/process.h"

namespace halfstep::test {

/// Whether there is an mpirun; says so where there is none.
bool can_run_ranks();

/// mpirun that may run as root, with more ranks than processors.
std::vector<std::string> mpirun();

/// mpirun of so many ranks that train run.yaml; see train_arguments().
std::vector<std::string> mpirun_words(int ranks,
                                      const std::string& run_dir,
                                      const std::vector<std::string>& more);
Finished train_ranks(const TemporaryDirectory& directory,
                     int ranks,
                     const std::string& run_dir,
                     const std::vector<std::string>& more = {});

}  // namespace halfstep::test
