#pragma once
// The outputs of a model for samples: as lines of text, in a report, and as arrays of a file.

#include <cstddef>
#include <span>
#include <string>

#include "core/tensor.h"
#include "data/dataset.h"
#include "nn/trained_output.h"
#include "report/small_reports.h"

namespace halfstep::app {

/// An output of a sample, as text and for the report.
struct PredictedLine {
  std::string text;
  report::SamplePrediction prediction = {};
};

/// Sample `i` of the values of the output of that index in the model. Shapes: values float32
/// [samples, ...].
PredictedLine describe(const nn::TrainedOutput& output,
                       std::size_t index,
                       const Tensor& values,
                       std::size_t i,
                       const data::Dataset& trained_on);

/// Writes the arrays `outputs` of all samples, float32 [samples, ...], and `predictions`, int64, of
/// those that are scores of several classes, to an NPZ file; of several outputs `outputs_<output>`
/// and `predictions_<output>`. Errors: UserError(data) when it cannot be written.
void write_outputs(const std::string& path,
                   std::span<const nn::TrainedOutput> specs,
                   std::span<const Tensor> outputs);

}  // namespace halfstep::app
