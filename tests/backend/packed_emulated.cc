#include <cmath>
#include <cstring>
#include <limits>

#include "core/half.h"
#include "packed.h"

namespace halfstep::testing {
namespace {

using backend::cpu::packed::MicroKernel;
using backend::cpu::packed::MicroKernelArgs;

#include "backend/cpu/packed/isa/microkernel.inc"

/// Denormal numbers are zero, going in and coming out.
float flushed(float x) { return std::abs(x) < std::numeric_limits<float>::min() ? 0 * x : x; }

struct EmulatedTiles {
  template <int i>
  void load_a(Bytes from) {
    std::memcpy(a[i], from, sizeof a[i]);
  }
  template <int i>
  void load_b(Bytes from) {
    std::memcpy(b[i], from, sizeof b[i]);
  }
  template <int i>
  void zero() {
    std::memset(sums[i], 0, sizeof sums[i]);
  }
  template <int i>
  void load(const float* from) {
    std::memcpy(sums[i], from, sizeof sums[i]);
  }
  template <int i>
  void store(float* to) {
    std::memcpy(to, sums[i], sizeof sums[i]);
  }
  /// Two sums of 16 products of elements each, of even and odd ones; they are added, and then to
  /// the tile. The product of two bfloat16 values is exact in float32.
  template <int i>
  void multiply() {
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 16; ++column) {
        float halves[2] = {};
        for (int k = 0; k < 32; ++k) {
          const float x = flushed(static_cast<float>(a[i / 2][row * 32 + k]));
          const float y = flushed(static_cast<float>(b[i % 2][k / 2 * 32 + column * 2 + k % 2]));
          halves[k % 2] = flushed(halves[k % 2] + x * y);
        }
        float& sum = sums[i][row * 16 + column];
        sum = flushed(flushed(sum) + flushed(halves[0] + halves[1]));
      }
    }
  }

  bfloat16 a[2][512];
  bfloat16 b[2][512];
  float sums[4][256];
};

void no_op() {}

}  // namespace

constinit const MicroKernel k_emulated_unit{
    .name = "emulated",
    .begin = no_op,
    .end = no_op,
    .sweep = {sweep<EmulatedTiles, 1>, sweep<EmulatedTiles, 3>, sweep<EmulatedTiles, 4>},
    .panels = {2, 3}};

}  // namespace halfstep::testing
