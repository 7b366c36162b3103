// Signals during kernels whose stack pointer is no stack.

#include "train/interrupt.h"

#include <doctest/doctest.h>

#include <csignal>

namespace halfstep::train {

TEST_CASE("interrupt: handlers run on a stack of their own, which the guard takes away again") {
  stack_t before{};
  REQUIRE(sigaltstack(nullptr, &before) == 0);
  {
    const InterruptGuard guard(SIGUSR1);
    stack_t during{};
    REQUIRE(sigaltstack(nullptr, &during) == 0);
    CHECK((during.ss_flags & SS_DISABLE) == 0);
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) {
      CAPTURE(signal);
      struct sigaction action {};
      REQUIRE(sigaction(signal, nullptr, &action) == 0);
      CHECK((action.sa_flags & SA_ONSTACK) != 0);
    }
    REQUIRE(raise(SIGHUP) == 0);
    CHECK(take_request() == Request::checkpoint);
    CHECK(take_request() == Request::none);
  }
  stack_t after{};
  REQUIRE(sigaltstack(nullptr, &after) == 0);
  CHECK(after.ss_flags == before.ss_flags);
}

}  // namespace halfstep::train
