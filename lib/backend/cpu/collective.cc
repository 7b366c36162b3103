// Sums over the ranks of a run (graph/ops/collective.cc).

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backend/cpu/kernels.h"
#include "comm/communicator.h"
#include "core/dispatch.h"
#include "core/parallel.h"
#include "graph/ops/ops.h"

namespace halfstep::backend::cpu {
namespace {

/// Elements worth a thread: 256 KiB of float32.
constexpr std::int64_t k_collective_grain = 1 << 16;

/// `count` numbers, rounded to the dtype of `to` where that is narrower.
void copy_numbers(
    DType from_dtype, const std::byte* from, DType to_dtype, std::byte* to, std::int64_t count) {
  dispatch_floating(from_dtype, [&]<class From>(Type<From>) {
    dispatch_floating(to_dtype, [&]<class To>(Type<To>) {
      const auto* x = reinterpret_cast<const From*>(from);
      auto* y = reinterpret_cast<To*>(to);
      parallel_for(count, k_collective_grain, [&](std::int64_t begin, std::int64_t end) {
        if constexpr (std::is_same_v<From, To>) {
          std::copy(x + begin, x + end, y + begin);
        } else {
          for (std::int64_t i = begin; i < end; ++i) {
            y[i] = static_cast<To>(static_cast<float>(x[i]));
          }
        }
      });
    });
  });
}

Accepts among_ranks(const NodeView&, const Capabilities& capabilities) {
  return capabilities.ranks ? Accepts::yes() : Accepts::no("the run has no other ranks");
}

Prepared prepare_all_reduce_start(const NodeView& node, const Capabilities& capabilities) {
  const graph::TensorType& packed = node.output();
  const std::shared_ptr<comm::Collective> sum = capabilities.ranks->collective(
      packed.shape.elements(), packed.dtype, comm::CollectiveKind::all_reduce);
  const auto pack = [](const Args& args, DType dtype, std::byte* next) {
    for (const TensorView& from : args.in) {
      copy_numbers(from.dtype, from.as<std::byte>(), dtype, next, from.elements());
      next += static_cast<std::size_t>(from.elements()) * size_bytes(dtype);
    }
    return next;
  };
  return launch([sum, pack, ranks = capabilities.ranks](const Args& args) {
    const TensorView& to = args.out[0];
    std::byte* const end = pack(args, to.dtype, to.as<std::byte>());
    std::memset(end, 0, static_cast<std::size_t>(to.as<std::byte>() + to.bytes() - end));
    sum->start(to.as<std::byte>());
    if (to.dtype == DType::float32) return;
    ranks->start_exact(to.as<std::byte>(), to.elements(), [&](float* exact) {
      pack(args, DType::float32, reinterpret_cast<std::byte*>(exact));
    });
  });
}

Prepared prepare_all_reduce_wait(const NodeView&, const Capabilities& capabilities) {
  return launch([ranks = capabilities.ranks](const Args& args) {
    const TensorView& from = args.in[0];
    ranks->wait(from.as<std::byte>());
    ranks->compare_exact(from.as<std::byte>(), 0, from.elements(), from.dtype);
    const auto* next = from.as<std::byte>();
    for (const TensorView& to : args.out) {
      copy_numbers(from.dtype, next, to.dtype, to.as<std::byte>(), to.elements());
      next += static_cast<std::size_t>(to.elements()) * size_bytes(from.dtype);
    }
  });
}

/// Slice `rank` of a tensor of `elements` elements (graph/ops/collective.cc).
struct Slice {
  Slice(std::int64_t elements, std::int64_t rank, std::int64_t ranks)
      : count(graph::ops::slice_elements(elements, ranks)),
        begin(std::min(rank * count, elements)),
        present(std::min(count, elements - begin)) {}

