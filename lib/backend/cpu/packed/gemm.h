#pragma once
// GEMM of two packed operands, blocked for the caches. Operand a may also be row-major: each of its
// panels is then packed into the L1 cache right before it is multiplied, so that no packed copy
// goes through memory.

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

/// c = a b, block by block; accumulated in float32. One thread accumulates a block, kc block by kc
/// block, so the bits of the result do not depend on the number of threads, which claim tiles of
/// the result dynamically.
class Gemm {
 public:
  /// Shape of the tiles: `square` tiles read the fewest bytes of the operands; `long_rows` tiles,
  /// if k fits in one kc block, write long runs of each row of the result.
  enum class TileShape { square, long_rows };
  /// `partial_products` per multiplication: 1 for operands of one part, 3 or 4 for operands of two.
  /// `packing`: that of a row-major operand a.
  Gemm(const MicroKernel& micro_kernel,
       const Layout& a,
       const Layout& b,
       std::int64_t partial_products,
       int threads,
       TileShape shape,
       const std::optional<Packing>& packing = {});

  /// For each part: its accumulators, two blocks of scratch, a packed panel of a row-major a, and
  /// widened panels of a and b if the micro-kernel reads float32.
  std::size_t workspace_bytes() const;

  /// The position of a block of complete accumulators.
  struct BlockPosition {
    std::int64_t i, j;        ///< row panel and column panel
    std::int64_t begin, end;  ///< the column panels of the tile, computed in order by one thread
    std::int64_t part;        ///< blocks with the same part are computed in order by one thread
  };
  std::int64_t parts() const { return parts_; }
  /// The maximum of end - begin.
  std::int64_t max_tile_columns() const;

  /// Calls epilogue(accumulators, position) once for each block, from several threads, and
  /// end_part(part) after the last block of a part.
  using Epilogue = FunctionRef<void(const float* accumulators, const BlockPosition& at)>;
  using EndPart = FunctionRef<void(std::int64_t part)>;
  void run(const std::byte* a,
           const std::byte* b,
           std::byte* workspace,
           Epilogue epilogue,
           EndPart end_part) const;

 private:
  /// Panels [i0, i1) of a by panels [j0, j1) of b.
  struct Tile {
    std::int64_t i0 = 0, i1 = 0, j0 = 0, j1 = 0;

    std::int64_t rows() const { return i1 - i0; }
    std::int64_t columns() const { return j1 - j0; }
  };
  /// The operands, workspace and epilogue of a part of the result.
  struct Part {
    const std::byte* a;
    const std::byte* b;
    std::byte* workspace;
    Epilogue epilogue;
    std::int64_t index;
  };

  /// Operands of the next kc block: the first panel of a, and the panels of b.
  struct NextOperands {
    std::span<const std::byte> a = {}, b = {};
  };

  /// Chooses parts and tiles for the number of threads.
  void choose_tiles(std::int64_t threads, TileShape shape);
  /// The same for a row-major operand a, each panel of which is packed for one tile only.
  void choose_row_tiles(std::int64_t threads);
  std::int64_t tiles() const { return tile_rows_ * tile_columns_; }
  /// Tile t in the order in which tiles are started.
  Tile tile(std::int64_t t) const;
  /// Returns the next tile of this thread; tiles() or more: none remain.
  std::int64_t run_tile(const Part& x, std::int64_t t, std::atomic<std::int64_t>& next) const;
  /// `next_tile`: the tile that this thread computes next.
  NextOperands next_operands(const Part& x,
                             const Tile& tile,
                             std::int64_t kc,
                             const Tile& next_tile) const;
  /// A panel of a in a kc block; packs it if a is row-major, and widens it for the micro-kernel.
  const std::byte* panel_of_a(const Part& x, std::int64_t kc, std::int64_t panel) const;
  /// The panels of b for a tile in a kc block, widened for the micro-kernel.
  const std::byte* panels_of_b(const Part& x, const Tile& tile, std::int64_t kc) const;
  /// The workspace for widened panels of b.
  float* widened_b(const Part& x) const;
  void run_kc_block(const Part& x,
                    const Tile& tile,
                    std::int64_t kc,
                    const NextOperands& next) const;

  const MicroKernel* micro_kernel_;
  void (*run_micro_kernel_)(const MicroKernelArgs&);
  Layout a_, b_;
  std::optional<Packing> packing_;
  std::int64_t tile_panels_;
  std::int64_t parts_ = 1;
  // The result consists of tile_rows_ x tile_columns_ tiles.
  std::int64_t tile_rows_ = 1, tile_columns_ = 1;
  /// Workspace of a packed panel of a, a widened panel of a, and widened panels of b.
  std::int64_t panel_bytes_ = 0, widened_a_bytes_ = 0, widened_b_bytes_ = 0;
  const MicroKernel::Widen* widen_ = nullptr;  ///< null: the micro-kernel reads 16-bit values
  bool widens_all_of_b_ = false;               ///< once per part
  std::size_t part_bytes_;                     ///< of the workspace
};

/// Whether packing a row-major operand a panel by panel, while `threads` threads multiply it by b,
/// is preferable to a packed copy of a: b has at most 128 columns and, if a panel of a is packed
/// from full rows, fits in the L2 cache, and a has a panel for each thread in use.
Accepts packs_while_multiplying(const Packing& packing, const Layout& b, int threads);

/// The GEMM for a node's attributes m, n, k, T and `products`.
Gemm gemm_of(const graph::Attrs& attrs,
             const MicroKernel& micro_kernel,
             int threads,
             Gemm::TileShape shape,
             const std::optional<Packing>& packing = {});

}  // namespace halfstep::backend::cpu::packed
