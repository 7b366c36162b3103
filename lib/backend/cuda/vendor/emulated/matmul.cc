#include <cstring>

#include "backend/cuda/vendor/emulated/libraries.h"
#include "backend/cuda/vendor/emulated/queue.h"
#include "backend/cuda/vendor/emulated/values.h"

namespace halfstep::backend::cuda::emulated {
namespace {

// The alignment and workspace that the real vendor uses with cuBLASLt (real/matmul.cc).
constexpr std::size_t k_operand_alignment = 16;
constexpr std::size_t k_workspace = 4096;

bool has(LtEpilogue epilogue, std::uint32_t bit) {
  return (static_cast<std::uint32_t>(epilogue) & bit) != 0;
}

/// The rows of op(M), for a column-major matrix M, as contiguous floats: [columns][rows].
std::vector<float> operand(const LtMatrix& matrix,
                           const void* data,
                           std::int64_t batch,
                           bool transpose) {
  const std::int64_t rows = transpose ? matrix.columns : matrix.rows;
  const std::int64_t columns = transpose ? matrix.rows : matrix.columns;
  std::vector<float> out(static_cast<std::size_t>(rows * columns));
  std::size_t next = 0;
  for (std::int64_t column = 0; column < columns; ++column) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at =
          transpose ? row * matrix.leading + column : column * matrix.leading + row;
      out[next++] = load_one(matrix.dtype, data, batch * matrix.batch_stride + at);
    }
  }
  return out;
}

bool mask_bit(const std::uint8_t* column, std::int64_t row) {
  return ((column[row / 8] >> (row % 8)) & 1U) != 0;
}

void set_mask_bit(std::uint8_t* column, std::int64_t row, bool value) {
  const auto bit = static_cast<std::uint8_t>(1U << (row % 8));
  if (value) {
    column[row / 8] = static_cast<std::uint8_t>(column[row / 8] | bit);
  } else {
    column[row / 8] = static_cast<std::uint8_t>(column[row / 8] & ~bit);
  }
}

/// The forward epilogues on one column of D.
void apply_forward(const LtArguments& lt, const void* bias, std::uint8_t* mask, float* column) {
  for (std::int64_t i = 0; i < lt.m; ++i) {
    float& x = column[i];
    if (has(lt.epilogue, 4)) x += load_one(lt.bias_dtype, bias, i);
    if (!has(lt.epilogue, 2)) continue;
    if (has(lt.epilogue, 128)) set_mask_bit(mask, i, x > 0);
    x = x > 0 || x != x ? x : 0.0F;
  }
}

/// The backward epilogues on one column of D.
void apply_backward(const LtArguments& lt, const std::uint8_t* mask, float* column, float* sums) {
  for (std::int64_t i = 0; i < lt.m; ++i) {
    if (!mask_bit(mask, i)) column[i] = 0;
    sums[i] += column[i];
  }
}

class EmulatedMatmul final : public Matmul {
 public:
  EmulatedMatmul(const MatmulKey& key, Stream stream)
      : arguments_(lt_arguments(key)), stream_(stream) {}

  std::size_t workspace_bytes() const override { return k_workspace; }
  std::string description() const override {
    const bool tf32 = arguments_.compute == LtCompute::float32_fast_tf32;
    return tf32 ? "emulated, float32 sums, tf32 allowed" : "emulated, float32 sums";
  }
  bool uses_tensor_cores() const override { return false; }

  void run(const Operands& o, void* workspace) override {
    expect_aligned(o.a, k_operand_alignment, "A");
    expect_aligned(o.b, k_operand_alignment, "B");
    expect_aligned(o.c, k_operand_alignment, "C");
    if (arguments_.bias_elements > 0) expect_aligned(o.bias, k_operand_alignment, "bias");
    if (arguments_.aux_leading > 0) expect_aligned(o.mask, k_operand_alignment, "mask");
    expect_aligned(workspace, k_alignment, "workspace");
    enqueue(stream_, [lt = arguments_, o, workspace] {
      std::memset(workspace, 0xff, k_workspace);
      run_lt(lt, o.b, o.a, o.c, o.accumulate, o.bias, o.mask);
    });
  }

 private:
  LtArguments arguments_;
  Stream stream_;
};

}  // namespace

void run_lt(const LtArguments& lt,
            const void* lt_a,
            const void* lt_b,
            void* d,
            bool accumulate,
            void* bias,
            void* mask) {
  const auto m = static_cast<std::size_t>(lt.m);
  const auto k = static_cast<std::size_t>(lt.k);
  std::vector<float> column(m);
  std::vector<float> bias_sums(m, 0.0F);
  for (std::int64_t batch = 0; batch < lt.batch; ++batch) {
    const std::vector<float> a = operand(lt.a, lt_a, batch, lt.transpose_a);  // [k][m]
    const std::vector<float> b = operand(lt.b, lt_b, batch, lt.transpose_b);  // [n][k]
    for (std::int64_t n = 0; n < lt.n; ++n) {
      const std::int64_t at = batch * lt.d.batch_stride + n * lt.d.leading;
      auto* mask_column = static_cast<std::uint8_t*>(mask) + n * (lt.aux_leading / 8);
      std::fill(column.begin(), column.end(), 0.0F);
      for (std::size_t l = 0; l < k; ++l) {
        const float factor = b[static_cast<std::size_t>(n) * k + l];
        const float* a_column = a.data() + l * m;
        for (std::size_t i = 0; i < m; ++i) column[i] += a_column[i] * factor;
      }
      if (accumulate) {
        for (std::int64_t i = 0; i < lt.m; ++i) {
          column[static_cast<std::size_t>(i)] += load_one(lt.d.dtype, d, at + i);
        }
      }
      if (has(lt.epilogue, 8)) {
        apply_backward(lt, mask_column, column.data(), bias_sums.data());
      } else {
        apply_forward(lt, bias, mask_column, column.data());
      }
      for (std::int64_t i = 0; i < lt.m; ++i) {
        store_one(lt.d.dtype, d, at + i, column[static_cast<std::size_t>(i)]);
      }
    }
    if (lt.epilogue == LtEpilogue::bgrada) {
      for (std::size_t l = 0; l < k; ++l) {
        for (std::size_t i = 0; i < m; ++i) bias_sums[i] += a[l * m + i];
      }
    }
  }
  if (has(lt.epilogue, 16 | 256)) {
    for (std::size_t i = 0; i < m; ++i) {
      store_one(lt.bias_dtype, bias, static_cast<std::int64_t>(i), bias_sums[i]);
    }
  }
}

std::unique_ptr<Matmul> prepare_matmul(const MatmulKey& key, Stream stream) {
  // cuBLASLt does not support each epilogue for each shape either; its heuristics then return
  // nothing.
  const std::size_t row_bytes = static_cast<std::size_t>(key.n) * size_bytes(key.out);
  if (key.epilogue != Epilogue::none && row_bytes % k_operand_alignment != 0) return nullptr;
  return std::make_unique<EmulatedMatmul>(key, stream);
}

}  // namespace halfstep::backend::cuda::emulated
