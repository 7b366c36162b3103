#pragma once
// The arrays of a model of several inputs, as one tensor of samples: all that follows, from batches
// to checksums, then sees one array, and the graph of the step cuts a sample into its inputs.

#include <span>
#include <string>
#include <string_view>

#include "data/dataset.h"
#include "data/tensor_files.h"

namespace halfstep::data {

/// Whether the archive has the array `<prefix><name>` of any of the inputs.
bool has_inputs(const NpzReader& npz, std::string_view prefix, std::span<const InputPart> inputs);

/// The arrays `<prefix><name>` of options.inputs. Shapes: each [N, ...] with samples of the input's
/// shape, flat or not, in options.layout where they have channels; the result [N, values of all
/// inputs in their order]. Dtypes: uint8 where `keeps_bytes`, all arrays are bytes and none is of
/// indices; else float32, in which indices are as stored and other values times options.scale, by
/// default 1/255 for bytes. Errors: UserError(data) naming the array that is missing, whose samples
/// do not fit, which has another number of them, or holds NaN or infinity unless these are allowed,
/// or an index above 2^24, which float32 does not hold.
Tensor read_inputs(const NpzReader& npz,
                   std::string_view prefix,
                   const DataOptions& options,
                   bool keeps_bytes);

}  // namespace halfstep::data
