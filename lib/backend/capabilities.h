#pragma once
// What the processor can do, as far as kernel rows care.

#include <string>
#include <string_view>

namespace halfstep::backend {

/// Instruction sets in the order in which they build on each other.
enum class Isa { baseline, avx2, avx512, avx512_bf16, amx };

std::string_view name(Isa isa);

struct Capabilities {
  Isa isa = Isa::baseline;
  int threads = 1;
  bool deterministic = true;
};

}  // namespace halfstep::backend
