#include "backend/cuda/vendor/matmul_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace halfstep::backend::cuda {
namespace {

constexpr std::array<std::string_view, 7> k_epilogues{"none",
                                                      "bias",
                                                      "bias_relu",
                                                      "bias_relu_mask",
                                                      "relu_gradient",
                                                      "relu_gradient_bias_gradient",
                                                      "sums_of_b"};

}  // namespace

std::string_view name(Epilogue epilogue) { return k_epilogues[static_cast<std::size_t>(epilogue)]; }

Epilogue epilogue_named(std::string_view name) {
  const auto* found = std::find(k_epilogues.begin(), k_epilogues.end(), name);
  require(found != k_epilogues.end(), "no epilogue is named '{}'", name);
  return static_cast<Epilogue>(found - k_epilogues.begin());
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
