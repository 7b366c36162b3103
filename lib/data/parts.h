#pragma once
// The parts that samples and labels are made of.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace halfstep::data {

/// An input of a model; the values of several follow each other in a sample.
struct InputPart {
  std::string name;
  Shape shape;                   ///< of one sample
  std::int64_t index_limit = 0;  ///< of values that are indices; 0: they are none
};

/// The labels of an output of a model of several; the values of all follow each other in a label.
struct LabelPart {
  std::string name;
  bool class_numbers = false;    ///< integers [N, k] are a class at each of k positions
  Shape shape = {};              ///< of one label; rank 0 for a single number
  DType dtype = DType::float32;  ///< as in a Split of this output alone; int32 for class numbers
  std::int64_t classes = 0;      ///< of class numbers, one more than the largest
  bool absent = false;           ///< nothing reads them: `shape` is [0]
  std::vector<std::string> class_names{};  ///< by label; empty: not known
  std::optional<Shape> output{};  ///< of a sample, by the model; tells the layout of images
  std::optional<std::int64_t> ignored_label{};  ///< no class, and need not be in range
};

/// The forms of the pictures of a folder, as stored.
struct PictureForms {
  std::int64_t min_height = 0, max_height = 0;  ///< pixels
  std::int64_t min_width = 0, max_width = 0;
  std::int64_t resized = 0;    ///< pictures that had another size than a sample
  std::int64_t converted = 0;  ///< other channels
};

}  // namespace halfstep::data
