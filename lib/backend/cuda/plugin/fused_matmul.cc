// Matmuls with epilogues: in the library's epilogue where it supports it, else a plain matmul
// followed by own kernels.

#include <fmt/format.h>

#include <array>

#include "backend/cuda/kernels/bias.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/kernels/narrow_gradient.h"
#include "backend/cuda/plugin/library_matmul.h"
#include "backend/cuda/vendor/matmul_padding.h"
#include "backend/functions/activation.h"
#include "core/error.h"
#include "graph/ops/fused.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// The launches of a node in order; run() fills in the addresses.
struct Parts {
  std::shared_ptr<LibraryMatmul> matmul;
  Epilogue epilogue = Epilogue::none;  ///< the part that the library's epilogue does
  bool adds_bias = false;              ///< by an own kernel
  bool relu = false;                   ///< in the same kernel
  kernels::Binary mask = nullptr;      ///< own kernel: zero where the features are not positive
  std::optional<kernels::BiasGradParams> sums;  ///< column sums of c, or of b
  bool masks_in_sums = false;                   ///< their kernel applies the mask, too
};

MatmulKey with(MatmulKey key, Epilogue epilogue) {
  key.epilogue = epilogue;
  return key;
}

/// The key of the matmul that shares a mask with that of `key`; its reduction length is `k`.
MatmulKey partner_of(MatmulKey key, std::int64_t k) {
  const bool writes = key.epilogue == Epilogue::bias_relu_mask;
  key.k = k;
  key.transpose_b = writes;
  key.epilogue = writes ? Epilogue::relu_gradient : Epilogue::bias_relu_mask;
  return key;
}

/// Whether an own kernel applies the gradient of a ReLU to a result of this size. On an H200
/// cuBLASLt adds 23 us for the mask of 8192 x 4096 elements of float16, 28 to 45 us to apply it,
/// and 190 us where it sums the columns as well; the kernel does all of that in 58 us, without a
/// mask. Below a million elements the further launch costs more.
bool masks_by_own_kernel(const MatmulKey& key) {
  constexpr std::int64_t k_elements = 1 << 20;
  return key.m * key.n >= k_elements;
}

/// Whether the library implements both matmuls that share a mask; both call this and get the same
/// answer.
bool library_masks(const MatmulKey& key, std::int64_t partner_k, const DeviceContext& context) {
  if (masks_by_own_kernel(key)) return false;
  const Epilogue own =
      key.epilogue == Epilogue::bias_relu_mask ? key.epilogue : Epilogue::relu_gradient;
  return LibraryMatmul::find(with(key, own), context) != nullptr &&
         LibraryMatmul::find(partner_of(key, partner_k), context) != nullptr;
}

/// Chooses the first of these epilogues that the library supports; none, the plain matmul, is last.
void choose(Parts& parts,
            const MatmulKey& key,
            std::initializer_list<Epilogue> wishes,
            const DeviceContext& context) {
  for (const Epilogue wish : wishes) {
    parts.matmul = LibraryMatmul::find(with(key, wish), context);
    parts.epilogue = wish;
    if (parts.matmul) return;
  }
  parts.matmul = LibraryMatmul::get(with(key, Epilogue::none), context);
  parts.epilogue = Epilogue::none;
}

Parts forward(const MatmulKey& key, bool masks, const DeviceContext& context) {
  Parts parts;
  parts.relu = key.epilogue != Epilogue::bias;
  if (masks) {
    choose(parts, key, {Epilogue::bias_relu_mask}, context);
  } else {
    choose(parts, key, {parts.relu ? Epilogue::bias_relu : Epilogue::bias}, context);
  }
  parts.adds_bias = parts.epilogue == Epilogue::none;
  return parts;
}

Parts backward(const MatmulKey& key, bool masks, const DeviceContext& context) {
  Parts parts;
  const bool sums = key.epilogue == Epilogue::relu_gradient_bias_gradient;
  if (!masks) {
    choose(parts, key, {}, context);
  } else if (sums) {
    choose(parts, key, {Epilogue::relu_gradient_bias_gradient, Epilogue::relu_gradient}, context);
  } else {
    choose(parts, key, {Epilogue::relu_gradient}, context);
  }
  const bool own_mask = parts.epilogue == Epilogue::none;
  if (own_mask && !sums) parts.mask = kernels::binary_of(functions::ReluGrad::op);
  if (sums && parts.epilogue != Epilogue::relu_gradient_bias_gradient) {
    parts.masks_in_sums = own_mask;
    parts.sums = {.dtype = key.out, .outer = key.m, .channels = key.n, .tickets = context.tickets};
  }
  return parts;
}

/// Whether the library computes a large matmul of 16 bits with its epilogue without tensor cores,
/// but the plain matmul with them. On an H200 a step of gru_rows takes 138 us longer in
/// bfloat16 than in float16; the weight gradient of its projections, 28 x 384 x 3584, is the launch
/// for which cuBLASLt chose such an algorithm.
bool misses_tensor_cores(const LibraryMatmul& fused,
                         const MatmulKey& key,
                         const DeviceContext& context) {
  constexpr std::int64_t k_multiplications = 1 << 22;
  return is_half(key.in) && key.m * key.n * key.k >= k_multiplications &&
         !fused.uses_tensor_cores() &&
         LibraryMatmul::get(with(key, Epilogue::none), context)->uses_tensor_cores();
}

