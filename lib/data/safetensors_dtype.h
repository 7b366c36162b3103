#pragma once
// The names safetensors has for element types.

#include <array>
#include <string_view>

#include "core/dtype.h"

namespace halfstep::data {

struct SafetensorsType {
  DType dtype;
  std::string_view name;
};

inline constexpr std::array k_safetensors_types{
    SafetensorsType{DType::float16, "F16"},
    SafetensorsType{DType::bfloat16, "BF16"},
    SafetensorsType{DType::float32, "F32"},
    SafetensorsType{DType::float64, "F64"},
    SafetensorsType{DType::int32, "I32"},
    SafetensorsType{DType::int64, "I64"},
    SafetensorsType{DType::uint8, "U8"},
    SafetensorsType{DType::boolean, "BOOL"},
};

constexpr std::string_view k_safetensors_metadata = "__metadata__";

}  // namespace halfstep::data