  std::int64_t count;    ///< padding included
  std::int64_t begin;    ///< its first element
  std::int64_t present;  ///< elements that are no padding
};

std::byte* element(const TensorView& view, std::int64_t i) {
  return view.as<std::byte>() + static_cast<std::size_t>(i) * size_bytes(view.dtype);
}

Prepared prepare_reduce_scatter_start(const NodeView& node, const Capabilities& capabilities) {
  const graph::TensorType& packed = node.output();
  const std::shared_ptr<comm::Collective> sum = capabilities.ranks->collective(
      packed.shape.elements(), packed.dtype, comm::CollectiveKind::reduce_scatter);
  const auto pack = [ranks = capabilities.ranks->size()](
                        const Args& args, DType dtype, std::byte* next) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (const TensorView& from : args.in) {
        const Slice slice(from.elements(), rank, ranks);
        const auto bytes = [&](std::int64_t n) {
          return static_cast<std::size_t>(n) * size_bytes(dtype);
        };
        copy_numbers(from.dtype, element(from, slice.begin), dtype, next, slice.present);
        std::memset(next + bytes(slice.present), 0, bytes(slice.count - slice.present));
        next += bytes(slice.count);
      }
    }
  };
  return launch([sum, pack, ranks = capabilities.ranks](const Args& args) {
    const TensorView& to = args.out[0];
    pack(args, to.dtype, to.as<std::byte>());
    sum->start(to.as<std::byte>());
    if (to.dtype == DType::float32) return;
    ranks->start_exact(to.as<std::byte>(), to.elements(), [&](float* exact) {
      pack(args, DType::float32, reinterpret_cast<std::byte*>(exact));
    });
  });
}

Prepared prepare_reduce_scatter_wait(const NodeView&, const Capabilities& capabilities) {
  return launch([ranks = capabilities.ranks](const Args& args) {
    const TensorView& from = args.in[0];
    const std::int64_t count = from.elements() / ranks->size();
    std::int64_t next = ranks->rank() * count;
    ranks->wait(from.as<std::byte>());
    ranks->compare_exact(from.as<std::byte>(), next, count, from.dtype);
    for (const TensorView& to : args.out) {
      copy_numbers(from.dtype, element(from, next), to.dtype, to.as<std::byte>(), to.elements());
      next += to.elements();
    }
  });
}

Prepared prepare_all_gather_start(const NodeView& node, const Capabilities& capabilities) {
  const graph::TensorType& packed = node.output();
  const std::shared_ptr<comm::Collective> sum = capabilities.ranks->collective(
      packed.shape.elements(), packed.dtype, comm::CollectiveKind::all_gather);
  return launch([sum, ranks = capabilities.ranks](const Args& args) {
    const TensorView& to = args.out[0];
    std::int64_t next = ranks->rank() * (to.elements() / ranks->size());
    for (const TensorView& from : args.in) {
      copy_numbers(from.dtype, from.as<std::byte>(), to.dtype, element(to, next), from.elements());
      next += from.elements();
    }
    sum->start(to.as<std::byte>());
  });
}

Prepared prepare_all_gather_wait(const NodeView&, const Capabilities& capabilities) {
  return launch([ranks = capabilities.ranks](const Args& args) {
    const TensorView& from = args.in[0];
    ranks->wait(from.as<std::byte>());
    std::int64_t next = 0;
    for (int rank = 0; rank < ranks->size(); ++rank) {
      for (const TensorView& to : args.in.subspan(1)) {
        const Slice slice(to.elements(), rank, ranks->size());
        copy_numbers(
            from.dtype, element(from, next), to.dtype, element(to, slice.begin), slice.present);
        next += slice.count;
      }
    }
  });
}

}  // namespace

std::span<const Kernel> collective_kernels() {
  static const std::vector<Kernel> k_all{
      {"AllReduceStart", "ranks/all_reduce", among_ranks, prepare_all_reduce_start},
      {"AllReduceWait", "ranks/all_reduce", among_ranks, prepare_all_reduce_wait},
      {"ReduceScatterStart", "ranks/reduce_scatter", among_ranks, prepare_reduce_scatter_start},
      {"ReduceScatterWait", "ranks/reduce_scatter", among_ranks, prepare_reduce_scatter_wait},
      {"AllGatherStart", "ranks/all_gather", among_ranks, prepare_all_gather_start},
      {"AllGatherWait", "ranks/all_gather", among_ranks, prepare_all_gather_wait}};
  return k_all;
}

}  // namespace halfstep::backend::cpu
