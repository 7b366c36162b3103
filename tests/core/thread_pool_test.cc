#include "core/thread_pool.h"

#include <doctest/doctest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/log.h"

namespace halfstep {
namespace {

constexpr int k_max = 8;
constexpr std::array k_kinds{Team::independent, Team::cooperating};

/// Runs a team that counts its indices in plain integers, so that ThreadSanitizer sees a missing
/// order between the members and the caller; returns whether each index ran once.
bool runs_each_index_once(int size, Team team) {
  std::array<int, k_max> counts{};
  std::array<bool, k_max> right{};
  const bool ran = run_team(size, team, [&](int index) {
    const TeamMember member = team_member();
    const auto i = static_cast<std::size_t>(index);
    right[i] = member.index == index && member.size == size && member.in_team;
    ++counts[i];
  });
  const auto n = static_cast<std::size_t>(size);
  return ran && std::all_of(counts.begin(), counts.begin() + size, [](int c) { return c == 1; }) &&
         std::all_of(right.begin(), right.begin() + size, [](bool r) { return r; }) &&
         std::all_of(counts.begin() + n, counts.end(), [](int c) { return c == 0; });
}

/// Whether all members see all others' writes after each of `rounds` barriers.
bool meets_at_barriers(int size, int rounds) {
  std::array<int, k_max> round_of{};
  std::atomic<bool> complete{true};
  run_team(size, Team::cooperating, [&](int index) {
    for (int round = 1; round <= rounds; ++round) {
      round_of[static_cast<std::size_t>(index)] = round;
      team_barrier();
      for (int i = 0; i < size; ++i) {
        if (round_of[static_cast<std::size_t>(i)] != round) complete = false;
      }
      team_barrier();
    }
  });
  return complete;
}

}  // namespace

TEST_CASE("thread pool: each index runs once, in teams that grow and shrink") {
  for (Team team : k_kinds) {
    for (int size : {1, 2, 3, 4, 5, 6, 7, 8, 3, 1, 8, 2}) {
      CAPTURE(size);
      for (int repeat = 0; repeat < 20; ++repeat) CHECK(runs_each_index_once(size, team));
    }
  }
  CHECK_FALSE(team_member().in_team);
  CHECK(team_member().size == 1);
}

TEST_CASE("thread pool: members of 1 to 8 meet at their barriers and see each other's writes") {
  for (int size = 1; size <= k_max; ++size) {
    CAPTURE(size);
    CHECK(meets_at_barriers(size, 20));
  }
}

TEST_CASE("thread pool: members may wait for some others, while the rest finish and take indices") {
  for (int repeat = 0; repeat < 100; ++repeat) {
    // Members 2 and 3 wait for each other, as do 4 and 5; 0 and 1 finish at once.
    std::array<std::atomic<int>, 6> arrived{};
    CHECK(run_team(6, Team::cooperating, [&](int index) {
      if (index < 2) return;
      const auto partner = static_cast<std::size_t>(index ^ 1);
      arrived[static_cast<std::size_t>(index)] = 1;
      arrived[static_cast<std::size_t>(index)].notify_all();
      arrived[partner].wait(0);
    }));
  }
}

TEST_CASE("thread pool: a team inside a team is refused, and a member can run alone") {
  for (Team outer : k_kinds) {
    for (int size = 1; size <= k_max; ++size) {
      CAPTURE(size);
      std::atomic<int> refused{0};
      std::atomic<int> alone{0};
      CHECK(run_team(size, outer, [&](int index) {
        for (Team inner : k_kinds) {
          if (!run_team(2, inner, [](int) {})) ++refused;
        }
        run_alone([&] {
          team_barrier();  // of one: the others do not come
          const TeamMember member = team_member();
          if (member.index == 0 && member.size == 1 && member.in_team) ++alone;
        });
        if (team_member().index != index || team_member().size != size) ++alone;
      }));
      CHECK(refused == 2 * size);
      CHECK(alone == size);
    }
  }
}

TEST_CASE("thread pool: after an exception inside run_alone the thread starts teams again") {
  CHECK_THROWS_AS(run_alone([] { throw std::runtime_error("body"); }), std::runtime_error);
  CHECK_FALSE(team_member().in_team);
  CHECK(runs_each_index_once(2, Team::cooperating));
}

TEST_CASE("thread pool: workers that sleep wake up for the next team") {
  for (int size : {2, 8}) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));  // longer than threads spin
      CHECK(runs_each_index_once(size, Team::cooperating));
    }
  }
}

TEST_CASE("thread pool: teams of several callers take turns, or are refused if independent") {
  std::atomic<int> wrong{0};
  std::atomic<int> ran{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int repeat = 0; repeat < 100; ++repeat) {
        const int size = 1 + (caller + repeat) % k_max;
        if (repeat % 2 == 0) {
          if (!runs_each_index_once(size, Team::cooperating)) ++wrong;
          if (!meets_at_barriers(size, 1)) ++wrong;
          continue;
        }
        int calls = 0;
        const bool done = run_team(size, Team::independent, [&](int index) {
          if (index == 0) ++calls;
        });
        if (calls != (done ? 1 : 0)) ++wrong;
        ++(done ? ran : refused);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
  CHECK(ran + refused == 4 * 50);
}

TEST_CASE("thread pool: 10000 teams of changing size and kind") {
  std::uint32_t random = 1;
  int wrong = 0;
  for (int repeat = 0; repeat < 10'000; ++repeat) {
    random = random * 1664525U + 1013904223U;
    const int size = 1 + static_cast<int>(random >> 16U) % k_max;
    const bool good = repeat % 16 == 0
                          ? meets_at_barriers(size, 3)
                          : runs_each_index_once(size, k_kinds[(random >> 24U) % k_kinds.size()]);
    if (!good) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("thread pool: threads that the system refuses leave smaller teams and a warning") {
  constexpr int k_too_many = 40;  // more than any other test here starts
  std::vector<std::string> warnings;
  set_log_sink([&](LogLevel, std::string_view message) { warnings.emplace_back(message); });
  pthread_attr_t usual;
  pthread_attr_t huge;
  REQUIRE(pthread_getattr_default_np(&usual) == 0);
  REQUIRE(pthread_getattr_default_np(&huge) == 0);
  // Beyond the address space, so that no thread can have its stack.
  REQUIRE(pthread_attr_setstacksize(&huge, std::size_t{1} << 60U) == 0);
  REQUIRE(pthread_setattr_default_np(&huge) == 0);
  const int started = start_threads(k_too_many);
  std::vector<int> counts(k_too_many, 0);
  const bool ran = run_team(
      k_too_many, Team::independent, [&](int index) { ++counts[static_cast<std::size_t>(index)]; });
  CHECK_THROWS_AS(run_team(k_too_many, Team::cooperating, [](int) {}), UserError);
  const bool smaller = run_team(started, Team::cooperating, [](int) { team_barrier(); });
  REQUIRE(pthread_setattr_default_np(&usual) == 0);
  pthread_attr_destroy(&usual);
  pthread_attr_destroy(&huge);
  set_log_sink({});

  CHECK(started >= 1);
  CHECK(started < k_too_many);
  CHECK(ran);
  CHECK(std::all_of(counts.begin(), counts.end(), [](int c) { return c == 1; }));
  CHECK(smaller);
  CHECK(warnings.size() == 1);
  CHECK(start_threads(started + 1) == started + 1);
}

}  // namespace halfstep
