// y = op(a) op(b), where op is the identity or the transposition, expressed as strides. Stored
// dtypes: float32, bfloat16, float16; accumulated in float32, rounded once.

#include "backend/cpu/onednn/api.h"
#include "backend/cpu/onednn/onednn.h"
#include "backend/cpu/onednn/program.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cpu::onednn {
namespace {

/// A (batched) matmul and the memory layout of its operands.
struct MatMulDims {
  dnnl::memory::dims a, b, y;
  bool transpose_a = false;
  bool transpose_b = false;
};

bool is_batched(const NodeView& node) { return node.node.is(graph::ops::k_batch_matmul_v2); }

MatMulDims matmul_dims(const NodeView& node) {
  MatMulDims p;
  p.transpose_a = node.attrs().get<bool>(is_batched(node) ? "adj_x" : "transpose_a");
  p.transpose_b = node.attrs().get<bool>(is_batched(node) ? "adj_y" : "transpose_b");
  // Missing batch axes are broadcast as leading extents of 1.
  const std::size_t rank = node.output().shape.rank();
  const auto dims = [&](const Shape& shape, bool transposed) {
    dnnl::memory::dims d(rank - shape.rank(), 1);
    d.insert(d.end(), shape.begin(), shape.end());
    if (transposed) std::swap(d[rank - 1], d[rank - 2]);
    return d;
  };
  p.a = dims(node.input(0).shape, p.transpose_a);
  p.b = dims(node.input(1).shape, p.transpose_b);
  p.y = dims(node.output().shape, false);
  return p;
}

/// Whether reordering b into a packed copy pays: with many rows of a, each block of b would be
/// packed many times, and 16-bit GEMMs need b in pairs of rows. Measured with bench_kernels.
bool pack_b(const MatMulDims& p, bool is_bfloat16) {
  if (p.y.size() != 2) return false;
  const dnnl::memory::dim rows = p.y[0], columns = p.y[1], terms = p.b[0];
  if (is_bfloat16) return !p.transpose_a && rows >= 1024;
  // float32 GEMMs read row-major b fast enough unless all three extents are large.
  constexpr dnnl::memory::dim k_much = 512;
  return !p.transpose_b && rows >= k_much && columns >= k_much && terms >= k_much;
}

/// The gap between rows in elements: a cache line.
constexpr dnnl::memory::dim k_gap = 16;

/// Whether b is copied to rows with a gap. If a has few rows, oneDNN's AVX2 GEMM reads columns of b
/// in place: with rows of a multiple of 2 KiB a column maps to one or two sets of an L1 cache of 8
/// ways.
bool spreads_b(const MatMulDims& p, Isa isa) {
  constexpr dnnl::memory::dim k_few = 512, k_bad_row = 2048 / sizeof(float);
  // For fewer elements the copy takes longer than the matmul gains.
  constexpr dnnl::memory::dim k_min = 16;
  if (p.y.size() != 2 || p.transpose_b || isa != Isa::avx2) return false;
  return p.y[0] >= k_min && p.y[0] < k_few && p.y[1] % k_bad_row == 0;
}

/// Minimum number of multiplications for which other threads are woken.
constexpr dnnl::memory::dim k_waking_work = 1 << 18;

bool is_small(const MatMulDims& p) {
  dnnl::memory::dim work = p.b[p.b.size() - 2];
  for (const dnnl::memory::dim extent : p.y) work *= extent;
  return work < k_waking_work;
}

Prepared build_matmul(const NodeView& node,
                      const MatMulDims& p,
                      const Capabilities& capabilities,
                      Arithmetic arithmetic) {
  Program program(node, arithmetic, capabilities);
  const auto a = program.matrix(p.a, p.transpose_a);
  const auto b = program.matrix(p.b, p.transpose_b);
  const auto y = program.matrix(p.y, false);
  const bool is_bfloat16 =
      arithmetic == Arithmetic::native && node.output().dtype == DType::bfloat16;
  const bool spread = spreads_b(p, std::min(capabilities.isa, effective_isa()));
  const auto layout = spread                   ? program.matrix(p.b, false, k_gap)
                      : pack_b(p, is_bfloat16) ? program.any(p.b)
                                               : b;
  const auto how = matmul(engine(), a, layout, y, attributes());
  const Program::Memory src = program.input(0, a);
  const Program::Memory weights = spread
                                      ? program.spread_input(1, p.b, k_gap)
                                      : program.in_layout(program.input(1, b), how.weights_desc());
  const Program::Memory dst = program.output(0, y);
  program.run(dnnl::matmul(how),
              how.scratchpad_desc(),
              {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}});
  if (is_small(p)) program.keep_to_calling_thread();
  return program.finish();
}

Prepared build(const NodeView& node, const Capabilities& capabilities, Arithmetic arithmetic) {
  const MatMulDims p = matmul_dims(node);
  if (!is_small(p)) return build_matmul(node, p, capabilities, arithmetic);
  Prepared prepared;
  on_calling_thread([&] { prepared = build_matmul(node, p, capabilities, arithmetic); });
  return prepared;
}

}  // namespace

std::vector<Kernel> matmul_kernels() {
  std::vector<Kernel> kernels;
  for (const std::string_view op : {"MatMul", "BatchMatMulV2"}) {
    kernels.push_back(kernel<build, Arithmetic::native>(op, "onednn/matmul"));
    kernels.push_back(kernel<build, Arithmetic::by_float32>(op, "onednn/matmul by float32"));
    kernels.back().widens = true;
  }
  return kernels;
}

}  // namespace halfstep::backend::cpu::onednn
