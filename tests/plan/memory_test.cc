#include "plan/memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <ostream>
#include <random>

namespace halfstep::plan {
namespace {

std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

bool live_together(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

std::vector<Lifetime> random_blocks(std::mt19937& random, int count, int steps) {
  std::vector<Lifetime> blocks;
  for (int i = 0; i < count; ++i) {
    const int a = static_cast<int>(random() % static_cast<unsigned>(steps));
    const int b = static_cast<int>(random() % static_cast<unsigned>(steps));
    // Some empty, some tiny, some large.
    const std::size_t bytes = random() % 4 == 0 ? 0 : random() % (1U << (random() % 20U));
    blocks.push_back({std::min(a, b), std::max(a, b), bytes});
  }
  return blocks;
}

/// The most bytes that live at one step: no layout can do with less.
std::size_t peak(const std::vector<Lifetime>& blocks, int steps) {
  std::size_t most = 0;
  for (int step = 0; step < steps; ++step) {
    std::size_t live = 0;
    for (const Lifetime& block : blocks) {
      if (block.first <= step && step <= block.last) live += rounded(block.bytes);
    }
    most = std::max(most, live);
  }
  return most;
}

}  // namespace

TEST_CASE("memory: blocks that live together never overlap, aligned, inside the arena") {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const int steps = 1 + static_cast<int>(random() % 40U);
    const auto blocks = random_blocks(random, 1 + static_cast<int>(random() % 60U), steps);
    const Layout layout = assign_offsets_by_lifetime(blocks);
    REQUIRE(layout.offsets.size() == blocks.size());
    std::size_t end = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      CHECK(layout.offsets[i] % 64 == 0);
      end = std::max(end, layout.offsets[i] + rounded(blocks[i].bytes));
      for (std::size_t j = 0; j < i; ++j) {
        if (!live_together(blocks[i], blocks[j]) || blocks[i].bytes == 0 || blocks[j].bytes == 0)
          continue;
        const bool apart = layout.offsets[i] + blocks[i].bytes <= layout.offsets[j] ||
                           layout.offsets[j] + blocks[j].bytes <= layout.offsets[i];
        CHECK(apart);
      }
    }
    CHECK(layout.bytes == end);
    CHECK(layout.bytes >= peak(blocks, steps));
  }
}

TEST_CASE("memory: blocks that do not live together share their place") {
  const std::vector<Lifetime> chain{{0, 1, 1000}, {2, 3, 1000}, {4, 9, 1000}};
  CHECK(assign_offsets_by_lifetime(chain).bytes == 1024);
  const std::vector<Lifetime> touching{{0, 2, 1000}, {2, 3, 1000}};
  CHECK(assign_offsets_by_lifetime(touching).bytes == 2048);
  CHECK(assign_offsets_by_lifetime({}).bytes == 0);
}

TEST_CASE("memory: a forward and backward pass takes what lives at its turning point") {
  // Activations live until their gradient is taken; gradients for one step.
  constexpr int k_layers = 10;
  std::vector<Lifetime> blocks;
  for (int i = 0; i < k_layers; ++i) blocks.push_back({i, 2 * k_layers - i, 4096});
  for (int i = 0; i < k_layers; ++i) blocks.push_back({k_layers + i, k_layers + i + 1, 4096});
  CHECK(assign_offsets_by_lifetime(blocks).bytes == peak(blocks, 2 * k_layers + 1));
}

}  // namespace halfstep::plan
