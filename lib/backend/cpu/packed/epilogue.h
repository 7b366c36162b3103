#pragma once
// The epilogue of a PackedMatMul: bias, activation and mask on the float32 accumulators, then one
// rounded output per letter of the attribute `forms`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/layout.h"
#include "backend/kernel.h"

namespace halfstep::backend::cpu::packed {

class Epilogue {
 public:
  /// Reads m, n, T, bias, activation, mask and `forms` of a PackedMatMul.
  Epilogue(const NodeView& node, const BlockKernels& blocks);

  /// For a padded copy of the bias and for the column sums of each row panel.
  std::size_t workspace_bytes() const;

  /// The epilogue with the addresses of one launch.
  class Bound {
   public:
    /// Applies the epilogue to the accumulators of block (i, j). Thread-safe; blocks in any order.
    void apply(const float* accumulators, std::int64_t i, std::int64_t j) const;
    /// To be called on each thread after its last block, before others may read its results.
    void complete_part() const;
    /// Completes the results after the last block: reduces the column sums.
    void complete() const;

   private:
    friend class Epilogue;
    Bound(const Epilogue& epilogue, const Args& args, std::byte* workspace);
    /// The address of the output with this letter, or null.
    template <class T = std::byte>
    T* result(char output) const;

    const Epilogue& f_;
    const Args& args_;
    float* bias_ = nullptr;         // [padded n]
    float* column_sums_ = nullptr;  // [row panels, padded n]
    const std::uint32_t* mask_ = nullptr;
  };
  Bound bind(const Args& args, std::byte* workspace) const { return {*this, args, workspace}; }

 private:
  bool has(char output) const { return outputs_.find(output) != std::string::npos; }

  std::int64_t m_, n_;
  DType dtype_;
  Layout as_a_, as_columns_;  // of the result as an operand: m rows, and n rows (or columns)
  bool relu_;
  std::size_t bias_port_ = 0, mask_port_ = 0;  // 0: none
  std::string outputs_;
  BlockEpilogue block_epilogue_;
  void (*fence_)();
};

}  // namespace halfstep::backend::cpu::packed
