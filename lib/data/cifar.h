#pragma once
// CIFAR-10 and CIFAR-100 in their binary form: records of label bytes and 3072 bytes of a 32x32
// image, one colour plane after the other.

#include <span>
#include <string>

#include "data/dataset.h"

namespace halfstep::data {

enum class Cifar {
  ten,      ///< one label byte
  hundred,  ///< a coarse and a fine label byte; the fine one is used
};

/// The records of the files, one file after the other.
/// Shapes: images [N, 32, 32, 3], colours interleaved; labels [N].
/// Errors: UserError(data) for a file that is empty or not a whole number of records, or a label
/// out of range.
Split read_cifar(std::span<const std::string> paths, Cifar kind);

}  // namespace halfstep::data
