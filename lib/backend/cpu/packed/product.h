#pragma once
// The product of two packed operands, cut so that each part finds what it reads in a cache near it.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/packed/layout.h"
#include "backend/cpu/packed/unit.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu::packed {

/// c = a b, block by block; sums are float32. Each block is summed by one thread, slab after slab,
/// so the result does not depend on the number of threads.
class Product {
 public:
  /// `products` partial products for each product of values: 1 for operands of one part, 3 or 4 for
  /// operands of two.
  Product(const Unit& unit, const Layout& a, const Layout& b, std::int64_t products, int threads);

  std::size_t workspace_bytes() const;

  /// Calls finish(sums, row panel, column panel) once for each block, from several threads.
  using Finish = FunctionRef<void(const float* sums, std::int64_t i, std::int64_t j)>;
  void run(const std::byte* a, const std::byte* b, std::byte* workspace, Finish finish) const;

 private:
  /// Panels [i0, i1) of a by panels [j0, j1) of b.
  struct Region {
    std::int64_t i0, i1, j0, j1;

    std::int64_t rows() const { return i1 - i0; }
    std::int64_t columns() const { return j1 - j0; }
    /// Part (i, j) of a cut into down x across parts of nearly the same size.
    Region part(std::int64_t i, std::int64_t down, std::int64_t j, std::int64_t across) const;
  };
  struct Operands {
    const std::byte* a;
    const std::byte* b;
  };

  void choose_cut(std::int64_t threads);
  void run_region(const Operands& x,
                  const Region& region,
                  std::byte* workspace,
                  Finish finish) const;
  void run_slab(const Operands& x,
                const Region& tile,
                std::int64_t slab,
                const Region& next_tile,
                std::byte* workspace,
                Finish finish) const;

  const Unit* unit_;
  void (*sweep_)(const Sweep&);
  Layout a_, b_;
  std::int64_t tile_panels_;
  // The result is cut into down_ x across_ regions, one for each thread.
  std::int64_t down_ = 1;
  std::int64_t across_ = 1;
  std::size_t region_bytes_;
};

}  // namespace halfstep::backend::cpu::packed
