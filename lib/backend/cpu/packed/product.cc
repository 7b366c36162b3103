#include "backend/cpu/packed/product.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "backend/cpu/packed/conv_grid.h"
#include "core/error.h"

namespace halfstep::backend::cpu::packed {
namespace {

constexpr std::int64_t k_block_sums = k_block * k_block;
constexpr std::int64_t k_block_bytes = k_block_sums * static_cast<std::int64_t>(sizeof(float));
constexpr std::int64_t k_line = 64;
/// Of a second-level cache.
constexpr std::int64_t k_cached_bytes = std::int64_t{1} << 20;
std::int64_t multiplications(const Layout& a, const Layout& b) {
  return a.panels() * b.panels() * a.steps() * (k_block_sums * k_block);
}

/// The number of threads that a GEMM of these operands pays for, at most `threads`, where a thread
/// is worth waking for `min_work` multiplications.
std::int64_t useful_threads(const Layout& a,
                            const Layout& b,
                            std::int64_t threads,
                            std::int64_t min_work) {
  return std::clamp<std::int64_t>(multiplications(a, b) / min_work, 1, threads);
}

void (*sweep_of(const MicroKernel& unit, std::int64_t products))(const MicroKernelArgs&) {
  return products == 1 ? unit.sweep.one : products == 3 ? unit.sweep.three : unit.sweep.four;
}

/// The panels of the part that ends last, where each of `parts` begins with a tile of its own and
/// takes further ones in their order. Tile i of `tiles` ends at panel panels * (i + 1) / tiles.
std::int64_t panels_of_longest_part(std::int64_t panels, std::int64_t tiles, std::int64_t parts) {
  std::vector<std::int64_t> taken(static_cast<std::size_t>(parts), 0);
  for (std::int64_t i = 0; i < tiles; ++i) {
    *std::ranges::min_element(taken) += panels * (i + 1) / tiles - panels * i / tiles;
  }
  return std::ranges::max(taken);
}

using Panels = std::span<const std::byte>;

Panels panels(const std::byte* operand,
              const Layout& layout,
              std::int64_t kc,
              std::int64_t first,
              std::int64_t count) {
  return {operand + layout.panel_offset(kc, first),
          static_cast<std::size_t>(count * layout.steps_in(kc) * layout.step_bytes())};
}

/// The part `i` of `parts` of prefetching some memory, in so many k blocks.
MicroKernelArgs::Ahead prefetched(Panels memory,
                                  std::int64_t i,
                                  std::int64_t parts,
                                  std::int64_t k_blocks) {
  const std::int64_t lines = static_cast<std::int64_t>(memory.size()) / k_line;
  const std::int64_t each = divide_up(lines, parts * k_blocks);
  const std::int64_t first = i * each * k_blocks;
  if (first >= lines) return {};
  return {memory.data() + first * k_line, each};
}

/// The context of a microkernel call: the epilogue, and the position of the call's first block.
struct Finished {
  Product::Finish finish;
  Product::Place row;  ///< of the call's first block
};

void hand_back(void* context, const float* sums, std::int64_t block) {
  const auto& to = *static_cast<const Finished*>(context);
  Product::Place at = to.row;
  at.j += block;
  to.finish(sums, at);
}

}  // namespace

Product::Product(const MicroKernel& unit,
                 const Layout& a,
                 const Layout& b,
                 std::int64_t products,
                 int threads,
                 Tiles tiles,
                 const std::optional<Packing>& packing)
    : unit_(&unit),
      sweep_(sweep_of(unit, products)),
      a_(a),
      b_(b),
      packing_(packing),
      tile_panels_(unit.panels[a.format.parts - 1]) {
  require(sweep_ != nullptr, "{} has no microkernel of {} partial products", unit.name, products);
  require(a.format == graph::ops::operand_format(a.format.dtype, products),
          "{} products of {} parts",
          products,
          a.format.parts);
  require(a.depth == b.depth && a.format == b.format, "a product of unlike operands");
  if (packing_) {
    choose_rows(threads);
    panel_bytes_ = a_.kc_steps() * a_.step_bytes();
  } else {
    choose_cut(threads, tiles);
  }
  if (const MicroKernel::Widen& widen =
          a.format.dtype == DType::float16 ? unit.float16 : unit.bfloat16;
      widen.operand[0] != nullptr && a.format.parts == 1) {
    widen_ = &widen;
    const std::int64_t panel = std::min(a_.steps(), a_.kc_steps()) * k_block_bytes;
    // A part that passes over b many times widens it once, where it stays in the second-level
    // cache.
    keeps_b_ = 2 * b_.bytes() <= k_cached_bytes;
    wide_a_bytes_ = panel;
    wide_b_bytes_ = keeps_b_ ? 2 * b_.bytes() : panel * divide_up(b_.panels(), across_);
    const bool from_float32 = packing_ && packing_->from() == DType::float32;
    if (unit.sweep.by_depth != nullptr && packing_ && !packing_->along_depth() &&
        (from_float32 || packing_->from() == a.format.dtype)) {
      // Rows of x are widened as they are, neither packed nor transposed.
      sweep_ = unit.sweep.by_depth;
      packing_->replace_step(widen.by_depth[from_float32], k_block_bytes);
      panel_bytes_ = panel;
      wide_a_bytes_ = 0;
    }
  }
  const std::int64_t running =
      a_.kc_blocks() > 1 ? divide_up(a_.panels(), down_) * divide_up(b_.panels(), across_) : 0;
  part_bytes_ = static_cast<std::size_t>((running + 2) * k_block_bytes + panel_bytes_ +
                                         wide_a_bytes_ + wide_b_bytes_);
}

std::int64_t Product::run_panels() const { return divide_up(b_.panels(), across_); }

std::size_t Product::workspace_bytes() const {
  return part_bytes_ * static_cast<std::size_t>(parts_);
}

void Product::choose_rows(std::int64_t threads) {
  parts_ = std::min(useful_threads(a_, b_, threads, unit_->min_work), a_.panels());
  if (packing_->along_depth()) {
    // A tile is one panel, whose rows are read one after the other.
    down_ = a_.panels();
    return;
  }
  // A panel is 32 columns of x. Few wide tiles, since each reads from every row, most of which are
  // on pages of their own; two a part, so that a slower thread can leave one to the others, or up
  // to four where the parts then end nearer to each other.
  const std::int64_t least =
      std::min(a_.panels(),
               std::max(parts_ == 1 ? 1 : 2 * parts_,
                        divide_up(a_.panels() * b_.panels(), tile_panels_ * tile_panels_)));
  const std::int64_t most = parts_ == 1 ? least : std::min(a_.panels(), 2 * least);
  std::int64_t shortest = 0;
  for (std::int64_t down = least; down <= most; ++down) {
    const std::int64_t panels = panels_of_longest_part(a_.panels(), down, parts_);
    if (shortest == 0 || panels < shortest) {
      shortest = panels;
      down_ = down;
    }
  }
}

void Product::choose_cut(std::int64_t threads, Tiles wanted) {
  // One part per thread, as square as possible: a part reads its rows of a and its columns of b.
  for (parts_ = useful_threads(a_, b_, threads, unit_->min_work); parts_ > 1; --parts_) {
    std::int64_t least = 0;
    for (std::int64_t down = 1; down <= parts_; ++down) {
      const std::int64_t across = parts_ / down;
      if (down * across != parts_ || down > a_.panels() || across > b_.panels()) continue;
      const std::int64_t sides = divide_up(a_.panels(), down) + divide_up(b_.panels(), across);
      if (least != 0 && sides >= least) continue;
      least = sides;
      down_ = down;
      across_ = across;
    }
    if (least != 0) break;
  }
  // Cut parts into tiles. With one kc block no accumulators are kept between kc blocks, so a tile
  // may be as wide as its columns of b fit in half of a second-level cache of 1 MiB, beside a.
  constexpr std::int64_t k_resident_bytes = std::int64_t{1} << 19;
  if (wanted == Tiles::long_rows && a_.kc_blocks() == 1) {
    across_ *= divide_up(divide_up(b_.bytes(), across_), k_resident_bytes);
  } else {
    across_ *= divide_up(divide_up(b_.panels(), across_), tile_panels_);
  }
  down_ *= divide_up(divide_up(a_.panels(), down_), tile_panels_);
  // At least six tiles a part, so that a slower thread can leave tiles to the others, as long as a
  // tile has 2^24 multiplications: the cost to start one is then negligible.
  constexpr std::int64_t k_tiles_of_part = 6;
  constexpr std::int64_t k_long = 1 << 24;  // multiplications
  const std::int64_t least =
      parts_ == 1 ? 1 : std::min(k_tiles_of_part * parts_, multiplications(a_, b_) / k_long);
  while (tiles() < least) {
    const bool rows_longer = a_.panels() * across_ > b_.panels() * down_;
    if (2 * down_ <= a_.panels() && (rows_longer || 2 * across_ > b_.panels())) {
      down_ *= 2;
    } else if (2 * across_ <= b_.panels()) {
      across_ *= 2;
    } else {
      return;
    }
  }
}

Product::Region Product::tile(std::int64_t t) const {
  // Tiles are started in strips of four rows, column by column, so that neighbours in time read the
  // same panels of a and b from the shared cache.
  constexpr std::int64_t k_strip = 4;
  const std::int64_t strip = t / (k_strip * across_);
  const std::int64_t height = std::min(k_strip, down_ - strip * k_strip);
  const std::int64_t in_strip = t - strip * k_strip * across_;
  const std::int64_t i = strip * k_strip + in_strip % height;
  const std::int64_t j = in_strip / height;
  return {a_.panels() * i / down_,
          a_.panels() * (i + 1) / down_,
          b_.panels() * j / across_,
          b_.panels() * (j + 1) / across_};
}

void Product::run(const std::byte* a,
                  const std::byte* b,
                  std::byte* workspace,
                  Finish finish,
                  Complete complete) const {
  // The first tile of each part is assigned to it; further tiles are taken from the shared counter.
  std::atomic<std::int64_t> next{parts_};
  parallel_for(parts_, 1, [&](std::int64_t begin, std::int64_t end) {
    unit_->begin();
    for (std::int64_t part = begin; part < end; ++part) {
      const Part x{a, b, workspace + part_bytes_ * static_cast<std::size_t>(part), finish, part};
      if (keeps_b_) widen_->operand[1](wide_b(x), b, b_.panels() * b_.steps());
      for (std::int64_t t = part; t < tiles();) t = run_tile(x, t, next);
      complete(part);
    }
    unit_->end();
  });
}

std::int64_t Product::run_tile(const Part& x,
                               std::int64_t t,
                               std::atomic<std::int64_t>& next) const {
  const Region here = tile(t);
  const std::int64_t last = a_.kc_blocks() - 1;
  std::int64_t then = tiles();
  for (std::int64_t kc = 0; kc <= last; ++kc) {
    // The next tile is taken only when its operands can be prefetched: from the first kc block on
    // where its rows of a row-major operand are.
    const bool take = packing_ && packing_->along_depth() ? kc == 0 : kc == last;
    if (take) then = next.fetch_add(1);
    run_kc_block(x, here, kc, ahead(x, here, kc, then < tiles() ? tile(then) : Region{}));
  }
  return then;
}

Product::Ahead Product::ahead(const Part& x,
                              const Region& tile,
                              std::int64_t kc,
                              const Region& next_tile) const {
  const bool last = kc + 1 == a_.kc_blocks();
  const Region& then = last ? next_tile : tile;
  const std::int64_t next_kc_block = last ? 0 : kc + 1;
  const auto b = panels(x.b, b_, next_kc_block, then.j0, then.columns());
  if (!packing_) return {panels(x.a, a_, next_kc_block, then.i0, then.rows() > 0 ? 1 : 0), b};
  if (!packing_->along_depth()) return {{}, b};  // packing prefetches the columns to the right
  // b stays in the second-level cache.
  if (next_tile.rows() == 0) return {};
  return {packing_->rows_of_panel(x.a, next_tile.i0, kc, a_.kc_blocks()), {}};
}

float* Product::wide_b(const Part& x) const {
  return reinterpret_cast<float*>(x.workspace + 2 * k_block_bytes + panel_bytes_ + wide_a_bytes_);
}

const std::byte* Product::panel_of_a(const Part& x, std::int64_t kc, std::int64_t panel) const {
  const std::byte* from = x.a + a_.panel_offset(kc, panel);
  if (packing_) {
    std::byte* to = x.workspace + 2 * k_block_bytes;
    packing_->pack_panel(x.a, to, panel, kc * a_.kc_steps(), a_.steps_in(kc));
    from = to;
  }
  if (widen_ == nullptr || wide_a_bytes_ == 0) return from;
  std::byte* wide = x.workspace + 2 * k_block_bytes + panel_bytes_;
  widen_->operand[0](reinterpret_cast<float*>(wide), from, a_.steps_in(kc));
  return wide;
}

const std::byte* Product::panels_of_b(const Part& x, const Region& tile, std::int64_t kc) const {
  const std::int64_t offset = b_.panel_offset(kc, tile.j0);
  if (widen_ == nullptr) return x.b + offset;
  float* wide = wide_b(x);
  const auto* bytes = reinterpret_cast<const std::byte*>(wide);
  // A widened value takes four bytes instead of two.
  if (keeps_b_) return bytes + 2 * offset;
  widen_->operand[1](wide, x.b + offset, tile.columns() * b_.steps_in(kc));
  return bytes;
}

void Product::run_kc_block(const Part& x,
                           const Region& tile,
                           std::int64_t kc,
                           const Ahead& ahead) const {
  const bool last = kc + 1 == a_.kc_blocks();
  const std::int64_t steps = a_.steps_in(kc);

  // While a panel of a is multiplied, the next one is prefetched, and part of b of the next kc
  // block. All panels of a at once would leave the second-level cache no room for the accumulators.
  const std::int64_t steps_of_row = tile.columns() * std::max<std::int64_t>(steps - 1, 1);

  auto* sums = reinterpret_cast<float*>(x.workspace + 2 * k_block_bytes + panel_bytes_ +
                                        wide_a_bytes_ + wide_b_bytes_);
  const std::byte* b = panels_of_b(x, tile, kc);
  for (std::int64_t i = tile.i0; i < tile.i1; ++i) {
    Finished context{x.finish, {i, tile.j0, tile.j0, tile.j1, x.index}};
    const std::int64_t row = i - tile.i0;
    Panels next_a = ahead.a;
    if (i + 1 < tile.i1) next_a = packing_ ? Panels{} : panels(x.a, a_, kc, i + 1, 1);
    sweep_({.a = panel_of_a(x, kc, i),
            .b = b,
            .steps = steps,
            .blocks = tile.columns(),
            .sums = sums + row * tile.columns() * k_block_sums,
            .first = kc == 0,
            .last = last,
            .scratch = reinterpret_cast<float*>(x.workspace),
            .finish = hand_back,
            .context = &context,
            .ahead = {prefetched(next_a, 0, 1, steps_of_row),
                      prefetched(ahead.b, row, tile.rows(), steps_of_row)}});
  }
}

Accepts packs_while_multiplying(const Packing& packing, const Layout& b, int threads) {
  // Each panel of a is multiplied by all of b before the next one is packed. With more columns
  // packing is a small part of the work, and tiles of several panels read b fewer times.
  constexpr std::int64_t k_max_panels = 4;
  // Each panel reads b again, from the second-level cache where it fits; of whole rows there are
  // many panels.
  if (b.panels() > k_max_panels) return Accepts::no("b has more than 128 columns");
  if (packing.along_depth() && b.bytes() > k_cached_bytes) return Accepts::no("b exceeds 1 MiB");
  if (packing.layout().panels() < useful_threads(packing.layout(), b, threads, k_min_work)) {
    return Accepts::no("a has fewer panels than there are threads");
  }
  return Accepts::yes();
}

Product product_of(const graph::Attrs& attrs,
                   const MicroKernel& unit,
                   int threads,
                   Product::Tiles tiles,
                   const std::optional<Packing>& packing) {
  const graph::ops::PackedFormat format = graph::ops::operand_format(attrs);
  const auto k = attrs.get<std::int64_t>("k");
  return {unit,
          {attrs.get<std::int64_t>("m"), k, format},
          {attrs.get<std::int64_t>("n"), k, format},
          attrs.get<std::int64_t>("products"),
          threads,
          tiles,
          packing};
}

}  // namespace halfstep::backend::cpu::packed
