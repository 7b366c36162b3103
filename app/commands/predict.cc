#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

#include "command.h"
#include "data/idx.h"
#include "data/image.h"
#include "data/npz.h"
#include "report/json.h"
#include "run_options.h"
#include "train/checkpoint.h"
#include "train/evaluate.h"
#include "training_run.h"

namespace halfstep::app {
namespace {

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

/// The same elements as [n, sample...] in the dtype of the training data.
Tensor as_batch(const Tensor& images, const data::Dataset& dataset, const std::string& path) {
  const std::int64_t per_sample = dataset.sample_shape.elements();
  if (images.elements() == 0 || images.elements() % per_sample != 0) {
    throw UserError(ErrorKind::data,
                    {path, 0, 0, ""},
                    fmt::format("holds {}, the model takes images of {}",
                                to_string(images.shape()),
                                to_string(dataset.sample_shape)));
  }
  std::vector<std::int64_t> dims{images.elements() / per_sample};
  dims.insert(dims.end(), dataset.sample_shape.begin(), dataset.sample_shape.end());
  Tensor batch(dataset.train.images.dtype(), Shape(dims));
  TensorView from = images.view();
  from.shape = batch.shape();
  convert(from, batch.view());
  return batch;
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
  const Tensor images = as_batch(read_images(state.input), dataset, state.input);
  config::RunSpec spec = loaded.spec;
  spec.training.validation_batch_size = std::min<std::int64_t>(images.shape()[0], 1024);
  train::Session session(spec, dataset, device, nn::Purpose::predict);
  train::load_weights(state.checkpoint, session.state());
  const Tensor outputs = train::predict(session, images.view());

  const std::int64_t classes = outputs.elements() / outputs.shape()[0];
  report::Json list = report::Json::array();
  for (std::int64_t i = 0; i < outputs.shape()[0]; ++i) {
    const std::vector<double> p = probabilities(
        outputs.as<float>() + i * classes, classes, session.blueprint().loss->from_logits());
    const auto best = static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin());
    const std::string name = best < dataset.class_names.size() ? dataset.class_names[best] : "";
    if (!state.run.json) {
      fmt::print("{:>6}  class {:>3}  {:<12} probability {:.4f}\n", i, best, name, p[best]);
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
