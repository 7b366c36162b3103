#pragma once
// Random flips and translations of images [batch, rows, columns, channels]; draws and geometry in
// graph/ops/image.h. Dtypes: uint8 and floating.

#include <cstdint>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"
#include "graph/ops/image.h"

namespace halfstep::backend::cuda::kernels {

struct ImageBatch {
  DType dtype{};
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t channels = 1;
  const std::int64_t* ordinal = nullptr;
};

struct FlipParams {
  graph::ops::ImageFlip flip;
  ImageBatch images;
};
void random_flip(Stream stream, const FlipParams& params);

struct TranslationParams {
  graph::ops::ImageTranslation translation;
  ImageBatch images;
};
void random_translation(Stream stream, const TranslationParams& params);

}  // namespace halfstep::backend::cuda::kernels
