#pragma once
// Names, shapes and dtypes of the inputs and labels of models with several inputs or outputs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace halfstep::data {

/// An input of a model. A sample is the concatenation of the values of all inputs.
struct InputSpec {
  std::string name;
  Shape shape;  ///< of one sample
  std::int64_t index_limit =
      0;  ///< exclusive upper limit of indices; 0: the values are not indices
};

/// The labels of one of several outputs. A label is the concatenation of the values of all outputs.
struct LabelSpec {
  std::string name;
  bool class_numbers = false;    ///< integers [N, k] are a class at each of k positions
  Shape shape = {};              ///< of one label; rank 0 for a single number
  DType dtype = DType::float32;  ///< int32 for class numbers, else float32
  std::int64_t classes = 0;      ///< number of classes, one more than the largest class number
  bool absent = false;           ///< no loss or metric reads them; `shape` is [0]
  std::vector<std::string> class_names{};  ///< by label; empty: not known
  std::optional<Shape> output{};  ///< the model's output shape per sample, to infer the layout
  std::optional<std::int64_t> ignored_label{};  ///< may be out of the range of classes
};

/// Statistics of the files of an image folder, before conversion.
struct ImageFolderStats {
  std::int64_t min_height = 0, max_height = 0;  ///< pixels
  std::int64_t min_width = 0, max_width = 0;
  std::int64_t resized = 0;    ///< images with another size than a sample
  std::int64_t converted = 0;  ///< images with other channels
};

}  // namespace halfstep::data
