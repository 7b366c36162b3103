#pragma once
// The steps of load_dataset(): search for the files, and normalization of the splits read from them
// to the invariants of a Dataset.

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/dataset_registry.h"

namespace halfstep::data {

/// A set that was found: its table entry, the folder or file, and one path per file of the entry
/// (empty for an optional file that is missing).
struct LocatedDataset {
  DatasetDef def;
  std::string source;
  std::vector<std::string> files;
};

/// Finds the set named by the options; search paths are tried in order. Errors: UserError(config)
/// for an unknown name or format and for options that exclude each other; UserError(data) with the
/// searched paths for a set that is in none of them.
LocatedDataset locate(const DataOptions& options);

/// Images become uint8 or float32 with at least one axis per sample (two axes get a channel axis);
/// labels become int32 [N], or float32 [N, ...]; integers of several axes stay int32 where they are
/// class numbers, without a last axis of extent 1. `what` names the split in errors. Errors:
/// UserError(data) for an empty split, different counts of labels and images, labels beyond int32.
void normalise(Split& split, const std::string& what, bool class_numbers);

/// The labels of normalise() alone.
Tensor normalise_labels(Tensor labels, const std::string& what, bool class_numbers);

/// Whether integer labels cannot be class numbers: some are negative or exceed int32.
bool has_invalid_classes(const Tensor& labels);

Tensor to_float32(const Tensor& from);

/// Errors: UserError(data) naming the first NaN or infinity of a float32 tensor, whose elements
/// `kind` calls.
void check_finite(const Tensor& tensor, std::string_view kind, const std::string& what);
/// The same for float images or labels.
void check_finite(const Split& split, const std::string& what);

/// Keeps the first `count` samples.
/// Errors: UserError(config) when there are fewer, or count is below 1.
void keep_first(Split& split, std::int64_t count, const std::string& what, const Where& where);

}  // namespace halfstep::data
