// The units that multiply 16-bit dtypes, by instruction set and GPU.

#include "report/matrix_unit.h"

#include <doctest/doctest.h>

#include <array>
#include <ostream>

namespace halfstep::report {
namespace {

TEST_CASE("matrix units: each dtype has the unit and the caveat of its processor") {
  constexpr std::string_view k_widened =
      "held in 16 bits and multiplied in float32, which saves memory, not time";
  struct Row {
    std::string_view arch;
    DType dtype;
    std::string_view unit, caveat;
  };
  // AMX multiplies bfloat16; float16 gains time there by bfloat16 parts, and less of it.
  constexpr std::array k_rows{Row{"amx", DType::bfloat16, "AMX tiles", ""},
                              Row{"amx",
                                  DType::float16,
                                  "AMX tiles",
                                  "multiplied as bfloat16 parts, which is slower than bfloat16"},
                              Row{"avx512_bf16", DType::bfloat16, "AVX512-BF16 dot products", ""},
                              Row{"avx512_bf16", DType::float16, "", k_widened},
                              Row{"avx512", DType::bfloat16, "", k_widened},
                              Row{"baseline", DType::float16, "", k_widened},
                              Row{"amx", DType::float32, "", ""},
                              Row{"sm_70", DType::float16, "tensor cores", ""},
                              Row{"sm_75", DType::bfloat16, "", k_widened},
                              Row{"sm_80", DType::bfloat16, "tensor cores", ""}};
  for (const Row& row : k_rows) {
    CAPTURE(row.arch);
    CAPTURE(row.dtype);
    const auto unit = matrix_unit(row.arch, row.dtype);
    CHECK((unit ? unit->name : "") == row.unit);
    CHECK(half_caveat(row.arch, row.dtype) == row.caveat);
  }
}

}  // namespace
}  // namespace halfstep::report
