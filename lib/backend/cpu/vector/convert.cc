#include "backend/cpu/vector/convert.h"

#include "core/parallel.h"

namespace halfstep::backend::cpu::vector {
namespace {

constexpr std::int64_t k_grain = 32768;

}  // namespace

bool is_computed(DType dtype) { return dtype == DType::float32 || is_half(dtype); }

Widen widen_loop(const Loops& loops, DType dtype) {
  switch (dtype) {
    case DType::float16:
      return loops.widen_float16;
    case DType::bfloat16:
      return loops.widen_bfloat16;
    case DType::uint8:
    case DType::boolean:
      return loops.widen_uint8;
    case DType::int32:
      return loops.widen_int32;
    default:
      return nullptr;
  }
}

Narrow narrow_loop(const Loops& loops, DType dtype) {
  switch (dtype) {
    case DType::float16:
      return loops.narrow_float16;
    case DType::bfloat16:
      return loops.narrow_bfloat16;
    case DType::uint8:
      return loops.narrow_uint8;
    case DType::boolean:
      return loops.narrow_bool;
    case DType::int32:
      return loops.narrow_int32;
    default:
      return nullptr;
  }
}

void widen(const Loops& loops, DType dtype, const void* x, float* y, std::int64_t n) {
  const Widen loop = widen_loop(loops, dtype);
  const auto* bytes = static_cast<const std::byte*>(x);
  const auto size = static_cast<std::int64_t>(size_bytes(dtype));
  parallel_for(n, k_grain, [&](std::int64_t begin, std::int64_t end) {
    loop(y + begin, bytes + begin * size, end - begin);
  });
}

void narrow(const Loops& loops, const float* x, DType dtype, void* y, std::int64_t n) {
  const Narrow loop = narrow_loop(loops, dtype);
  auto* bytes = static_cast<std::byte*>(y);
  const auto size = static_cast<std::int64_t>(size_bytes(dtype));
  parallel_for(n, k_grain, [&](std::int64_t begin, std::int64_t end) {
    loop(bytes + begin * size, x + begin, end - begin);
  });
}

}  // namespace halfstep::backend::cpu::vector
