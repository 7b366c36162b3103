#include "backend/cpu/vector/convert.h"

#include <algorithm>

#include "backend/cpu/vector/kernels.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu::vector {
namespace {

constexpr std::int64_t k_convert_grain = 32768;

}  // namespace

bool is_computed(DType dtype) { return dtype == DType::float32 || is_half(dtype); }

Accepts accepts_dtype(DType dtype) {
  return is_computed(dtype) ? Accepts::yes()
                            : Accepts::no(fmt::format("{} is not supported", name(dtype)));
}

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
  parallel_for(n, k_convert_grain, [&](std::int64_t begin, std::int64_t end) {
    loop(y + begin, bytes + begin * size, end - begin);
  });
}

void widen_rows(const Loops& loops,
                DType dtype,
                const void* x,
                float* y,
                std::int64_t rows,
                std::int64_t columns,
                std::int64_t stride) {
  const Widen loop = widen_loop(loops, dtype);
  const auto* bytes = static_cast<const std::byte*>(x);
  const std::int64_t row_bytes = columns * static_cast<std::int64_t>(size_bytes(dtype));
  parallel_for_each(rows, k_convert_grain / columns + 1, [&](std::int64_t row) {
    loop(y + row * stride, bytes + row * row_bytes, columns);
  });
}

void narrow(const Loops& loops, const float* x, DType dtype, void* y, std::int64_t n) {
  const Narrow loop = narrow_loop(loops, dtype);
  auto* bytes = static_cast<std::byte*>(y);
  const auto size = static_cast<std::int64_t>(size_bytes(dtype));
  parallel_for(n, k_convert_grain, [&](std::int64_t begin, std::int64_t end) {
    loop(bytes + begin * size, x + begin, end - begin);
  });
}

namespace {

/// The high and low parts of n float16 values, at most k_run.
struct SplitValues {
  alignas(64) std::uint16_t parts[2][k_run];  ///< [SplitPart]

  SplitValues(const Loops& loops, Map subtract, const std::uint16_t* x, std::int64_t n) {
    alignas(64) float value[k_run];
    alignas(64) float high[k_run];
    loops.widen_float16(value, x, n);
    loops.narrow_bfloat16(parts[0], value, n);
    loops.widen_bfloat16(high, parts[0], n);
    const float* in[] = {value, high};
    subtract(value, in, n, 0);
    loops.narrow_bfloat16(parts[1], value, n);
  }
};

}  // namespace

void split_float16(const Loops& loops,
                   const void* x,
                   std::int64_t outer,
                   std::int64_t inner,
                   std::span<const SplitPart> parts,
                   void* y) {
  const Map subtract = find_entry(loops.maps, "Sub")->loop;
  const auto* from = static_cast<const std::uint16_t*>(x);
  auto* to = static_cast<std::uint16_t*>(y);
  const auto count = static_cast<std::int64_t>(parts.size());
  parallel_for(outer * inner, k_convert_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += k_run) {
      const std::int64_t last = std::min(first + k_run, end);
      const SplitValues split(loops, subtract, from + first, last - first);
      for (std::int64_t at = first; at < last;) {
        // The rest of this row, or of the run.
        const std::int64_t row = at / inner;
        const std::int64_t n = std::min((row + 1) * inner, last) - at;
        std::uint16_t* out = to + row * count * inner + at % inner;
        for (std::int64_t p = 0; p < count; ++p, out += inner) {
          const auto part = static_cast<std::size_t>(parts[static_cast<std::size_t>(p)]);
          std::copy_n(split.parts[part] + (at - first), n, out);
        }
        at += n;
      }
    }
  });
}

}  // namespace halfstep::backend::cpu::vector
