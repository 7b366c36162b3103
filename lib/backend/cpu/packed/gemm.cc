#include "backend/cpu/packed/gemm.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "backend/cpu/packed/conv_grid.h"
#include "core/error.h"

namespace halfstep::backend::cpu::packed {
namespace {

constexpr std::int64_t k_block_accumulators = k_block_size * k_block_size;
constexpr std::int64_t k_accumulator_bytes =
    k_block_accumulators * static_cast<std::int64_t>(sizeof(float));
constexpr std::int64_t k_line = 64;
/// Size of an L2 cache.
constexpr std::int64_t k_cached_bytes = std::int64_t{1} << 20;
std::int64_t multiplications(const Layout& a, const Layout& b) {
  return a.panels() * b.panels() * a.k_blocks() * (k_block_accumulators * k_block_size);
}

/// The number of threads to use, at most `threads`, if a thread is worth waking for `min_work`
/// multiplications.
std::int64_t useful_threads(const Layout& a,
                            const Layout& b,
                            std::int64_t threads,
                            std::int64_t min_work) {
  return std::clamp<std::int64_t>(multiplications(a, b) / min_work, 1, threads);
}

void (*function_of(const MicroKernel& micro_kernel,
                   std::int64_t partial_products))(const MicroKernelArgs&) {
  const auto& run = micro_kernel.run;
  return partial_products == 1 ? run.one : partial_products == 3 ? run.three : run.four;
}

/// The maximum number of panels of a part, if each part that has computed its tile claims the next
/// one. Tile i of `tiles` ends at panel panels * (i + 1) / tiles.
std::int64_t max_panels_of_part(std::int64_t panels, std::int64_t tiles, std::int64_t parts) {
  std::vector<std::int64_t> panels_of_part(static_cast<std::size_t>(parts), 0);
  for (std::int64_t i = 0; i < tiles; ++i) {
    *std::ranges::min_element(panels_of_part) += panels * (i + 1) / tiles - panels * i / tiles;
  }
  return std::ranges::max(panels_of_part);
}

using Panels = std::span<const std::byte>;

Panels panels(const std::byte* operand,
              const Layout& layout,
              std::int64_t kc,
              std::int64_t first,
              std::int64_t count) {
  return {operand + layout.panel_offset(kc, first),
          static_cast<std::size_t>(count * layout.k_blocks_in(kc) * layout.k_block_bytes())};
}

/// Part `i` of `parts` of the prefetches of `memory`, spread over `k_blocks` k blocks.
MicroKernelArgs::Prefetch prefetch_share(Panels memory,
                                         std::int64_t i,
                                         std::int64_t parts,
                                         std::int64_t k_blocks) {
  const std::int64_t lines = static_cast<std::int64_t>(memory.size()) / k_line;
  const std::int64_t each = divide_up(lines, parts * k_blocks);
  const std::int64_t first = i * each * k_blocks;
  if (first >= lines) return {};
  return {memory.data() + first * k_line, each};
}

/// The context of a micro-kernel call: the epilogue, and the position of the first block.
struct EpilogueContext {
  Gemm::Epilogue epilogue;
  Gemm::BlockPosition first;  ///< of the call's first block
};

void call_epilogue(void* context, const float* accumulators, std::int64_t block) {
  const auto& to = *static_cast<const EpilogueContext*>(context);
  Gemm::BlockPosition at = to.first;
  at.j += block;
  to.epilogue(accumulators, at);
}

}  // namespace

Gemm::Gemm(const MicroKernel& micro_kernel,
           const Layout& a,
           const Layout& b,
           std::int64_t partial_products,
           int threads,
           TileShape shape,
           const std::optional<Packing>& packing)
    : micro_kernel_(&micro_kernel),
      run_micro_kernel_(function_of(micro_kernel, partial_products)),
      a_(a),
      b_(b),
      packing_(packing),
      tile_panels_(micro_kernel.panels[a.format.parts - 1]) {
  require(run_micro_kernel_ != nullptr,
          "{} has no micro-kernel of {} partial products",
          micro_kernel.name,
          partial_products);
  require(a.format == graph::ops::operand_format(a.format.dtype, partial_products),
          "{} partial products of {} parts",
          partial_products,
          a.format.parts);
  require(a.depth == b.depth && a.format == b.format,
          "a GEMM of operands of different formats or depths");
  if (packing_) {
    choose_row_tiles(threads);
    panel_bytes_ = a_.k_blocks_per_kc() * a_.k_block_bytes();
  } else {
    choose_tiles(threads, shape);
  }
  if (const MicroKernel::Widen& widen =
          a.format.dtype == DType::float16 ? micro_kernel.float16 : micro_kernel.bfloat16;
      widen.operand[0] != nullptr && a.format.parts == 1) {
    widen_ = &widen;
    const std::int64_t panel = std::min(a_.k_blocks(), a_.k_blocks_per_kc()) * k_accumulator_bytes;
    // A part reads b many times, so it widens b once if the result stays in the L2 cache.
    widens_all_of_b_ = 2 * b_.bytes() <= k_cached_bytes;
    widened_a_bytes_ = panel;
    widened_b_bytes_ =
        widens_all_of_b_ ? 2 * b_.bytes() : panel * divide_up(b_.panels(), tile_columns_);
    const bool from_float32 = packing_ && packing_->from() == DType::float32;
    if (micro_kernel.run.by_depth != nullptr && packing_ && !packing_->along_depth() &&
        (from_float32 || packing_->from() == a.format.dtype)) {
      // The rows of x are widened without packing or transposing them.
      run_micro_kernel_ = micro_kernel.run.by_depth;
      packing_->replace_pack(widen.by_depth[from_float32], k_accumulator_bytes);
      panel_bytes_ = panel;
      widened_a_bytes_ = 0;
    }
  }
  const std::int64_t stored_blocks = a_.kc_blocks() > 1 ? divide_up(a_.panels(), tile_rows_) *
                                                              divide_up(b_.panels(), tile_columns_)
                                                        : 0;
  part_bytes_ = static_cast<std::size_t>((stored_blocks + 2) * k_accumulator_bytes + panel_bytes_ +
                                         widened_a_bytes_ + widened_b_bytes_);
}

std::int64_t Gemm::max_tile_columns() const { return divide_up(b_.panels(), tile_columns_); }

std::size_t Gemm::workspace_bytes() const { return part_bytes_ * static_cast<std::size_t>(parts_); }

void Gemm::choose_row_tiles(std::int64_t threads) {
  parts_ = std::min(useful_threads(a_, b_, threads, micro_kernel_->min_work), a_.panels());
  if (packing_->along_depth()) {
    // A tile is one panel, whose rows are read in order.
    tile_rows_ = a_.panels();
    return;
  }
  // A panel is 32 columns of x. Each tile reads from every row, most of which are on separate
  // pages, so tiles are few and wide: two per part, so that other threads can compute a tile of a
  // slower one, or up to four if that balances the parts better.
  const std::int64_t min_tiles =
      std::min(a_.panels(),
               std::max(parts_ == 1 ? 1 : 2 * parts_,
                        divide_up(a_.panels() * b_.panels(), tile_panels_ * tile_panels_)));
  const std::int64_t max_tiles = parts_ == 1 ? min_tiles : std::min(a_.panels(), 2 * min_tiles);
  std::int64_t min_panels = 0;
  for (std::int64_t tiles = min_tiles; tiles <= max_tiles; ++tiles) {
    const std::int64_t panels = max_panels_of_part(a_.panels(), tiles, parts_);
    if (min_panels == 0 || panels < min_panels) {
      min_panels = panels;
      tile_rows_ = tiles;
    }
  }
}

void Gemm::choose_tiles(std::int64_t threads, TileShape shape) {
  // One part per thread, as square as possible, since a part reads its rows of a and columns of b.
  for (parts_ = useful_threads(a_, b_, threads, micro_kernel_->min_work); parts_ > 1; --parts_) {
    std::int64_t min_perimeter = 0;
    for (std::int64_t down = 1; down <= parts_; ++down) {
      const std::int64_t across = parts_ / down;
      if (down * across != parts_ || down > a_.panels() || across > b_.panels()) continue;
      const std::int64_t perimeter = divide_up(a_.panels(), down) + divide_up(b_.panels(), across);
      if (min_perimeter != 0 && perimeter >= min_perimeter) continue;
      min_perimeter = perimeter;
      tile_rows_ = down;
      tile_columns_ = across;
    }
    if (min_perimeter != 0) break;
  }
  // Split parts into tiles. With one kc block no accumulators are stored between kc blocks, so a
  // tile is as wide as its columns of b fit in half of an L2 cache of 1 MiB.
  constexpr std::int64_t k_resident_bytes = std::int64_t{1} << 19;
  if (shape == TileShape::long_rows && a_.kc_blocks() == 1) {
    tile_columns_ *= divide_up(divide_up(b_.bytes(), tile_columns_), k_resident_bytes);
  } else {
    tile_columns_ *= divide_up(divide_up(b_.panels(), tile_columns_), tile_panels_);
  }
  tile_rows_ *= divide_up(divide_up(a_.panels(), tile_rows_), tile_panels_);
  // At least six tiles per part, so that other threads can compute tiles of a slower one, as long
  // as a tile has 2^24 multiplications, which make the cost to claim it negligible.
  constexpr std::int64_t k_tiles_of_part = 6;
  constexpr std::int64_t k_min_multiplications = 1 << 24;
  const std::int64_t min_tiles =
      parts_ == 1
          ? 1
          : std::min(k_tiles_of_part * parts_, multiplications(a_, b_) / k_min_multiplications);
  while (tiles() < min_tiles) {
    const bool rows_longer = a_.panels() * tile_columns_ > b_.panels() * tile_rows_;
    if (2 * tile_rows_ <= a_.panels() && (rows_longer || 2 * tile_columns_ > b_.panels())) {
      tile_rows_ *= 2;
    } else if (2 * tile_columns_ <= b_.panels()) {
      tile_columns_ *= 2;
    } else {
      return;
    }
  }
}

Gemm::Tile Gemm::tile(std::int64_t t) const {
  // Tiles are started in strips of four rows, column by column, so that consecutive tiles read
  // the same panels of a and b from the shared cache.
  constexpr std::int64_t k_strip = 4;
  const std::int64_t strip = t / (k_strip * tile_columns_);
  const std::int64_t height = std::min(k_strip, tile_rows_ - strip * k_strip);
  const std::int64_t in_strip = t - strip * k_strip * tile_columns_;
  const std::int64_t i = strip * k_strip + in_strip % height;
  const std::int64_t j = in_strip / height;
  return {a_.panels() * i / tile_rows_,
          a_.panels() * (i + 1) / tile_rows_,
          b_.panels() * j / tile_columns_,
          b_.panels() * (j + 1) / tile_columns_};
}

void Gemm::run(const std::byte* a,
               const std::byte* b,
               std::byte* workspace,
               Epilogue epilogue,
               EndPart end_part) const {
  // Each part begins with the tile of its index and claims more tiles from the shared counter.
  std::atomic<std::int64_t> next{parts_};
  parallel_for(parts_, 1, [&](std::int64_t begin, std::int64_t end) {
    micro_kernel_->begin();
    for (std::int64_t part = begin; part < end; ++part) {
      const Part x{a, b, workspace + part_bytes_ * static_cast<std::size_t>(part), epilogue, part};
      if (widens_all_of_b_) widen_->operand[1](widened_b(x), b, b_.panels() * b_.k_blocks());
      for (std::int64_t t = part; t < tiles();) t = run_tile(x, t, next);
      end_part(part);
    }
    micro_kernel_->end();
  });
}

std::int64_t Gemm::run_tile(const Part& x, std::int64_t t, std::atomic<std::int64_t>& next) const {
  const Tile here = tile(t);
  const std::int64_t last = a_.kc_blocks() - 1;
  std::int64_t then = tiles();
  for (std::int64_t kc = 0; kc <= last; ++kc) {
    // The next tile is claimed when its operands are prefetched: during the last kc block, or from
    // the first kc block on for rows of a row-major operand.
    const bool claim = packing_ && packing_->along_depth() ? kc == 0 : kc == last;
    if (claim) then = next.fetch_add(1);
    run_kc_block(x, here, kc, next_operands(x, here, kc, then < tiles() ? tile(then) : Tile{}));
  }
  return then;
}

Gemm::NextOperands Gemm::next_operands(const Part& x,
                                       const Tile& tile,
                                       std::int64_t kc,
                                       const Tile& next_tile) const {
  const bool last = kc + 1 == a_.kc_blocks();
  const Tile& then = last ? next_tile : tile;
  const std::int64_t next_kc_block = last ? 0 : kc + 1;
  const auto b = panels(x.b, b_, next_kc_block, then.j0, then.columns());
  if (!packing_) return {panels(x.a, a_, next_kc_block, then.i0, then.rows() > 0 ? 1 : 0), b};
  if (!packing_->along_depth()) return {{}, b};  // packing prefetches the columns to the right
  // b stays in the L2 cache.
  if (next_tile.rows() == 0) return {};
  return {packing_->rows_of_panel(x.a, next_tile.i0, kc, a_.kc_blocks()), {}};
}

float* Gemm::widened_b(const Part& x) const {
  return reinterpret_cast<float*>(x.workspace + 2 * k_accumulator_bytes + panel_bytes_ +
                                  widened_a_bytes_);
}

const std::byte* Gemm::panel_of_a(const Part& x, std::int64_t kc, std::int64_t panel) const {
  const std::byte* from = x.a + a_.panel_offset(kc, panel);
  if (packing_) {
    std::byte* to = x.workspace + 2 * k_accumulator_bytes;
    packing_->pack_panel(x.a, to, panel, kc * a_.k_blocks_per_kc(), a_.k_blocks_in(kc));
    from = to;
  }
  if (widen_ == nullptr || widened_a_bytes_ == 0) return from;
  std::byte* widened = x.workspace + 2 * k_accumulator_bytes + panel_bytes_;
  widen_->operand[0](reinterpret_cast<float*>(widened), from, a_.k_blocks_in(kc));
  return widened;
}

const std::byte* Gemm::panels_of_b(const Part& x, const Tile& tile, std::int64_t kc) const {
  const std::int64_t offset = b_.panel_offset(kc, tile.j0);
  if (widen_ == nullptr) return x.b + offset;
  float* widened = widened_b(x);
  const auto* bytes = reinterpret_cast<const std::byte*>(widened);
  // A widened value has four bytes instead of two.
  if (widens_all_of_b_) return bytes + 2 * offset;
  widen_->operand[1](widened, x.b + offset, tile.columns() * b_.k_blocks_in(kc));
  return bytes;
}

void Gemm::run_kc_block(const Part& x,
                        const Tile& tile,
                        std::int64_t kc,
                        const NextOperands& next) const {
  const bool last = kc + 1 == a_.kc_blocks();
  const std::int64_t k_blocks = a_.k_blocks_in(kc);

  // While a panel of a is multiplied, the next one and a part of b of the next kc block are
  // prefetched. All panels of a at once would evict the accumulators from the L2 cache.
  const std::int64_t k_blocks_of_row = tile.columns() * std::max<std::int64_t>(k_blocks - 1, 1);

  auto* accumulators = reinterpret_cast<float*>(x.workspace + 2 * k_accumulator_bytes +
                                                panel_bytes_ + widened_a_bytes_ + widened_b_bytes_);
  const std::byte* b = panels_of_b(x, tile, kc);
  for (std::int64_t i = tile.i0; i < tile.i1; ++i) {
    EpilogueContext context{x.epilogue, {i, tile.j0, tile.j0, tile.j1, x.index}};
    const std::int64_t row = i - tile.i0;
    Panels next_a = next.a;
    if (i + 1 < tile.i1) next_a = packing_ ? Panels{} : panels(x.a, a_, kc, i + 1, 1);
    run_micro_kernel_({.a = panel_of_a(x, kc, i),
                       .b = b,
                       .k_blocks = k_blocks,
                       .blocks = tile.columns(),
                       .accumulators = accumulators + row * tile.columns() * k_block_accumulators,
                       .first = kc == 0,
                       .last = last,
                       .scratch = reinterpret_cast<float*>(x.workspace),
                       .epilogue = call_epilogue,
                       .context = &context,
                       .prefetch = {prefetch_share(next_a, 0, 1, k_blocks_of_row),
                                    prefetch_share(next.b, row, tile.rows(), k_blocks_of_row)}});
  }
}

Accepts packs_while_multiplying(const Packing& packing, const Layout& b, int threads) {
  // Each panel of a is multiplied by all of b before the next one is packed. With more columns
  // packing is a small part of the work, and tiles of several panels read b fewer times.
  constexpr std::int64_t k_max_panels = 4;
  // Each panel reads all of b, from the L2 cache if b fits; panels of full rows are many.
  if (b.panels() > k_max_panels) return Accepts::no("b has more than 128 columns");
  if (packing.along_depth() && b.bytes() > k_cached_bytes) return Accepts::no("b exceeds 1 MiB");
  if (packing.layout().panels() < useful_threads(packing.layout(), b, threads, k_min_work)) {
    return Accepts::no("a has fewer panels than there are threads");
  }
  return Accepts::yes();
}

Gemm gemm_of(const graph::Attrs& attrs,
             const MicroKernel& micro_kernel,
             int threads,
             Gemm::TileShape shape,
             const std::optional<Packing>& packing) {
  const graph::ops::PackedFormat format = graph::ops::operand_format(attrs);
  const auto k = attrs.get<std::int64_t>("k");
  return {micro_kernel,
          {attrs.get<std::int64_t>("m"), k, format},
          {attrs.get<std::int64_t>("n"), k, format},
          attrs.get<std::int64_t>("products"),
          threads,
          shape,
          packing};
}

}  // namespace halfstep::backend::cpu::packed
