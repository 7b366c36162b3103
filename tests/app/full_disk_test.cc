// A disk that fills up under a run.

#include <doctest/doctest.h>
#include <sys/mount.h>

#include <filesystem>
#include <ostream>

#include "app/mpirun.h"
#include "app/small_run.h"

namespace halfstep::test {

TEST_CASE("disk: a full one ends with 3 and leaves no half checkpoint") {
  namespace fs = std::filesystem;
  const TemporaryDirectory directory;
  const fs::path small = directory.path() / "small";
  fs::create_directory(small);
  if (mount("tmpfs", small.c_str(), "tmpfs", 0, "size=256k") != 0) {
    MESSAGE("no small file system can be mounted here; not tried");
    return;
  }
  struct Unmount {
    fs::path place;
    ~Unmount() { umount2(place.c_str(), MNT_DETACH); }
  };
  const Unmount at_the_end{small};
  SmallRun run;
  run.layers = R"(
    - {type: dense, units: 128, activation: relu, name: hidden}
    - {type: dense, units: 10, name: logits}
    - {type: softmax, dtype: float32}
)";
  write_config(directory, run);
  // Of several ranks the one that writes ends with 3, and the others do not wait for it.
  const int most = can_run_ranks() ? 2 : 1;
  for (int ranks = 1; ranks <= most; ++ranks) {
    CAPTURE(ranks);
    fs::remove_all(small / "run");
    const Finished end =
        ranks == 1 ? train(directory, "small/run") : train_ranks(directory, ranks, "small/run");
    CAPTURE(end.err);
    CHECK(end.exit_code == 3);
    CHECK(end.seconds < 300);  // far below parallel.timeout
    CHECK(end.err.find("small/run") != std::string::npos);
    const fs::path checkpoints = small / "run" / "checkpoints";
    if (!fs::exists(checkpoints)) continue;
    for (const auto& entry : fs::directory_iterator(checkpoints))
      CHECK(!fs::exists(entry.path() / "DONE"));
  }
}

}  // namespace halfstep::test
