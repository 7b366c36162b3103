#pragma once
// Element types, with TensorFlow's names. Kernels exist for the floating types, uint8, int32, int64
// and bool; the others only type the nodes of imported graphs.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

namespace halfstep {

enum class DType : std::uint8_t {
  float32,
  float64,
  float16,
  bfloat16,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,
  complex64,
  complex128,
  string,
  resource,
  variant,
  qint8,
  quint8,
  qint16,
  quint16,
  qint32,
};

/// All dtypes, in the order of the enum.
std::span<const DType> all_dtypes();

/// TensorFlow's name: "float32", "float16", "bool", ...
std::string_view name(DType dtype);

/// The dtype of a TensorFlow name; also accepts "half", "float" and "double".
std::optional<DType> dtype_named(std::string_view text);

/// Bytes of one element; 0 for string, resource and variant.
std::size_t size_bytes(DType dtype);

/// float16, bfloat16, float32 or float64.
bool is_floating(DType dtype);

/// float16 or bfloat16.
bool is_half(DType dtype);

bool is_quantized(DType dtype);

/// Machine epsilon, the distance from 1 to the next value: 2^-10 (float16), 2^-7 (bfloat16), 2^-23,
/// 2^-52. Errors: InternalError for a dtype that is not floating.
double epsilon(DType dtype);

/// Largest finite number. Errors: InternalError for a dtype that is not floating.
double max_finite(DType dtype);

/// A set of dtypes, as in an op's type constraint.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> dtypes) {
    for (DType d : dtypes) insert(d);
  }
  constexpr bool contains(DType d) const { return (bits_ >> static_cast<unsigned>(d)) & 1U; }
  constexpr void insert(DType d) { bits_ |= std::uint32_t{1} << static_cast<unsigned>(d); }
  constexpr void erase(DType d) { bits_ &= ~(std::uint32_t{1} << static_cast<unsigned>(d)); }
  constexpr DTypeSet operator|(DTypeSet o) const { return DTypeSet(bits_ | o.bits_); }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool operator==(const DTypeSet&) const = default;

 private:
  constexpr explicit DTypeSet(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_ = 0;
};

}  // namespace halfstep
