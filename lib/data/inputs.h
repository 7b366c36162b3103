#pragma once
// The arrays of models with several inputs or outputs, concatenated into one tensor of samples and
// one of labels. Batching and checksums then see one array; the graph of the step splits a sample
// into the inputs and a label into those of the outputs.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/tensor_files.h"

namespace halfstep::data {

/// The inputs and outputs that an archive has arrays for.
struct ElementSpec {
  std::vector<InputSpec> inputs;   ///< of x_train_<input>; empty where there is x_train
  std::vector<LabelSpec> outputs;  ///< of y_train_<output>; empty where there is y_train
};

/// The element spec of an archive, in the order of its arrays, with sample shapes in the layout
/// `declared` or the inferred one. Errors: UserError(data) for arrays that cannot be read.
ElementSpec element_spec_of(const NpzReader& npz, std::optional<Layout> declared);

/// "model.inputs: {image: [28, 28, 1], words: [80]} and model.outputs: [digit, centre]", with which
/// a config uses them; "" for at most one input and one output.
std::string config_of(const ElementSpec& parts);

/// Whether the archive has the array `<prefix><name>` of any of the inputs.
bool has_inputs(const NpzReader& npz, std::string_view prefix, std::span<const InputSpec> inputs);

/// The arrays `<prefix><name>` of options.inputs. Shapes: each [N, ...] with samples of the input's
/// shape, flat or not, in options.layout where they have channels; the result [N, values of all
/// inputs in their order]. Dtypes: uint8 where `keep_bytes`, all arrays are bytes and none is of
/// indices; else float32, in which indices are as stored and other values times options.scale, by
/// default 1/255 for bytes. Errors: UserError(data) naming the array that is missing, whose samples
/// do not fit, which has another number of them, or holds NaN or infinity unless these are allowed,
/// or an index above 2^24, which float32 does not hold.
Tensor read_inputs(const NpzReader& npz,
                   std::string_view prefix,
                   const DataOptions& options,
                   bool keep_bytes);

/// Whether the archive has the array `<prefix><name>` of any of the outputs.
bool has_labels(const NpzReader& npz, std::string_view prefix, std::span<const LabelSpec> outputs);

/// The arrays `<prefix><name>` of the labels of outputs, whose shapes and dtypes it sets. Shapes:
/// each [N, ...]; the result float32 [N, values of all outputs in their order], class numbers
/// as floats. An array that is missing, that has another number of labels than the first one or
/// another shape than labels of that kind, or holds NaN or infinity unless these are allowed goes
/// to `diagnostics`. Labels that are images are transposed to the order of the output's axes;
/// `samples` is the layout of the samples. Absent labels are not read.
Tensor read_labels(const NpzReader& npz,
                   std::string_view prefix,
                   std::vector<LabelSpec>& outputs,
                   const DataOptions& options,
                   std::optional<Layout> samples,
                   Diagnostics& diagnostics);

/// The labels of output `index`, [N, ...] in its dtype, out of those of all outputs.
Tensor labels_of(const TensorView& labels, std::span<const LabelSpec> outputs, std::size_t index);

}  // namespace halfstep::data
