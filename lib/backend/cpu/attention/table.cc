#include "backend/cpu/attention/items.h"
#include "backend/cpu/kernels.h"
#include "core/philox.h"

namespace halfstep::backend::cpu {
namespace attention {
namespace {

Accepts accepts(const NodeView& node, const Capabilities&) {
  const DType dtype = node.input(0).dtype;
  if (!vector::is_computed(dtype)) return Accepts::no(fmt::format("no {} here", name(dtype)));
  const bool backward = node.outputs() == 3;
  const DType sums = backward ? node.input(5).dtype : node.output(1).dtype;
  return sums == DType::float32 ? Accepts::yes() : Accepts::no("a log_sum_exp in float64");
}

template <Prepared (*prepare)(const NodeView&, const Capabilities&, const packed::HalfMicroKernel&)>
Prepared prepared(const NodeView& node, const Capabilities& capabilities) {
  const DType dtype = node.input(0).dtype;
  return prepare(node, capabilities, packed::half_microkernel(capabilities.isa, dtype));
}

vector::Map loop(const vector::Loops& loops, std::string_view op) {
  return vector::find_map(loops, op)->loop;
}

}  // namespace

RowMath::RowMath(Isa isa, DType dtype)
    : loops(vector::loops(isa)),
      add(loop(loops, "AddV2")),
      mul(loop(loops, "Mul")),
      log(loop(loops, "Log")),
      sum(std::find_if(loops.folds.begin(),
                       loops.folds.end(),
                       [](const vector::FoldRow& row) { return std::string_view(row.op) == "Sum"; })
              ->run),
      source(loops, dtype),
      sink(loops, dtype) {}

TakenKeys KeyMask::of_item(const Args& args, I64 item, float* flags) const {
  const I64 keys = geometry_.keys;
  if (input_ == 0) return {0, keys, nullptr};
  const bool* mask = args.in[input_].as<bool>() + item / geometry_.heads * keys;
  TakenKeys taken{keys, 0, flags};
  std::fill_n(flags, this->flags(), 0.0F);
  for (I64 i = 0; i < keys; ++i) {
    if (!mask[i]) continue;
    flags[i] = 1;
    taken.begin = std::min(taken.begin, i);
    taken.end = i + 1;
  }
  return taken;
}

void WeightFactors::block(const vector::Loops& loops,
                          const Args& args,
                          const Block& block,
                          bool transposed,
                          float* to) const {
  // Numbers come in fours; those of a row may begin within the first and end within the ninth.
  constexpr I64 k_fours = k_block / 4 + 1;
  std::uint64_t counters[k_block * k_fours];
  float numbers[k_block * k_fours * 4];
  I64 offsets[k_block], count = 0;
  for (I64 r = 0; r < block.queries; ++r) {
    const I64 first = dropout_.first + geometry_.weight(block.item, block.query + r, block.key);
    offsets[r] = 4 * count + first % 4;
    for (I64 four = first / 4; four <= (first + block.keys - 1) / 4; ++four) {
      counters[count++] = static_cast<std::uint64_t>(four);
    }
  }
  const auto ordinal = static_cast<std::uint64_t>(*args.in[ordinal_].as<std::int64_t>());
  loops.uniforms(numbers, dropout_.seed, mix(dropout_.stream, ordinal), counters, count);
  const auto rate = static_cast<float>(dropout_.rate);
  const auto scale = static_cast<float>(dropout_.scale());
  alignas(64) float by_query[k_block_floats];
  float* rows = transposed ? by_query : to;
  if (block.queries < k_block || block.keys < k_block) std::fill_n(rows, k_block_floats, 0.0F);
  for (I64 r = 0; r < block.queries; ++r) {
    const float* row = numbers + offsets[r];
    for (I64 c = 0; c < block.keys; ++c) rows[r * k_block + c] = row[c] >= rate ? scale : 0.0F;
  }
  if (transposed) packed::transpose_block(by_query, k_block, to);
}

void pack(const packed::PanelUnit& unit,
          Side side,
          Run run,
          const TensorView& x,
          const Rows& rows,
          const PanelLayout& layout,
          std::byte* to) {
  unit.pack_all(
      side, run, x.as<std::byte>() + rows.first * unit.element_bytes(), rows.stride, layout, to);
}

void keep_block(void* context, const float* sums, I64 block) {
  packed::copy_accumulators(
      sums, k_block, k_block, static_cast<float*>(context) + block * k_block_floats);
}

}  // namespace attention

std::span<const Kernel> attention_kernels() {
  static const Kernel k_rows[] = {
      {"FusedAttention",
       "attention/blocks",
       attention::accepts,
       attention::prepared<attention::prepare_forward>},
      {"FusedAttentionGrad",
       "attention/blocks_grad",
       attention::accepts,
       attention::prepared<attention::prepare_backward>},
  };
  return k_rows;
}

}  // namespace halfstep::backend::cpu
