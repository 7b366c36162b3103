#pragma once
// What multiplies: one row of 32 x 32 blocks of the result at a time, over one slab.

#include <cstddef>
#include <cstdint>

namespace halfstep::backend::cpu::packed {

/// One panel of a against a run of panels of b. A block's running sums are 1024 numbers, four tiles
/// of 16 x 16.
struct Sweep {
  const std::byte* a;   ///< the panel in this slab
  const std::byte* b;   ///< the first panel in this slab; the others follow it
  std::int64_t steps;   ///< of the slab
  std::int64_t blocks;  ///< panels of b
  float* sums;  ///< running sums, block after block; read unless `first`, kept unless `last`
  bool first;   ///< the sums start at zero
  bool last;    ///< the sums are complete
  float* room;  ///< two blocks, for complete sums
  /// Called with each block of complete sums.
  void (*finish)(void* context, const float* sums, std::int64_t block);
  void* context;
  /// What the next slab reads: this many lines of it are asked for at every step.
  const std::byte* ahead;
  std::int64_t lines_ahead;
};

struct Unit {
  const char* name;
  /// Before the first sweep of a thread and after its last.
  void (*begin)();
  void (*end)();
  /// By the number of partial products: 1, 3 and 4; null where the unit has none.
  struct {
    void (*one)(const Sweep&);
    void (*three)(const Sweep&);
    void (*four)(const Sweep&);
  } sweep;
  /// Panels along each side of the part of the result whose running sums stay in the second-level
  /// cache, beside what the slab reads: for one part, and for two.
  std::int64_t panels[2];
};

/// Gives the calling thread eight tile registers of 16 rows of 64 bytes, and takes them back.
/// Every AMX kernel runs between these two. detect_isa() has asked the system for them.
void configure_amx_tiles();
void release_amx_tiles();

extern const Unit k_amx_unit;
extern const Unit k_avx512_bf16_unit;

}  // namespace halfstep::backend::cpu::packed
