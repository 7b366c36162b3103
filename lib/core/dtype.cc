#include "core/dtype.h"

#include <array>

#include "core/error.h"

namespace halfstep {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
  std::string_view alias = {};
  double epsilon = 0;     ///< of a floating dtype; else 0
  double max_finite = 0;  ///< likewise
};

constexpr std::array k_rows{
    Row{DType::float32, "float32", 4, "float", 0x1p-23, 0x1.fffffep127},
    Row{DType::float64, "float64", 8, "double", 0x1p-52, 0x1.fffffffffffffp1023},
    Row{DType::float16, "float16", 2, "half", 0x1p-10, 65504},
    Row{DType::bfloat16, "bfloat16", 2, {}, 0x1p-7, 0x1.fep127},
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
  for (const Row& r : k_rows) {
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
