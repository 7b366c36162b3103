// Compiled where the compiler has a type of IEEE half numbers, with its name as
// HALFSTEP_COMPILER_HALF.

#include "core/half.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/philox.h"

namespace halfstep {
namespace {

TEST_CASE("half: float16 agrees with the compiler's own type on floats of all kinds") {
  __extension__ using CompilerHalf = HALFSTEP_COMPILER_HALF;
  std::int64_t wrong = 0;
  std::uint32_t first = 0;
  const auto check = [&](std::uint32_t bits) {
    const auto x = std::bit_cast<float>(bits);
    if (std::isnan(x)) return;
    const auto want = std::bit_cast<std::uint16_t>(static_cast<CompilerHalf>(x));
    if (float16(x).bits != want && wrong++ == 0) first = bits;
  };
  // Every exponent and sign, with mantissas around where rounding turns.
  for (std::uint32_t exponent = 0; exponent < 512; ++exponent) {
    for (std::uint32_t high = 0; high < 0x400U; high += 31) {
      for (std::uint32_t low : {0U, 1U, 0xfffU, 0x1000U, 0x1001U, 0x1fffU}) {
        check(exponent << 23 | high << 13 | low);
      }
    }
  }
  RandomStream random(7, 0);
  for (int i = 0; i < 300'000; ++i) check(random.next());
  CAPTURE(first);
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace halfstep
