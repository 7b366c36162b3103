#include <cmath>
#include <cstring>
#include <limits>

#include "core/half.h"
#include "packed.h"

namespace halfstep::testing {
namespace {

namespace packed = backend::cpu::packed;
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

/// `widen` of one operand: float32 values of a k block, [row][k] of a and [k][column] of b.
template <class Value, packed::Side side>
void widen(float* to, const std::byte* panel, std::int64_t steps) {
  for (std::int64_t step = 0; step < steps; ++step, to += 1024, panel += 2048) {
    for (std::int64_t row = 0; row < 32; ++row) {
      for (std::int64_t k = 0; k < 32; ++k) {
        Value value;
        std::memcpy(&value, panel + packed::offset_in_part(side, row, k), sizeof value);
        to[side == packed::Side::a ? row * 32 + k : k * 32 + row] = static_cast<float>(value);
      }
    }
  }
}

void sweep_wide(const MicroKernelArgs& s) {
  const auto* a = reinterpret_cast<const float*>(s.a);
  const auto* b = reinterpret_cast<const float*>(s.b);
  for (std::int64_t block = 0; block < s.blocks; ++block, b += s.steps * 1024) {
    float* sums = s.sums + block * 1024;
    float* to = s.last ? s.scratch : sums;
    for (std::int64_t at = 0; at < 1024; ++at) {
      const std::int64_t row = at / 512 * 16 + at % 256 / 16;
      const std::int64_t column = at / 256 % 2 * 16 + at % 16;
      float sum = s.first ? 0 : sums[at];
      for (std::int64_t k = 0; k < s.steps * 32; ++k) {
        const std::int64_t step = k / 32 * 1024;
        sum = std::fma(a[step + row * 32 + k % 32], b[step + k % 32 * 32 + column], sum);
      }
      to[at] = sum;
    }
    if (s.last) s.finish(s.context, to, block);
  }
}

void no_op() {}

}  // namespace

constinit const MicroKernel k_emulated_unit{
    .name = "emulated",
    .begin = no_op,
    .end = no_op,
    .sweep = {sweep<EmulatedTiles, 1>, sweep<EmulatedTiles, 3>, sweep<EmulatedTiles, 4>},
    .panels = {2, 3}};

constinit const MicroKernel k_emulated_fma{
    .name = "emulated fma",
    .begin = no_op,
    .end = no_op,
    .sweep = {sweep_wide, nullptr, nullptr},
    .panels = {2, 0},
    .bfloat16 = {{widen<bfloat16, packed::Side::a>, widen<bfloat16, packed::Side::b>}},
    .float16 = {{widen<float16, packed::Side::a>, widen<float16, packed::Side::b>}}};

}  // namespace halfstep::testing
