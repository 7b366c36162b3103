#pragma once
// Properties of the processor that kernels depend on.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep::backend {

class CostModel;
}  // namespace halfstep::backend

namespace halfstep::comm {
class Communicator;
}

namespace halfstep::backend {

/// Instruction sets; each includes the ones before it.
enum class Isa { baseline, avx2, avx512, avx512_bf16, amx };

std::string_view name(Isa isa);
std::optional<Isa> isa_named(std::string_view text);

struct Capabilities {
  Isa isa = Isa::baseline;
  int threads = 1;
  int compute_capability = 0;  ///< of a GPU: 90 for sm_90; 0 on the CPU
  /// Predicted times of kernels; null: the model shipped for `isa`.
  std::shared_ptr<const CostModel> costs = nullptr;
  /// The ranks of the run; null: it has one process.
  std::shared_ptr<comm::Communicator> ranks = nullptr;
};

/// The names of all instruction sets included in `capabilities`, weakest first, without baseline.
std::vector<std::string> isa_names(const Capabilities& capabilities);

}  // namespace halfstep::backend
