#include "core/dtype.h"

#include <array>

#include "core/error.h"

namespace halfstep {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array k_rows{
    Row{DType::float32, "float32", 4},
    Row{DType::float64, "float64", 8},
    Row{DType::float16, "float16", 2},
    Row{DType::bfloat16, "bfloat16", 2},
    Row{DType::int8, "int8", 1},
    Row{DType::int16, "int16", 2},
    Row{DType::int32, "int32", 4},
    Row{DType::int64, "int64", 8},
    Row{DType::uint8, "uint8", 1},
    Row{DType::uint16, "uint16", 2},
    Row{DType::uint32, "uint32", 4},
    Row{DType::uint64, "uint64", 8},
    Row{DType::boolean, "bool", 1},
    Row{DType::complex64, "complex64", 8},
    Row{DType::complex128, "complex128", 16},
    Row{DType::string, "string", 0},
    Row{DType::resource, "resource", 0},
    Row{DType::variant, "variant", 0},
    Row{DType::qint8, "qint8", 1},
    Row{DType::quint8, "quint8", 1},
    Row{DType::qint16, "qint16", 2},
    Row{DType::quint16, "quint16", 2},
    Row{DType::qint32, "qint32", 4},
};

constexpr auto k_dtypes = [] {
  std::array<DType, k_rows.size()> dtypes{};
  for (std::size_t i = 0; i < k_rows.size(); ++i) dtypes[i] = k_rows[i].dtype;
  return dtypes;
}();

const Row& row(DType dtype) { return k_rows[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::span<const DType> all_dtypes() { return k_dtypes; }

std::string_view name(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_named(std::string_view text) {
  if (text == "half") return DType::float16;
  if (text == "float") return DType::float32;
  if (text == "double") return DType::float64;
  for (const Row& r : k_rows) {
    if (r.name == text) return r.dtype;
  }
  return std::nullopt;
}

std::size_t size_bytes(DType dtype) { return row(dtype).bytes; }

bool is_floating(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float64 || is_half(dtype);
}

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

bool is_quantized(DType dtype) { return dtype >= DType::qint8; }

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 0x1p-10;
    case DType::bfloat16:
      return 0x1p-7;
    case DType::float32:
      return 0x1p-23;
    case DType::float64:
      return 0x1p-52;
    default:
      break;
  }
  require(false, "epsilon of {}", name(dtype));
  return 0;
}

double max_finite(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 65504.0;
    case DType::bfloat16:
      return 0x1.fep127;
    case DType::float32:
      return 0x1.fffffep127;
    case DType::float64:
      return 0x1.fffffffffffffp1023;
    default:
      break;
  }
  require(false, "max_finite of {}", name(dtype));
  return 0;
}

}  // namespace halfstep
