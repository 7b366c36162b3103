#include "core/process_claim.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

namespace halfstep::test {

TEST_CASE("process claim: a process sees the others that claim the name, until they end") {
  const std::string name = fmt::format("test-{}", ::getpid());
  const ProcessClaim own(name);
  CHECK(own.others().empty());
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const ProcessClaim claim(name);
    const ProcessClaim unlike(name + "0");
    const bool right = claim.others() == std::vector<pid_t>{::getppid()} && unlike.others().empty();
    [[maybe_unused]] const auto written = ::write(ready[1], right ? "y" : "n", 1);
    for (;;) ::pause();
  }
  char answer = ' ';
  CHECK(::read(ready[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  CHECK(own.others() == std::vector<pid_t>{child});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(own.others().empty());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("process claim: a claim ends with its object") {
  const std::string name = fmt::format("again-{}", ::getpid());
  std::optional<ProcessClaim> claim(std::in_place, name);
  claim.reset();
  claim.emplace(name);
  CHECK(claim->others().empty());
}

}  // namespace halfstep::test
