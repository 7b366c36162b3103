#pragma once
// What follows the sums of a PackedMatMul: bias, activation and mask, then a result for each form.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/cpu/packed/blocks.h"
#include "backend/cpu/packed/layout.h"
#include "backend/kernel.h"

namespace halfstep::backend::cpu::packed {

class Finisher {
 public:
  Finisher(const NodeView& node, const Blocks& blocks);

  std::size_t workspace_bytes() const;

  /// A finisher with the memory of one launch.
  class Bound {
   public:
    /// Block (i, j) of the sums; blocks come in any order, from several threads.
    void finish(const float* sums, std::int64_t i, std::int64_t j) const;
    /// After the last block.
    void complete() const;

   private:
    friend class Finisher;
    Bound(const Finisher& finisher, const Args& args, std::byte* workspace);
    /// Where the result of a form lies, or null.
    template <class T = std::byte>
    T* result(char form) const;

    const Finisher& f_;
    const Args& args_;
    float* bias_ = nullptr;         // [padded n]
    float* column_sums_ = nullptr;  // [row panels, padded n]
    const std::uint32_t* mask_ = nullptr;
  };
  Bound bind(const Args& args, std::byte* workspace) const { return {*this, args, workspace}; }

 private:
  bool has(char form) const { return forms_.find(form) != std::string::npos; }

  std::int64_t m_, n_;
  DType dtype_;
  Layout as_a_, as_columns_;  // of the result: rows m, and rows (or columns) n with depth m
  bool relu_;
  std::size_t bias_port_ = 0, mask_port_ = 0;  // 0: none
  std::string forms_;
  Finish finish_;
};

}  // namespace halfstep::backend::cpu::packed
