#pragma once
// GEMM of two packed operands, blocked for the caches. Operand a may also be row-major: each panel
// of it is then packed into the first-level cache right before it is multiplied, which saves
// writing and reading a packed copy in memory.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backend/cpu/packed/layout.h"
#include "backend/cpu/packed/microkernel.h"
#include "backend/cpu/packed/packing.h"
#include "core/parallel.h"
#include "graph/attr.h"

namespace halfstep::backend::cpu::packed {

/// c = a b, block by block; accumulated in float32. Each block is accumulated by one thread, kc
/// block after kc block, so the result depends neither on the number of threads nor on the
/// assignment: threads take tiles of the result dynamically.
class Product {
 public:
  /// Shape of the tiles: square ones read the fewest bytes of the operands; long_rows, where k fits
  /// in one kc block, write long runs of each row of the result.
  enum class Tiles { square, long_rows };
  /// `products`: partial products per multiplication of values, 1 for operands of one part, 3 or 4
  /// for operands of two. `packing`: of a row-major operand a.
  Product(const MicroKernel& unit,
          const Layout& a,
          const Layout& b,
          std::int64_t products,
          int threads,
          Tiles tiles,
          const std::optional<Packing>& packing = {});

  /// For the accumulators of all parts, two blocks of scratch each, for a row-major a one packed
  /// panel each, and for operands that the microkernel takes as float32 a panel of a and panels of
  /// b each.
  std::size_t workspace_bytes() const;

  /// The position of a block of complete accumulators.
  struct Place {
    std::int64_t i, j;  ///< row panel and column panel
    std::int64_t begin,
        end;  ///< the range of column panels around j that one thread computes in sequence
    std::int64_t part;  ///< blocks with the same part are computed in sequence
  };
  std::int64_t parts() const { return parts_; }
  /// The largest possible end - begin.
  std::int64_t run_panels() const;

  /// Calls finish(accumulators, position) once for each block, from several threads, and
  /// complete(part) after the last block of a part.
  using Finish = FunctionRef<void(const float* sums, const Place& at)>;
  using Complete = FunctionRef<void(std::int64_t part)>;
  void run(const std::byte* a,
           const std::byte* b,
           std::byte* workspace,
           Finish finish,
           Complete complete) const;

 private:
  /// Panels [i0, i1) of a by panels [j0, j1) of b.
  struct Region {
    std::int64_t i0 = 0, i1 = 0, j0 = 0, j1 = 0;

    std::int64_t rows() const { return i1 - i0; }
    std::int64_t columns() const { return j1 - j0; }
  };
  /// The operands, workspace and callback of a part of the result.
  struct Part {
    const std::byte* a;
    const std::byte* b;
    std::byte* workspace;
    Finish finish;
    std::int64_t index;
  };

  /// Operands of the next kc block: the first panel of a, and the panels of b.
  struct Ahead {
    std::span<const std::byte> a = {}, b = {};
  };

  /// Chooses parts and tiles for the number of threads.
  void choose_cut(std::int64_t threads, Tiles tiles);
  /// The same for a row-major operand a, each panel of which is packed for one tile only.
  void choose_rows(std::int64_t threads);
  std::int64_t tiles() const { return down_ * across_; }
  /// Tile t in the order in which tiles are started.
  Region tile(std::int64_t t) const;
  /// Returns the next tile of this thread; tiles() or more: none remain.
  std::int64_t run_tile(const Part& x, std::int64_t t, std::atomic<std::int64_t>& next) const;
  /// `next_tile`: runs after this one.
  Ahead ahead(const Part& x, const Region& tile, std::int64_t kc, const Region& next_tile) const;
  /// A panel of a in a kc block; packs it where a is row-major, and widens it for the microkernel.
  const std::byte* panel_of_a(const Part& x, std::int64_t kc, std::int64_t panel) const;
  /// The panels of b for a tile in a kc block, widened for the microkernel.
  const std::byte* panels_of_b(const Part& x, const Region& tile, std::int64_t kc) const;
  /// The workspace for widened panels of b.
  float* wide_b(const Part& x) const;
  void run_kc_block(const Part& x, const Region& tile, std::int64_t kc, const Ahead& ahead) const;

  const MicroKernel* unit_;
  void (*sweep_)(const MicroKernelArgs&);
  Layout a_, b_;
  std::optional<Packing> packing_;
  std::int64_t tile_panels_;
  std::int64_t parts_ = 1;
  // The result is cut into down_ x across_ tiles.
  std::int64_t down_ = 1;
  std::int64_t across_ = 1;
  /// Of the workspace: for a packed panel of a, a widened one, and widened panels of b.
  std::int64_t panel_bytes_ = 0, wide_a_bytes_ = 0, wide_b_bytes_ = 0;
  const MicroKernel::Widen* widen_ = nullptr;  ///< null: the microkernel takes 16-bit values
  bool keeps_b_ = false;                       ///< all of b is widened once by each part
  std::size_t part_bytes_;                     ///< of the workspace
};

/// Whether packing a row-major operand a panel by panel, while `threads` threads multiply it by b,
/// is preferable to a packed copy of a: where b has at most 128 columns, b stays in the
/// second-level cache if a panel of a is packed from whole rows, and a has a panel for each thread
/// in use.
Accepts packs_while_multiplying(const Packing& packing, const Layout& b, int threads);

/// The GEMM for a node's attributes m, n, k, T and `products`.
Product product_of(const graph::Attrs& attrs,
                   const MicroKernel& unit,
                   int threads,
                   Product::Tiles tiles,
                   const std::optional<Packing>& packing = {});

}  // namespace halfstep::backend::cpu::packed
