#pragma once
// Convolutions and their gradients on every kernel row that takes them.

#include <span>

#include "backend/backend.h"

namespace halfstep::bench {

/// Prints the least and the median time of each whose description ("residual a Conv2D bfloat16
/// onednn/conv") contains all of `words`.
void bench_convs(const backend::Backend& cpu, std::span<char* const> words);

}  // namespace halfstep::bench
