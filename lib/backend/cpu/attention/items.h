#pragma once
// The matmuls, loops and memory that the forward and the backward kernel of attention share. A
// thread computes an item (a head of a sample): it packs its operands once, and stores the scores
// of 32 rows at a time.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/packed/panel_gemm.h"
#include "backend/cpu/vector/kernels.h"
#include "backend/cpu/workspace_layout.h"
#include "backend/kernel.h"
#include "core/parallel.h"
#include "graph/ops/attention.h"

namespace halfstep::backend::cpu::attention {

using I64 = std::int64_t;
using graph::ops::AttentionGeometry;
using packed::k_block_floats;
using packed::k_block_size;
using packed::Operand;
using packed::Order;
using packed::PanelLayout;

/// Elementwise loops and the conversion from and to the node's dtype.
struct RowMath {
  const vector::Loops& loops;
  vector::Map add, mul, log;
  float (*sum)(const float* x, std::int64_t n);
  vector::Source source;
  vector::Sink sink;

  RowMath(Isa isa, DType dtype);
};

/// The rows of an item in a tensor with rows of `width` values.
struct Rows {
  I64 first, stride;

  I64 operator[](I64 i) const { return first + i * stride; }
  Rows from(I64 i) const { return {(*this)[i], stride}; }
};
inline Rows rows_of(const AttentionGeometry& g, I64 item, I64 steps, I64 width) {
  return {g.first(item, steps, width), g.stride(width)};
}

/// The keys of an item that the mask of keys does not hide; all keys without a mask.
struct UnmaskedKeys {
  I64 begin, end;      ///< the first key and the end; begin is above end if there is none
  const float* flags;  ///< 1 for an unmasked key, else 0, padded with 0; null without a mask

  const float* from(I64 key) const { return flags == nullptr ? nullptr : flags + key; }
  /// Whether any of `count` keys is unmasked.
  bool any(I64 first, I64 count) const {
    return flags == nullptr ||
           std::any_of(flags + first, flags + first + count, [](float flag) { return flag != 0; });
  }
};

/// The mask of keys in one launch.
class KeyMask {
 public:
  /// `input`: the index of the mask, where the node has one.
  KeyMask(const NodeView& node, const AttentionGeometry& geometry, std::size_t input)
      : geometry_(geometry), input_(node.inputs() > input ? input : 0) {}

  /// Floats that of_item() writes.
  I64 flags() const {
    return input_ == 0 ? 0 : divide_up(geometry_.keys, k_block_size) * k_block_size;
  }
  UnmaskedKeys of_item(const Args& args, I64 item, float* flags) const;

 private:
  AttentionGeometry geometry_;
  std::size_t input_;  ///< 0: there is no mask
};

/// The dropout of weights in one launch.
class WeightFactors {
 public:
  /// `ordinal`: the input of this index, where the node has dropout.
  WeightFactors(const NodeView& node, const AttentionGeometry& geometry, std::size_t ordinal)
      : geometry_(geometry), dropout_(node.attrs()), ordinal_(ordinal) {}

  explicit operator bool() const { return dropout_.rate > 0; }
  /// A block of `queries` x `keys` weights of an item, at most 32 x 32.
  struct Block {
    I64 item, query, key, queries, keys;
  };
  /// The factors of a block as 32 x 32 floats, a row for each query or, `transposed`, for each key,
  /// with zeros outside of the block.
  void block(const vector::Loops& loops,
             const Args& args,
             const Block& block,
             bool transposed,
             float* to) const;

 private:
  AttentionGeometry geometry_;
  graph::ops::AttentionDropout dropout_;
  std::size_t ordinal_;
};

/// A packed operand in the memory of a part.
struct PackedOperand {
  PanelLayout layout;
  I64 offset = 0;
};

/// The memory of a part in the workspace.
struct PartMemory {
  std::byte* base;
  const packed::PanelGemm& gemm;

  template <class T = std::byte>
  T* at(I64 offset) const {
    return reinterpret_cast<T*>(base + offset);
  }
  /// Packs an operand of an item, given its rows in `x`.
  void pack(Operand operand,
            Order order,
            const TensorView& x,
            const Rows& rows,
            const PackedOperand& to) const {
    const std::byte* first = x.as<std::byte>() + rows.first * gemm.element_bytes();
    gemm.pack_all(operand, order, first, rows.stride, to.layout, at(to.offset));
  }
};

/// Calls body(i, memory) for `count` units of work, on all threads; each of `parts` parts has
/// `part_bytes` of the workspace.
template <class F>
void for_each_unit(const packed::PanelGemm& gemm,
                   I64 count,
                   I64 parts,
                   I64 part_bytes,
                   const Args& args,
                   const F& body) {
  parallel_for(parts, 1, [&](I64 begin, I64 end) {
    gemm.begin();
    for (I64 part = begin; part < end; ++part) {
      const PartMemory memory{args.workspace + part * part_bytes, gemm};
      for (I64 i = count * part / parts; i < count * (part + 1) / parts; ++i) body(i, memory);
    }
    gemm.end();
  });
}

/// Copies the accumulators of a block to 32 x 32 floats, row-major, at `context` + block * 1024.
void copy_block(void* context, const float* accumulators, I64 block);

inline constexpr I64 k_float = sizeof(float);
inline I64 panels_of(I64 rows) { return divide_up(rows, k_block_size); }

/// FusedAttention and FusedAttentionGrad; `half`: the microkernel of 16-bit operands, if any.
Prepared prepare_forward(const NodeView& node,
                         const Capabilities& capabilities,
                         const packed::HalfMicroKernel& half);
Prepared prepare_backward(const NodeView& node,
                          const Capabilities& capabilities,
                          const packed::HalfMicroKernel& half);

}  // namespace halfstep::backend::cpu::attention
