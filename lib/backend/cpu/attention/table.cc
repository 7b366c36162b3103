#include "backend/cpu/attention/items.h"
#include "backend/cpu/kernels.h"
#include "core/philox.h"

namespace halfstep::backend::cpu {
namespace attention {
namespace {

Accepts accepts(const NodeView& node, const Capabilities&) {
  const DType dtype = node.input(0).dtype;
  if (Accepts a = vector::accepts_dtype(dtype); !a) return a;
  const bool backward = node.outputs() == 3;
  const DType sums = backward ? node.input(5).dtype : node.output(1).dtype;
  return sums == DType::float32 ? Accepts::yes() : Accepts::no("a log_sum_exp in float64");
}

template <Prepared (*prepare)(const NodeView&, const Capabilities&, const packed::HalfMicroKernel&)>
Prepared prepared(const NodeView& node, const Capabilities& capabilities) {
  const DType dtype = node.input(0).dtype;
  return prepare(node, capabilities, packed::half_microkernel(capabilities.isa, dtype));
}

}  // namespace

RowMath::RowMath(Isa isa, DType dtype)
    : loops(vector::loops(isa)),
      add(find_entry(loops.maps, "AddV2")->loop),
      mul(find_entry(loops.maps, "Mul")->loop),
      log(find_entry(loops.maps, "Log")->loop),
      sum(find_entry(loops.reductions, "Sum")->run),
      source(loops, dtype),
      sink(loops, dtype) {}

UnmaskedKeys KeyMask::of_item(const Args& args, I64 item, float* flags) const {
  const I64 keys = geometry_.keys;
  if (input_ == 0) return {0, keys, nullptr};
  const bool* mask = args.in[input_].as<bool>() + item / geometry_.heads * keys;
  UnmaskedKeys unmasked{keys, 0, flags};
  std::fill_n(flags, this->flags(), 0.0F);
  for (I64 i = 0; i < keys; ++i) {
    if (!mask[i]) continue;
    flags[i] = 1;
    unmasked.begin = std::min(unmasked.begin, i);
    unmasked.end = i + 1;
  }
  return unmasked;
}

void WeightFactors::block(const vector::Loops& loops,
                          const Args& args,
                          const Block& block,
                          bool transposed,
                          float* to) const {
  // Philox gives four values per counter; those of a row span up to nine counters.
  constexpr I64 k_counters = k_block_size / 4 + 1;
  std::uint64_t counters[k_block_size * k_counters];
  float uniforms[k_block_size * k_counters * 4];
  I64 offsets[k_block_size], count = 0;
  for (I64 r = 0; r < block.queries; ++r) {
    const I64 first = dropout_.first + geometry_.weight(block.item, block.query + r, block.key);
    offsets[r] = 4 * count + first % 4;
    for (I64 counter = first / 4; counter <= (first + block.keys - 1) / 4; ++counter) {
      counters[count++] = static_cast<std::uint64_t>(counter);
    }
  }
  const auto ordinal = static_cast<std::uint64_t>(*args.in[ordinal_].as<std::int64_t>());
  loops.uniforms(uniforms, dropout_.seed, mix(dropout_.stream, ordinal), counters, count);
  const auto rate = static_cast<float>(dropout_.rate);
  const auto scale = static_cast<float>(dropout_.scale());
  alignas(64) float by_query[k_block_floats];
  float* rows = transposed ? by_query : to;
  if (block.queries < k_block_size || block.keys < k_block_size)
    std::fill_n(rows, k_block_floats, 0.0F);
  for (I64 r = 0; r < block.queries; ++r) {
    const float* row = uniforms + offsets[r];
    for (I64 c = 0; c < block.keys; ++c) rows[r * k_block_size + c] = row[c] >= rate ? scale : 0.0F;
  }
  if (transposed) packed::transpose_block(by_query, k_block_size, to);
}

void copy_block(void* context, const float* accumulators, I64 block) {
  packed::copy_accumulators(accumulators,
                            k_block_size,
                            k_block_size,
                            static_cast<float*>(context) + block * k_block_floats);
}

}  // namespace attention

std::span<const Kernel> attention_kernels() {
  static const Kernel k_kernels[] = {
      {"FusedAttention",
       "attention/blocks",
       attention::accepts,
       attention::prepared<attention::prepare_forward>},
      {"FusedAttentionGrad",
       "attention/blocks_grad",
       attention::accepts,
       attention::prepared<attention::prepare_backward>},
  };
  return k_kernels;
}

}  // namespace halfstep::backend::cpu
