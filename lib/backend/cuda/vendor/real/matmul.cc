#include <fmt/format.h>

#include <array>

#include "backend/cuda/vendor/real/device.h"
#include "backend/cuda/vendor/real/lt_descriptors.h"

namespace halfstep::backend::cuda::real {
namespace {

// cuBLAS's recommended workspace for Hopper; older devices use less of it.
constexpr std::size_t k_workspace_limit = std::size_t{32} << 20;
constexpr int k_candidates = 16;

using Candidates = std::vector<cublasLtMatmulHeuristicResult_t>;

std::uint64_t implementation_flags(const cublasLtMatmulAlgo_t& algorithm) {
  std::uint64_t flags = 0;
  std::size_t written = 0;
  check(cublasLtMatmulAlgoCapGetAttribute(
            &algorithm, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags, sizeof flags, &written),
        "cublasLtMatmulAlgoCapGetAttribute");
  return flags;
}

/// The algorithms that the heuristics propose and that satisfy the arguments, best first.
Candidates candidates(const Device& device,
                      const LtArguments& arguments,
                      const LtDescriptors& lt,
                      bool by_mask) {
  const auto preference = lt_preference(arguments, k_workspace_limit, by_mask);
  Candidates all(k_candidates);
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(device.cublas,
                                                               lt.matmul.get(),
                                                               lt.a.get(),
                                                               lt.b.get(),
                                                               lt.d.get(),
                                                               lt.d.get(),
                                                               preference.get(),
                                                               k_candidates,
                                                               all.data(),
                                                               &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return {};
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  all.resize(static_cast<std::size_t>(found));
  std::erase_if(all, [&](const cublasLtMatmulHeuristicResult_t& candidate) {
    return candidate.state != CUBLAS_STATUS_SUCCESS ||
           !keeps_promises(arguments, implementation_flags(candidate.algo));
  });
  return all;
}

std::string describe(const cublasLtMatmulAlgo_t& algorithm) {
  const auto get = [&](cublasLtMatmulAlgoConfigAttributes_t name) {
    std::uint32_t value = 0;
    std::size_t written = 0;
    const auto status =
        cublasLtMatmulAlgoConfigGetAttribute(&algorithm, name, &value, sizeof value, &written);
    return status == CUBLAS_STATUS_SUCCESS ? value : 0;
  };
  return fmt::format("algorithm {} tile {} stages {} split {} flags {:#x}",
                     get(CUBLASLT_ALGO_CONFIG_ID),
                     get(CUBLASLT_ALGO_CONFIG_TILE_ID),
                     get(CUBLASLT_ALGO_CONFIG_STAGES_ID),
                     get(CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                     implementation_flags(algorithm));
}

/// Memory from the first to the last element of all matrices.
TrialOperand operand(const LtMatrix& matrix, std::int64_t batch) {
  return {matrix.leading * matrix.columns + (batch - 1) * matrix.batch_stride, matrix.dtype};
}

class RealMatmul final : public Matmul {
 public:
  RealMatmul(Device& device, const MatmulKey& key)
      : device_(device), arguments_(lt_arguments(key)), lt_(arguments_) {
    Candidates found = candidates(device, arguments_, lt_, true);
    // The heuristics of some versions return nothing under the mask; the algorithms' flags are
    // checked in any case.
    if (found.empty() && arguments_.strict_float32) {
      found = candidates(device, arguments_, lt_, false);
    }
    if (found.empty()) return;
    if (key.epilogue != Epilogue::none) {
      // The heuristics may propose algorithms for an epilogue that then refuse to run, and the
      // library does not promise that its ReLU propagates NaN, which the finite check needs.
      const bool relu =
          key.epilogue == Epilogue::bias_relu || key.epilogue == Epilogue::bias_relu_mask;
      std::erase_if(found, [&](const auto& candidate) { return !runs(candidate, relu); });
      if (found.empty()) return;
    }
    const std::size_t best =
        choose(device, to_string(key), found.size(), [&] { return measure(found); });
    chosen_ = found[best];
    usable_ = true;
  }

  bool usable() const { return usable_; }
  std::size_t workspace_bytes() const override { return chosen_.workspaceSize; }
  std::string description() const override { return describe(chosen_.algo); }
  bool uses_tensor_cores() const override {
    return (implementation_flags(chosen_.algo) & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK) != 0;
  }

  void run(const Operands& operands, void* workspace) override {
    run(chosen_, operands, workspace);
  }

 private:
  void run(const cublasLtMatmulHeuristicResult_t& how, const Operands& o, void* workspace) {
    if (arguments_.bias_elements > 0) lt_.set_bias(o.bias);
    if (arguments_.aux_leading > 0) lt_.set_mask(o.mask);
    const float alpha = 1;
    const float beta = o.accumulate ? 1.0F : 0.0F;
    // cuBLASLt's A is our B.
    check(cublasLtMatmul(device_.cublas,
                         lt_.matmul.get(),
                         &alpha,
                         o.b,
                         lt_.a.get(),
                         o.a,
                         lt_.b.get(),
                         &beta,
                         o.c,
                         lt_.d.get(),
                         o.c,
                         lt_.d.get(),
                         &how.algo,
                         workspace,
                         how.workspaceSize,
                         device_.stream),
          "cublasLtMatmul");
  }

  /// Memory for the operands of a trial.
  struct Trial {
    TrialOperand a, b, c, bias;
    Scratch mask, workspace;

    explicit Trial(const LtArguments& arguments)
        : a(operand(arguments.b, arguments.batch)),
          b(operand(arguments.a, arguments.batch)),
          c(operand(arguments.d, arguments.batch)),
          bias(arguments.bias_elements, arguments.bias_dtype),
          mask(aux_bytes(arguments)),
          workspace(k_workspace_limit) {}
    Operands operands() const {
      return {.a = a.address(),
              .b = b.address(),
              .c = c.address(),
              .bias = bias.address(),
              .mask = mask.address()};
    }
  };

  /// Whether the library runs a candidate and, with `keeps_nan`, gives NaN for NaN. Without memory
  /// for the trial: true where NaN is not asked for.
  bool runs(const cublasLtMatmulHeuristicResult_t& candidate, bool keeps_nan) {
    try {
      const Trial trial(arguments_);
      fill_nan(device_, {&trial.a, &trial.b, &trial.bias});
      run(candidate, trial.operands(), trial.workspace.address());
      check(cudaStreamSynchronize(device_.stream), "cudaStreamSynchronize");
      return !keeps_nan || is_nan(device_, trial.c);
    } catch (const VendorError& error) {
      return error.failure() == Failure::out_of_memory && !keeps_nan;
    }
  }

  /// The fastest candidate.
  std::size_t measure(const Candidates& found) {
    const Trial trial(arguments_);
    fill_random(device_, {&trial.a, &trial.b, &trial.c, &trial.bias});
    std::vector<std::function<void()>> all;
    for (const cublasLtMatmulHeuristicResult_t& candidate : found) {
      all.emplace_back([&] { run(candidate, trial.operands(), trial.workspace.address()); });
    }
    return fastest(device_, all);
  }

  Device& device_;
  LtArguments arguments_;
  LtDescriptors lt_;
  cublasLtMatmulHeuristicResult_t chosen_{};
  bool usable_ = false;
};

}  // namespace

std::unique_ptr<Matmul> prepare_matmul(Device& device, const MatmulKey& key) {
  auto matmul = std::make_unique<RealMatmul>(device, key);
  if (!matmul->usable()) return nullptr;
  return matmul;
}

}  // namespace halfstep::backend::cuda::real
