#include "backend/cuda/kernels/dataset.h"

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"
#include "backend/cuda/kernels/device/share.h"

namespace halfstep::backend::cuda::kernels {
namespace {

template <class Word>
__global__ void gather_kernel(GatherBatchParams p) {
  const auto* from = static_cast<const Word*>(p.rows);
  auto* to = static_cast<Word*>(p.batch);
  const std::int32_t* order = p.order + *p.ordinal % p.cycle * p.count;
  const std::int64_t n = p.row_elements;
  for (std::int64_t i = thread_of_grid(); i < p.count * n; i += threads_of_grid()) {
    to[i] = from[order[i / n] * n + i % n];
  }
}

struct CopiedRows {
  const std::uint8_t* rows;
  std::uint8_t* batch;
  std::int64_t row_bytes;
  int word;  ///< bytes read at once
  DType to;  ///< other than uint8: converted
  float scale;
  std::int32_t first_block;
};

struct NextRows {
  CopiedRows tensor[NextBatchParams::k_max_tensors];
  int tensors;
  std::int64_t* ordinal;
  const std::int32_t* order;
  std::int64_t cycle, count;
  unsigned* ticket;
};

template <int word>
__device__ inline void copy_words(const CopiedRows& t,
                                  const std::int32_t* order,
                                  std::int64_t count,
                                  std::int64_t first,
                                  std::int64_t step) {
  const std::int64_t words = t.row_bytes / word;
  for (std::int64_t i = first; i < count * words; i += step) {
    const Divided at = divide(i, words);
    const std::int64_t from = order[at.quotient] * t.row_bytes + at.remainder * word;
    store_pack<std::uint8_t, word>(t.batch + i * word,
                                   load_pack<std::uint8_t, word>(t.rows + from));
  }
}

/// Each byte as float32(x) * scale, rounded to To.
template <int word, class To>
__device__ inline void scale_words(const CopiedRows& t,
                                   const std::int32_t* order,
                                   std::int64_t count,
                                   std::int64_t first,
                                   std::int64_t step) {
  constexpr int k_width =
      word * static_cast<int>(sizeof(To)) > 16 ? 16 / static_cast<int>(sizeof(To)) : word;
  const std::int64_t words = t.row_bytes / word;
  for (std::int64_t i = first; i < count * words; i += step) {
    const Divided at = divide(i, words);
    const std::int64_t from = order[at.quotient] * t.row_bytes + at.remainder * word;
    const Pack<std::uint8_t, word> in = load_pack<std::uint8_t, word>(t.rows + from);
    To* to = reinterpret_cast<To*>(t.batch) + i * word;
    for (int begin = 0; begin < word; begin += k_width) {
      Pack<To, k_width> out;
      for (int j = 0; j < k_width; ++j) {
        out.element[j] = store<To>(static_cast<float>(in.element[begin + j]) * t.scale);
      }
      store_pack<To, k_width>(to + begin, out);
    }
  }
}

template <int word>
__device__ inline void take_words(const CopiedRows& t,
                                  const std::int32_t* order,
                                  std::int64_t count,
                                  std::int64_t first,
                                  std::int64_t step) {
  switch (t.to) {
    case DType::float32:
      return scale_words<word, float>(t, order, count, first, step);
    case DType::float16:
      return scale_words<word, float16>(t, order, count, first, step);
    case DType::bfloat16:
      return scale_words<word, bfloat16>(t, order, count, first, step);
    default:
      return copy_words<word>(t, order, count, first, step);
  }
}

/// The last block stores the ordinal, after all blocks have read it.
__global__ void next_batch_kernel(NextRows p) {
  const std::int64_t ordinal = *p.ordinal + 1;
  const std::int32_t* order = p.order + ordinal % p.cycle * p.count;
  const auto [n, first, step] = share_of(p.tensor, p.tensors);
  const CopiedRows& t = p.tensor[n];
  switch (t.word) {
    case 16:
      take_words<16>(t, order, p.count, first, step);
      break;
    case 8:
      take_words<8>(t, order, p.count, first, step);
      break;
    case 4:
      take_words<4>(t, order, p.count, first, step);
      break;
    default:
      take_words<1>(t, order, p.count, first, step);
  }
  if (is_last_block(p.ticket, blocks()) && thread() == 0) *p.ordinal = ordinal;
}

/// The largest word that divides rows and addresses.
int word_of(const NextBatchParams::Rows& t) {
  for (const std::size_t word : {16U, 8U, 4U}) {
    if (t.row_bytes % word == 0 && aligned(t.rows, word) && aligned(t.batch, word)) {
      return static_cast<int>(word);
    }
  }
  return 1;
}

}  // namespace

void next_batch(Stream stream, const NextBatchParams& p) {
  NextRows rows{.tensor = {},
                .tensors = static_cast<int>(p.tensors),
                .ordinal = p.ordinal,
                .order = p.order,
                .cycle = p.cycle,
                .count = p.count,
                .ticket = p.tickets.data};
  Grid grid{.blocks = 0, .cooperates = true};
  for (std::size_t n = 0; n < p.tensors; ++n) {
    const NextBatchParams::Rows& from = p.tensor[n];
    const int word = word_of(from);
    const auto row_bytes = static_cast<std::int64_t>(from.row_bytes);
    rows.tensor[n] = {static_cast<const std::uint8_t*>(from.rows),
                      static_cast<std::uint8_t*>(from.batch),
                      row_bytes,
                      word,
                      from.to,
                      from.scale,
                      static_cast<std::int32_t>(grid.blocks)};
    grid.blocks += grid_of(std::max<std::int64_t>(p.count * row_bytes / word, 1)).blocks;
  }
  launch(next_batch_kernel, grid, stream, rows);
}

void gather_batch(Stream stream, const GatherBatchParams& p) {
  dispatch_word(p.element_bytes, [&]<class Word>(Type<Word>) {
    launch(gather_kernel<Word>, grid_of(p.count * p.row_elements), stream, p);
  });
}

}  // namespace halfstep::backend::cuda::kernels
