#include "core/dtype.h"

#include <array>

#include "core/error.h"

namespace halfstep {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
  std::string_view alias = {};
  double epsilon = 0;     ///< of a floating dtype; else 0
  double max_finite = 0;  ///< likewise
};

constexpr std::array k_dtype_infos{
    DTypeInfo{DType::float32, "float32", 4, "float", 0x1p-23, 0x1.fffffep127},
    DTypeInfo{DType::float64, "float64", 8, "double", 0x1p-52, 0x1.fffffffffffffp1023},
    DTypeInfo{DType::float16, "float16", 2, "half", 0x1p-10, 65504},
    DTypeInfo{DType::bfloat16, "bfloat16", 2, {}, 0x1p-7, 0x1.fep127},
    DTypeInfo{DType::int8, "int8", 1},
    DTypeInfo{DType::int16, "int16", 2},
    DTypeInfo{DType::int32, "int32", 4},
    DTypeInfo{DType::int64, "int64", 8},
    DTypeInfo{DType::uint8, "uint8", 1},
    DTypeInfo{DType::uint16, "uint16", 2},
    DTypeInfo{DType::uint32, "uint32", 4},
    DTypeInfo{DType::uint64, "uint64", 8},
    DTypeInfo{DType::boolean, "bool", 1},
    DTypeInfo{DType::complex64, "complex64", 8},
    DTypeInfo{DType::complex128, "complex128", 16},
    DTypeInfo{DType::string, "string", 0},
    DTypeInfo{DType::resource, "resource", 0},
    DTypeInfo{DType::variant, "variant", 0},
    DTypeInfo{DType::qint8, "qint8", 1},
    DTypeInfo{DType::quint8, "quint8", 1},
    DTypeInfo{DType::qint16, "qint16", 2},
    DTypeInfo{DType::quint16, "quint16", 2},
    DTypeInfo{DType::qint32, "qint32", 4},
};

constexpr auto k_dtypes = [] {
  std::array<DType, k_dtype_infos.size()> dtypes{};
  for (std::size_t i = 0; i < k_dtype_infos.size(); ++i) dtypes[i] = k_dtype_infos[i].dtype;
  return dtypes;
}();

const DTypeInfo& row(DType dtype) { return k_dtype_infos[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::span<const DType> all_dtypes() { return k_dtypes; }

std::string_view name(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_named(std::string_view text) {
  for (const DTypeInfo& r : k_dtype_infos) {
    if (r.name == text || (r.alias == text && !text.empty())) return r.dtype;
  }
  return std::nullopt;
}

std::size_t size_bytes(DType dtype) { return row(dtype).bytes; }

bool is_floating(DType dtype) { return row(dtype).epsilon > 0; }

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

bool is_quantized(DType dtype) { return dtype >= DType::qint8; }

double epsilon(DType dtype) {
  require(is_floating(dtype), "epsilon of {}", name(dtype));
  return row(dtype).epsilon;
}

double max_finite(DType dtype) {
  require(is_floating(dtype), "max_finite of {}", name(dtype));
  return row(dtype).max_finite;
}

}  // namespace halfstep
