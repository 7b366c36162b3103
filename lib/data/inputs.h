#pragma once
// The arrays of a model of several inputs or outputs, as one tensor of samples and one of labels:
// all that follows, from batches to checksums, then sees one array, and the graph of the step cuts
// a sample into its inputs, a label into those of the outputs.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/tensor_files.h"

namespace halfstep::data {

/// The inputs and outputs of a model that the arrays of an archive are named after.
struct NamedParts {
  std::vector<InputPart> inputs;   ///< of x_train_<input>; empty where there is x_train
  std::vector<LabelPart> outputs;  ///< of y_train_<output>; empty where there is y_train
};

/// Those of the archive, in its order, with the shapes of their samples in the layout `declared` or
/// the one that they seem to have. Errors: UserError(data) for arrays that cannot be read.
NamedParts parts_named_in(const NpzReader& npz, std::optional<Layout> declared);

/// "model.inputs: {image: [28, 28, 1], words: [80]} and model.outputs: [digit, centre]", with which
/// a config takes them; "" for at most one input and one output.
std::string config_of(const NamedParts& parts);

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

/// Whether the archive has the array `<prefix><name>` of any of the outputs.
bool has_labels(const NpzReader& npz, std::string_view prefix, std::span<const LabelPart> outputs);

/// The arrays `<prefix><name>` of the labels of outputs, whose shapes and dtypes it sets. Shapes:
/// each [N, ...]; the result float32 [N, values of all outputs in their order], class numbers
/// as floats. An array that is missing, that has another number of labels than the first one or
/// another shape than labels of that kind, or holds NaN or infinity unless these are allowed goes
/// to `diagnostics`. Labels that are images are transposed to the order of the output's axes;
/// `samples` is the layout of the samples. Absent labels are not read.
Tensor read_labels(const NpzReader& npz,
                   std::string_view prefix,
                   std::vector<LabelPart>& outputs,
                   const DataOptions& options,
                   std::optional<Layout> samples,
                   Diagnostics& diagnostics);

/// The labels of output `index`, [N, ...] in its dtype, out of those of all outputs.
Tensor labels_of(const TensorView& labels, std::span<const LabelPart> outputs, std::size_t index);

}  // namespace halfstep::data
