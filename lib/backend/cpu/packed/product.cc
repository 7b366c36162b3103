#include "backend/cpu/packed/product.h"

#include "core/error.h"

namespace halfstep::backend::cpu::packed {
namespace {

constexpr std::int64_t k_block_sums = k_block * k_block;
constexpr std::int64_t k_block_bytes = k_block_sums * static_cast<std::int64_t>(sizeof(float));
constexpr std::int64_t k_line = 64;

std::int64_t divide_up(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }

void (*sweep_of(const Unit& unit, std::int64_t products))(const Sweep&) {
  return products == 1 ? unit.sweep.one : products == 3 ? unit.sweep.three : unit.sweep.four;
}

/// What a sweep hands back with each block, and where that lies in the result.
struct Finished {
  Product::Finish finish;
  Product::Place row;  ///< of the sweep's first block
};

void hand_back(void* context, const float* sums, std::int64_t block) {
  const auto& to = *static_cast<const Finished*>(context);
  Product::Place at = to.row;
  at.j += block;
  to.finish(sums, at);
}

}  // namespace

Product::Region Product::Region::part(std::int64_t i,
                                      std::int64_t down,
                                      std::int64_t j,
                                      std::int64_t across) const {
  return {i0 + rows() * i / down,
          i0 + rows() * (i + 1) / down,
          j0 + columns() * j / across,
          j0 + columns() * (j + 1) / across};
}

Product::Product(
    const Unit& unit, const Layout& a, const Layout& b, std::int64_t products, int threads)
    : unit_(&unit),
      sweep_(sweep_of(unit, products)),
      a_(a),
      b_(b),
      tile_panels_(unit.panels[a.parts - 1]) {
  require(sweep_ != nullptr, "{} has no sweep of {} products", unit.name, products);
  require(a.parts == (products == 1 ? 1 : 2), "{} products of {} parts", products, a.parts);
  require(a.depth == b.depth && a.parts == b.parts, "a product of unlike operands");
  choose_cut(threads);
  const std::int64_t rows = std::min(tile_panels_, divide_up(a_.panels(), down_));
  const std::int64_t running = a_.slabs() > 1 ? rows * run_panels() : 0;
  region_bytes_ = static_cast<std::size_t>((running + 2) * k_block_bytes);
}

std::int64_t Product::run_panels() const {
  return std::min(tile_panels_, divide_up(b_.panels(), across_));
}

std::size_t Product::workspace_bytes() const {
  return region_bytes_ * static_cast<std::size_t>(parts());
}

void Product::choose_cut(std::int64_t threads) {
  // Below this many multiplications a thread is not worth waking.
  constexpr std::int64_t k_least_work = 1 << 20;
  const std::int64_t work = a_.panels() * b_.panels() * a_.steps() * (k_block_sums * k_block);
  for (std::int64_t parts = std::clamp<std::int64_t>(work / k_least_work, 1, threads); parts > 1;
       --parts) {
    std::int64_t least = 0;
    for (std::int64_t down = 1; down <= parts; ++down) {
      const std::int64_t across = parts / down;
      if (down * across != parts || down > a_.panels() || across > b_.panels()) continue;
      // What a region reads grows with its sides.
      const std::int64_t sides = divide_up(a_.panels(), down) + divide_up(b_.panels(), across);
      if (least != 0 && sides >= least) continue;
      least = sides;
      down_ = down;
      across_ = across;
    }
    if (least != 0) return;
  }
}

void Product::run(const std::byte* a,
                  const std::byte* b,
                  std::byte* workspace,
                  Finish finish) const {
  const Region all{0, a_.panels(), 0, b_.panels()};
  parallel_for(parts(), 1, [&](std::int64_t begin, std::int64_t end) {
    unit_->begin();
    for (std::int64_t part = begin; part < end; ++part) {
      std::byte* own = workspace + region_bytes_ * static_cast<std::size_t>(part);
      run_region({a, b, own, finish, part},
                 all.part(part / across_, down_, part % across_, across_));
    }
    unit_->end();
  });
}

void Product::run_region(const Part& x, const Region& region) const {
  const std::int64_t down = divide_up(region.rows(), tile_panels_);
  const std::int64_t across = divide_up(region.columns(), tile_panels_);
  for (std::int64_t t = 0; t < down * across; ++t) {
    const std::int64_t next = std::min(t + 1, down * across - 1);
    const Region tile = region.part(t / across, down, t % across, across);
    const Region next_tile = region.part(next / across, down, next % across, across);
    for (std::int64_t slab = 0; slab < a_.slabs(); ++slab)
      run_slab(x, tile, slab, next_tile, next == t);
  }
}

void Product::run_slab(const Part& x,
                       const Region& tile,
                       std::int64_t slab,
                       const Region& next_tile,
                       bool last_tile) const {
  const bool last = slab + 1 == a_.slabs();
  const std::int64_t steps = a_.steps_in(slab);

  // While this slab is multiplied, the lines of the next one are asked for, evenly.
  const Region& then = last ? next_tile : tile;
  const std::int64_t then_slab = last ? 0 : slab + 1;
  const std::int64_t panel_bytes = a_.steps_in(then_slab) * a_.step_bytes();
  const std::byte* ahead_a = x.a + a_.panel_offset(then_slab, then.i0);
  const std::byte* ahead_b = x.b + b_.panel_offset(then_slab, then.j0);
  const std::int64_t a_lines = then.rows() * panel_bytes / k_line;
  const std::int64_t b_lines = then.columns() * panel_bytes / k_line;
  const std::int64_t steps_of_row = tile.columns() * std::max<std::int64_t>(steps - 1, 1);
  const std::int64_t lines = divide_up(a_lines + b_lines, tile.rows() * steps_of_row);

  auto* sums = reinterpret_cast<float*>(x.workspace + 2 * k_block_bytes);
  for (std::int64_t i = tile.i0; i < tile.i1; ++i) {
    Finished context{x.finish,
                     {i, tile.j0, tile.j0, tile.j1, x.index, last_tile && i + 1 == tile.i1}};
    const std::int64_t row = i - tile.i0;
    const std::int64_t line = row * lines * steps_of_row;
    sweep_({.a = x.a + a_.panel_offset(slab, i),
            .b = x.b + b_.panel_offset(slab, tile.j0),
            .steps = steps,
            .blocks = tile.columns(),
            .sums = sums + row * tile.columns() * k_block_sums,
            .first = slab == 0,
            .last = last,
            .room = reinterpret_cast<float*>(x.workspace),
            .finish = hand_back,
            .context = &context,
            .ahead = line < a_lines ? ahead_a + line * k_line : ahead_b + (line - a_lines) * k_line,
            .lines_ahead = line < a_lines + b_lines ? lines : 0});
  }
}

Product product_of(const graph::Attrs& attrs, const Unit& unit, int threads) {
  const DType dtype = attrs.get<DType>("T");
  const auto k = attrs.get<std::int64_t>("k");
  return {unit,
          layout_of(attrs.get<std::int64_t>("m"), k, dtype),
          layout_of(attrs.get<std::int64_t>("n"), k, dtype),
          attrs.get<std::int64_t>("products"),
          threads};
}

}  // namespace halfstep::backend::cpu::packed
