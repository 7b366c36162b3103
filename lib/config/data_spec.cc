#include "config/data_spec.h"

#include <filesystem>

namespace halfstep::config {
namespace {

constexpr std::array k_data_layouts{Named{DataLayout::nhwc, "nhwc"},
                                    Named{DataLayout::nchw, "nchw"}};

}  // namespace

std::optional<std::string> DataSpec::located_path() const {
  if (!path) return std::nullopt;
  return (std::filesystem::path(base) / *path).lexically_normal().string();
}

void DataSpec::fields(Fields& f) {
  f.field("name", name, {.doc = "a known data set; excludes format and path"});
  f.choice("format", format, k_data_formats, {.doc = "how the files at `path` are stored"});
  f.field("path", path, {.doc = "a file or folder; relative to this config file"});
  f.field("sha256", sha256, {.doc = "what the file's checksum must be, in hexadecimal"});
  f.choice(
      "layout",
      layout,
      k_data_layouts,
      {.doc = "order of the axes of stored samples: nhwc (height, width, channels) or nchw "
              "(channels, height, width), which becomes nhwc on load; null: inferred, an error "
              "where both fit"});
  f.field("validation_split",
          validation_split,
          {.doc = "the last fraction of the training samples, kept for validation",
           .min = 0,
           .below = 1});
  f.field("scale",
          scale,
          {.doc = "what stored values are multiplied by; null: 1/255 for bytes, 1 for floats"});
  f.field("shuffle", shuffle, {.doc = "draw the training samples in a new order each epoch"});
  f.field(
      "prefetch",
      prefetch,
      {.doc = "batches prepared ahead on a thread of their own; null: 2 where the step leaves a "
              "processor to it, else 0",
       .min = 0,
       .max = 1024});
  constexpr double k_most_samples = 1e9;
  f.field("train_samples",
          train_samples,
          {.doc = "of synthetic data", .min = 1, .max = k_most_samples});
  f.field(
      "test_samples", test_samples, {.doc = "of synthetic data", .min = 1, .max = k_most_samples});
}

}  // namespace halfstep::config