/// Whether an own kernel computes the gradient of a dense layer's weights and bias, for which the
/// library has no tensor cores: for 1,024 rows, 128 inputs and ten classes it took 47 us in
/// bfloat16 on an H200, and the kernel 16. In float16 the library took 15, and for 8,192 rows and
/// 4,096 inputs padded copies take 28 and the kernel 55 to 65.
bool is_narrow(const MatmulKey& key, const LibraryMatmul& matmul) {
  using Params = kernels::NarrowGradientParams;
  constexpr std::int64_t k_elements = 1 << 17;
  const std::int64_t column_blocks = key.m / Params::k_multiple;  // an upper bound
  return key.epilogue == Epilogue::sums_of_b && is_half(key.in) && !padding_of(key) &&
         !matmul.uses_tensor_cores() && key.n <= Params::k_max_outputs &&
         key.m % Params::k_multiple == 0 && column_blocks <= kernels::Tickets::k_count &&
         key.m * key.k >= k_elements;
}

PreparedKernel prepare_narrow_gradient(const MatmulKey& key, const DeviceContext& context) {
  kernels::NarrowGradientParams params{.dtype = key.in,
                                       .rows = key.k,
                                       .inputs = key.m,
                                       .outputs = key.n,
                                       .tickets = context.tickets};
  return {[=, stream = context.stream()](const Args& a) mutable {
            params.x = a.in[0].data;
            params.dy = a.in[1].data;
            params.dw = a.out[0].data;
            params.dbias = a.out[1].data;
            params.workspace = a.workspace;
            kernels::narrow_gradient(stream, params);
          },
          kernels::narrow_gradient_workspace(params),
          "an own kernel for few outputs, without tensor cores",
          false};
}

Parts weights(const MatmulKey& key, const DeviceContext& context) {
  Parts parts;
  choose(parts, key, {Epilogue::sums_of_b}, context);
  if (parts.epilogue != Epilogue::none && misses_tensor_cores(*parts.matmul, key, context)) {
    choose(parts, key, {}, context);
  }
  if (parts.epilogue == Epilogue::none) {
    parts.sums = {.dtype = key.in, .outer = key.k, .channels = key.n, .tickets = context.tickets};
  }
  return parts;
}

Parts parts_of(const MatmulKey& key, std::int64_t partner_k, const DeviceContext& context) {
  switch (key.epilogue) {
    case Epilogue::bias_relu_mask:
      return forward(key, library_masks(key, partner_k, context), context);
    case Epilogue::relu_gradient:
    case Epilogue::relu_gradient_bias_gradient:
      return backward(key, library_masks(key, partner_k, context), context);
    case Epilogue::sums_of_b:
      return weights(key, context);
    default:
      return forward(key, false, context);
  }
}

/// The ops after a matmul, and those of them that the library's epilogue does.
std::string epilogue_text(Epilogue wanted, Epilogue fused) {
  if (fused == wanted) return fmt::format(", {} fused", name(wanted));
  if (fused == Epilogue::none) return fmt::format(", {} by own kernels", name(wanted));
  return fmt::format(", {} fused, the rest of {} by own kernels", name(fused), name(wanted));
}

PreparedKernel prepare_fused_matmul(const NodeView& node, const DeviceContext& context) {
  MatmulKey key = matmul_key(node.input(0),
                             node.input(1),
                             node.attrs().get<bool>("transpose_a"),
                             node.attrs().get<bool>("transpose_b"),
                             node.output(),
                             context);
  key.epilogue = epilogue_named(node.attrs().get<std::string>("epilogue"));
  Parts parts = parts_of(key, node.attrs().get<std::int64_t>("partner_k"), context);
  if (is_narrow(key, *parts.matmul)) return prepare_narrow_gradient(key, context);
  const std::size_t matmul_bytes = aligned(parts.matmul->workspace_bytes());
  const std::size_t sum_bytes = parts.sums ? kernels::bias_grad_workspace(*parts.sums) : 0;
  const graph::ops::FusedEpilogue& epilogue = traits_of(key.epilogue);
  return {[=, stream = context.stream()](const Args& a) {
            void* const c = a.out[0].data;
            Matmul::Operands operands{.a = a.in[0].data, .b = a.in[1].data, .c = c};
            if (epilogue.bias) operands.bias = a.in[2].data;
            if (epilogue.sums) operands.bias = a.out[1].data;
            if (epilogue.reads_mask) operands.mask = a.in[2].data;
            if (epilogue.writes_mask) operands.mask = a.out[1].data;
            parts.matmul->run(operands, a.workspace);
            if (parts.adds_bias) {
              kernels::bias_add(stream,
                                {.dtype = key.out,
                                 .x = c,
                                 .bias = a.in[2].data,
                                 .y = c,
                                 .outer = key.m,
                                 .channels = key.n,
                                 .relu = parts.relu});
            }
            if (parts.mask != nullptr) {
              const Shape shape{key.m, key.n};
              parts.mask(stream,
                         {.dtype = key.out,
                          .a = c,
                          .b = a.in[3].data,
                          .y = c,
                          .a_shape = shape,
                          .b_shape = shape,
                          .shape = shape});
            }
            if (parts.sums) {
              kernels::BiasGradParams params = *parts.sums;
              params.dy = epilogue.reads_mask ? c : a.in[1].data;
              if (parts.masks_in_sums) {
                params.features = a.in[3].data;
                params.masked = c;
              }
              params.dbias = a.out[1].data;
              params.workspace = a.workspace + matmul_bytes;
              kernels::bias_grad(stream, params);
            }
          },
          matmul_bytes + sum_bytes,
          parts.matmul->algorithm() + epilogue_text(key.epilogue, parts.epilogue),
          parts.matmul->uses_tensor_cores()};
}

}  // namespace

std::vector<Implementation> fused_matmul_kernels() {
  return {
      {"cublaslt/fused_matmul", prepare_fused_matmul},
  };
}

}  // namespace halfstep::backend::cuda::plugin
