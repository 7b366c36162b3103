#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "command.h"
#include "core/printable.h"
#include "data/idx.h"
#include "data/image.h"
#include "data/npz.h"
#include "open_device.h"
#include "report/json.h"
#include "run_options.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "training_run.h"

namespace halfstep::app {
namespace {

/// Images in one batch; more are predicted in several.
constexpr std::int64_t k_most_at_once = 1024;

struct State {
  RunOptions run;
  std::string checkpoint;
  std::string input;
};

/// The images of a PNG, PGM, IDX or NPZ file (its array x, x_test or images, or the only one).
Tensor read_images(const std::string& path) {
  if (data::is_image(path)) return data::read_image(path);
  if (!path.ends_with(".npz")) return data::read_idx(path);
  const data::NpzReader npz(path);
  for (const char* name : {"x", "images", "x_test"}) {
    if (npz.contains(name)) return npz.read(name);
  }
  const std::vector<std::string> names = npz.names();
  if (names.size() == 1) return npz.read(names.front());
  throw UserError(
      ErrorKind::data,
      {path, 0, 0, ""},
      fmt::format("has {} arrays and none is called x, images or x_test", names.size()));
}

/// `shape` without axes of one, which do not change what an image is.
std::vector<std::int64_t> without_ones(std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> rest(dims.begin(), dims.end());
  std::erase(rest, 1);
  return rest;
}

/// How many samples of shape `sample` a tensor holds; nothing when it holds none or others.
/// Shapes: one sample or [n, sample...], flat or not, with or without axes of one.
std::optional<std::int64_t> count_samples(const Shape& shape, const Shape& sample) {
  const auto is_sample = [&](std::span<const std::int64_t> dims) {
    return without_ones(dims) == without_ones(sample.dims()) ||
           (dims.size() == 1 && dims[0] == sample.elements());
  };
  if (is_sample(shape.dims())) return 1;
  if (shape.rank() < 2 || shape[0] == 0 || !is_sample(shape.dims().subspan(1))) return std::nullopt;
  return shape[0];
}

/// The same elements as [n, sample...], as bytes or floats.
Tensor as_batch(const Tensor& images, const Shape& sample, const std::string& path) {
  const auto fail = [&](std::string message) {
    throw UserError(ErrorKind::data, {path, 0, 0, ""}, std::move(message));
  };
  const auto count = count_samples(images.shape(), sample);
  if (!count) {
    fail(fmt::format(
        "holds {}, the model takes images of {}", to_string(images.shape()), to_string(sample)));
  }
  std::vector<std::int64_t> dims{*count};
  dims.insert(dims.end(), sample.begin(), sample.end());
  const bool bytes = images.dtype() == DType::uint8;
  Tensor batch(bytes ? DType::uint8 : DType::float32, Shape(dims));
  TensorView from = images.view();
  from.shape = batch.shape();
  convert(from, batch.view());
  if (bytes) return batch;
  const std::span<const float> values = batch.span<float>();
  const auto broken =
      std::find_if(values.begin(), values.end(), [](float x) { return !std::isfinite(x); });
  if (broken != values.end()) {
    fail(fmt::format("image {} has {}", (broken - values.begin()) / sample.elements(), *broken));
  }
  return batch;
}

/// The images as a data set of their own: bytes are scaled like bytes that are trained on, floats
/// like floats, whatever the model was trained on.
data::Dataset as_dataset(Tensor images, const data::Dataset& trained_on) {
  data::Dataset dataset;
  dataset.source = trained_on.source;
  dataset.classes = trained_on.classes;
  dataset.sample_shape = trained_on.sample_shape;
  dataset.train.labels = Tensor(DType::int32, {images.shape()[0]});
  dataset.train.images = std::move(images);
  return dataset;
}

/// Softmax of a row of scores, in double.
std::vector<double> probabilities(const float* row, std::int64_t classes, bool scores) {
  std::vector<double> p(row, row + classes);
  if (!scores) return p;
  const double top = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - top);
  for (double& x : p) x /= sum;
  return p;
}

int predict(const State& state) {
  apply_logging(state.run);
  const LoadedConfig loaded = load_config(state.run);
  const backend::Backend device = open_device(loaded.spec);
  const data::Dataset dataset = load_data(loaded);
  const data::Dataset asked =
      as_dataset(as_batch(read_images(state.input), dataset.sample_shape, state.input), dataset);
  config::RunSpec spec = loaded.spec;
  spec.data.validation_split = 0;
  spec.training.batch_size = std::min<std::int64_t>(asked.train.samples(), k_most_at_once);
  spec.training.validation_batch_size = spec.training.batch_size;
  train::Session session(spec, asked, device, nn::Purpose::predict);
  train::load_weights(state.checkpoint, session.state());
  const Tensor outputs = train::predict(session, asked.train.images.view());

  const std::int64_t classes = outputs.elements() / outputs.shape()[0];
  report::Json list = report::Json::array();
  for (std::int64_t i = 0; i < outputs.shape()[0]; ++i) {
    const std::vector<double> p = probabilities(
        outputs.as<float>() + i * classes, classes, session.blueprint().loss->from_logits());
    const auto best = static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin());
    const std::string name = best < dataset.class_names.size() ? dataset.class_names[best] : "";
    if (!state.run.json) {
      fmt::print(
          "{:>6}  class {:>3}  {:<12} probability {:.4f}\n", i, best, printable(name), p[best]);
      continue;
    }
    report::Json all = report::Json::array();
    for (double x : p) all.push_back(report::number(x));
    list.push_back({{"index", i},
                    {"class", best},
                    {"name", name.empty() ? report::Json(nullptr) : report::Json(name)},
                    {"probability", report::number(p[best])},
                    {"probabilities", std::move(all)}});
  }
  if (state.run.json) {
    report::Json report{
        {"schema_version", 1}, {"kind", "predict"}, {"predictions", std::move(list)}};
    report::name_nonfinite(report);
    fmt::print("{}", report::dump(report));
  }
  return 0;
}

std::function<int()> declare_predict(CLI::App& command) {
  const auto state = std::make_shared<State>();
  declare(command, state->run, {});
  command
      .add_option(
          "--checkpoint", state->checkpoint, "checkpoint, run directory or safetensors file")
      ->required();
  command.add_option("--input", state->input, "images: PNG, PGM, IDX or NPZ")->required();
  return [state] { return predict(*state); };
}

}  // namespace

const Command k_predict{"predict", "class and probabilities of images", declare_predict};

}  // namespace halfstep::app
