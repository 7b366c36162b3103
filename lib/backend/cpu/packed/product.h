#pragma once
// The product of two packed operands, cut so that each part finds what it reads in a cache near it.

#include <cstddef>
#include <cstdint>

#include "backend/cpu/packed/layout.h"
#include "backend/cpu/packed/unit.h"
#include "core/parallel.h"
#include "graph/attr.h"

namespace halfstep::backend::cpu::packed {

/// c = a b, block by block; sums are float32. Each block is summed by one thread, slab after slab,
/// so the result does not depend on the number of threads.
class Product {
 public:
  /// `products` partial products for each product of values: 1 for operands of one part, 3 or 4 for
  /// operands of two.
  Product(const Unit& unit, const Layout& a, const Layout& b, std::int64_t products, int threads);

  std::size_t workspace_bytes() const;

  /// Where a block of complete sums stands.
  struct Place {
    std::int64_t i, j;        ///< row panel and column panel
    std::int64_t begin, end;  ///< the column panels around j that are done one after the other
    std::int64_t part;        ///< of the result, done by one thread
    bool last_run;            ///< of the part
  };
  std::int64_t parts() const { return down_ * across_; }
  /// The most that end - begin can be.
  std::int64_t run_panels() const;

  /// Calls finish(sums, place) once for each block, from several threads.
  using Finish = FunctionRef<void(const float* sums, const Place& at)>;
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
  /// What a part of the result is made from, and with.
  struct Part {
    const std::byte* a;
    const std::byte* b;
    std::byte* workspace;
    Finish finish;
    std::int64_t index;
  };

  void choose_cut(std::int64_t threads);
  void run_region(const Part& x, const Region& region) const;
  void run_slab(const Part& x,
                const Region& tile,
                std::int64_t slab,
                const Region& next_tile,
                bool last_tile) const;

  const Unit* unit_;
  void (*sweep_)(const Sweep&);
  Layout a_, b_;
  std::int64_t tile_panels_;
  // The result is cut into down_ x across_ regions, one for each thread.
  std::int64_t down_ = 1;
  std::int64_t across_ = 1;
  std::size_t region_bytes_;
};

/// The product of a node's attributes m, n, k, T and `products`.
Product product_of(const graph::Attrs& attrs, const Unit& unit, int threads);

}  // namespace halfstep::backend::cpu::packed
