#include "study/turns.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <vector>

#include "fixture.h"

namespace halfstep::study {
namespace {

TEST_CASE("turns: lanes go forth and back, the same number of steps each") {
  const config::RunSpec spec = tiny_variant("float32").spec;
  train::Session session_a(spec, tiny_data(), cpu());
  train::Session session_b(spec, tiny_data(), cpu());
  TurnListener a, b;
  train::Trainer trainer_a(session_a, {}, a);
  train::Trainer trainer_b(session_b, {}, b);
  const std::array<Lane, 2> lanes{Lane{&trainer_a, &a}, Lane{&trainer_b, &b}};
  TurnOptions options;
  options.slice_seconds = 0;
  CHECK(take_turns(lanes, options));
  CHECK(trainer_a.done());
  CHECK(trainer_b.done());
  // One step a turn, two turns a block.
  const std::vector<std::int64_t> blocks(a.blocks().begin(), a.blocks().end());
  CHECK(blocks == std::vector<std::int64_t>{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  CHECK(std::equal(b.blocks().begin(), b.blocks().end(), blocks.begin(), blocks.end()));
  CHECK(a.losses().size() == 12);
  CHECK(a.losses() == b.losses());

  const train::TrainResult result = trainer_a.result();
  const std::vector<BlockedStep> steady = steady_steps(result.steps, a.blocks(), 2);
  // Of the eleven after the first, two are tails, and two warm up.
  REQUIRE(steady.size() == 7);
  CHECK(steady.front().block == 1);
  CHECK(steady.back().block == 5);
}

TEST_CASE("turns: only blocks in which both sides have steps are paired") {
  const std::vector<BlockedStep> baseline{{0, 1.0}, {0, 2.0}, {1, 3.0}, {3, 5.0}};
  const std::vector<BlockedStep> variant{{0, 1.5}, {2, 2.5}, {3, 3.5}, {3, 4.5}};
  std::vector<TimedBlock> blocks;
  pair_blocks(baseline, variant, blocks);
  REQUIRE(blocks.size() == 2);
  CHECK(blocks[0].baseline == std::vector<double>{1, 2});
  CHECK(blocks[0].variant == std::vector<double>{1.5});
  CHECK(blocks[1].variant == std::vector<double>{3.5, 4.5});
}

}  // namespace
}  // namespace halfstep::study
