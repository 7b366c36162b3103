#include "core/system.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace halfstep::test {

TEST_CASE("system: processors that other processes keep busy are counted") {
  if (!busy_processors(0)) {
    MESSAGE("/proc/stat tells nothing of processors; skipped");
    return;
  }
  const pid_t busy = fork();
  REQUIRE(busy >= 0);
  if (busy == 0) {
    volatile bool runs = true;
    while (runs) {
    }
  }
  // Where other processes take the time of the child, they count instead; a container may limit all
  // of them to less than a processor.
  const std::optional<double> found = busy_processors(0.3);
  kill(busy, SIGKILL);
  waitpid(busy, nullptr, 0);
  REQUIRE(found.has_value());
  CHECK(*found > 0.2);
}

}  // namespace halfstep::test
