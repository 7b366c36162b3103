#pragma once
// What the processor can do, as far as kernel rows care.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep::backend {

class CostModel;

/// Instruction sets in the order in which they build on each other.
enum class Isa { baseline, avx2, avx512, avx512_bf16, amx };

std::string_view name(Isa isa);
std::optional<Isa> isa_named(std::string_view text);

struct Capabilities {
  Isa isa = Isa::baseline;
  int threads = 1;
  int compute_capability = 0;  ///< of a GPU: 90 for sm_90; 0 on the CPU
  bool deterministic = true;
  /// Predicts the times of kernels; null: the model shipped for `isa`.
  std::shared_ptr<const CostModel> costs = nullptr;
};

/// The names of all sets that `capabilities` includes, weakest first; baseline has no name here.
std::vector<std::string> isa_names(const Capabilities& capabilities);

}  // namespace halfstep::backend
