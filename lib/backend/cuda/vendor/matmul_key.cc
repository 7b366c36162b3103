#include "backend/cuda/vendor/matmul_key.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace halfstep::backend::cuda {

using graph::ops::FusedEpilogue;
using graph::ops::k_fused_epilogues;

const FusedEpilogue& traits_of(Epilogue epilogue) {
  static constexpr FusedEpilogue k_none{.name = "none"};
  const auto number = static_cast<std::size_t>(epilogue);
  return number == 0 ? k_none : k_fused_epilogues[number - 1];
}

Epilogue epilogue_named(std::string_view name) {
  const auto* found = std::ranges::find(k_fused_epilogues, name, &FusedEpilogue::name);
  require(found != k_fused_epilogues.end(), "no epilogue is named '{}'", name);
  return static_cast<Epilogue>(found - k_fused_epilogues.begin() + 1);
}

std::string to_string(const MatmulKey& key) {
  std::string text = fmt::format("[{},{}]{}x[{},{}]{} {} -> {}",
                                 key.transpose_a ? key.k : key.m,
                                 key.transpose_a ? key.m : key.k,
                                 key.transpose_a ? "^T " : "",
                                 key.transpose_b ? key.n : key.k,
                                 key.transpose_b ? key.k : key.n,
                                 key.transpose_b ? "^T" : "",
                                 halfstep::name(key.in),
                                 halfstep::name(key.out));
  if (key.row_b != 0) text += fmt::format(", rows of B {} apart", key.row_b);
  if (key.batch != 1) {
    text +=
        fmt::format(", {} times at {}/{}/{}", key.batch, key.stride_a, key.stride_b, key.stride_c);
  }
  if (key.epilogue != Epilogue::none) text += fmt::format(", {}", name(key.epilogue));
  if (key.in == DType::float32) text += key.float32 == Float32Math::tf32 ? ", tf32" : ", ieee";
  return text;
}

}  // namespace halfstep::backend::cuda
