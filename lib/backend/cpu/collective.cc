// Sums over the ranks of a run (graph/ops/collective.cc).

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backend/cpu/kernels.h"
#include "comm/communicator.h"
#include "core/dispatch.h"
#include "core/parallel.h"

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
  const std::shared_ptr<comm::Sum> sum =
      capabilities.ranks->sum(packed.shape.elements(), packed.dtype);
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
    ranks->compare_exact(from.as<std::byte>(), from.elements(), from.dtype);
    const auto* next = from.as<std::byte>();
    for (const TensorView& to : args.out) {
      copy_numbers(from.dtype, next, to.dtype, to.as<std::byte>(), to.elements());
      next += static_cast<std::size_t>(to.elements()) * size_bytes(from.dtype);
    }
  });
}

}  // namespace

std::span<const Kernel> collective_kernels() {
  static const std::vector<Kernel> k_all{
      {"AllReduceStart", "ranks/all_reduce", among_ranks, prepare_all_reduce_start},
      {"AllReduceWait", "ranks/all_reduce", among_ranks, prepare_all_reduce_wait}};
  return k_all;
}

}  // namespace halfstep::backend::cpu
