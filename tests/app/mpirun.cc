#include "app/mpirun.h"

#include <doctest/doctest.h>

#include <ostream>

#include "app/small_run.h"

namespace halfstep::test {

bool can_run_ranks() {
  const TemporaryDirectory directory;
  const Finished found = Process({"sh", "-c", "command -v mpirun"}, directory.path()).wait();
  if (found.exit_code != 0) MESSAGE("skipped: there is no mpirun (Debian's openmpi-bin)");
  return found.exit_code == 0;
}

std::vector<std::string> mpirun() {
  return {"env",
          "OMPI_ALLOW_RUN_AS_ROOT=1",
          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "OMPI_MCA_rmaps_base_oversubscribe=1",
          "OMPI_MCA_btl_vader_single_copy_mechanism=none",
          "mpirun"};
}

std::vector<std::string> mpirun_words(int ranks,
                                      const std::string& run_dir,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> words = mpirun();
  words.insert(words.end(), {"-np", std::to_string(ranks)});
  // More ranks than processors on a busy machine may wait for each other for long.
  std::vector<std::string> arguments{"--set", "parallel.timeout=600"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  for (std::string& word : halfstep_words(train_arguments(run_dir, arguments))) {
    words.push_back(std::move(word));
  }
  return words;
}

Finished train_ranks(const TemporaryDirectory& directory,
                     int ranks,
                     const std::string& run_dir,
                     const std::vector<std::string>& more) {
  return Process(mpirun_words(ranks, run_dir, more), directory.path()).wait();
}

}  // namespace halfstep::test
