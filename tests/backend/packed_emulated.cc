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

/// Flushes subnormal values to zero, as for operands and results.
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
    std::memset(accumulators[i], 0, sizeof accumulators[i]);
  }
  template <int i>
  void load(const float* from) {
    std::memcpy(accumulators[i], from, sizeof accumulators[i]);
  }
  template <int i>
  void store(float* to) {
    std::memcpy(to, accumulators[i], sizeof accumulators[i]);
  }
  /// Adds the sum of the products of even k and that of odd k, 16 each, to the tile. The product of
  /// two bfloat16 values is exact in float32.
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
        float& sum = accumulators[i][row * 16 + column];
        sum = flushed(flushed(sum) + flushed(halves[0] + halves[1]));
      }
    }
  }

  bfloat16 a[2][512];
  bfloat16 b[2][512];
  float accumulators[4][256];
};

/// `widen` of one operand: float32 values of a k block, [row][k] of a and [k][column] of b.
template <class Value, packed::Operand operand>
void widen(float* to, const std::byte* panel, std::int64_t k_blocks) {
  for (std::int64_t block = 0; block < k_blocks; ++block, to += 1024, panel += 2048) {
    for (std::int64_t row = 0; row < 32; ++row) {
      for (std::int64_t k = 0; k < 32; ++k) {
        Value value;
        std::memcpy(&value, panel + packed::offset_in_part(operand, row, k), sizeof value);
        to[operand == packed::Operand::a ? row * 32 + k : k * 32 + row] = static_cast<float>(value);
      }
    }
  }
}

void float32_micro_kernel(const MicroKernelArgs& s) {
  const auto* a = reinterpret_cast<const float*>(s.a);
  const auto* b = reinterpret_cast<const float*>(s.b);
  for (std::int64_t block = 0; block < s.blocks; ++block, b += s.k_blocks * 1024) {
    float* accumulators = s.accumulators + block * 1024;
    float* to = s.last ? s.scratch : accumulators;
    for (std::int64_t at = 0; at < 1024; ++at) {
      const std::int64_t row = at / 512 * 16 + at % 256 / 16;
      const std::int64_t column = at / 256 % 2 * 16 + at % 16;
      float sum = s.first ? 0 : accumulators[at];
      for (std::int64_t k = 0; k < s.k_blocks * 32; ++k) {
        const std::int64_t k_block = k / 32 * 1024;
        sum = std::fma(a[k_block + row * 32 + k % 32], b[k_block + k % 32 * 32 + column], sum);
      }
      to[at] = sum;
    }
    if (s.last) s.epilogue(s.context, to, block);
  }
}

void no_op() {}

}  // namespace

constinit const MicroKernel k_emulated_tiles{.name = "emulated",
                                             .begin = no_op,
                                             .end = no_op,
                                             .run = {micro_kernel<EmulatedTiles, 1>,
                                                     micro_kernel<EmulatedTiles, 3>,
                                                     micro_kernel<EmulatedTiles, 4>},
                                             .panels = {2, 3}};

constinit const MicroKernel k_emulated_fma{
    .name = "emulated fma",
    .begin = no_op,
    .end = no_op,
    .run = {float32_micro_kernel, nullptr, nullptr},
    .panels = {2, 0},
    .bfloat16 = {{widen<bfloat16, packed::Operand::a>, widen<bfloat16, packed::Operand::b>}},
    .float16 = {{widen<float16, packed::Operand::a>, widen<float16, packed::Operand::b>}}};

}  // namespace halfstep::testing
