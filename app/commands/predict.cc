#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "command.h"
#include "config/warning_codes.h"
#include "core/log.h"
#include "data/dataset_registry.h"
#include "data/file.h"
#include "data/file_kind.h"
#include "data/image.h"
#include "data/image_folder.h"
#include "data/inputs.h"
#include "data/tensor_files.h"
#include "data/text_tokens.h"
#include "open_device.h"
#include "predictions.h"
#include "report/small_reports.h"
#include "terminal.h"
#include "train/checkpoint.h"
#include "train/session.h"
#include "used_run.h"
#include "warnings.h"

namespace halfstep::app {
namespace {

namespace fs = std::filesystem;

/// Batch size; more samples are predicted in several batches.
constexpr std::int64_t k_max_at_once = 1024;

struct PredictFlags {
  RunOptions run;
  std::string checkpoint, output;
  std::vector<std::string> inputs, more_inputs;
};

/// The columns of a table as a run was trained on them.
struct TableColumns {
  config::TableSpec spec;
  data::TableEncoding encoding;
};

/// The tokens of a text as a run was trained on them.
struct TextWindows {
  config::TextSpec spec;
  data::TextVocabulary vocabulary;
};

/// Preprocessing of stored values to the values that the model was trained on.
struct Preparation {
  data::LayoutHints layout;  ///< `wanted` is the shape of a sample
  data::ImageConversion
      image_conversion;         ///< of the folder of images that was trained on; else as they are
  std::optional<double> scale;  ///< of all values; absent: bytes are scaled to [0, 1]
  bool trained_on_bytes = true;
  bool skip_bad_images = false;       ///< of folders; files that are named must be read
  std::optional<TableColumns> table;  ///< that was trained on
  std::optional<TextWindows> text;    ///< likewise
  std::optional<data::Cifar> cifar;   ///< likewise, of its binary files
  data::DataOptions several;          ///< its `inputs` are those of a model of several; else empty
};

/// The arrays x_<input>, <input> or x_test_<input> of a model of several inputs, scaled.
Tensor read_several(const std::string& path, const data::DataOptions& options) {
  if (!path.ends_with(".npz")) {
    throw UserError(
        ErrorKind::data,
        {path, 0, 0, ""},
        "is not an NPZ file, which must hold the several inputs of this model as arrays",
        fmt::format("name its arrays x_{} and so on", options.inputs[0].name));
  }
  const data::NpzReader npz(path);
  for (const char* prefix : {"", "x_test_"}) {
    if (has_inputs(npz, prefix, options.inputs)) {
      return read_inputs(npz, prefix, options, false);
    }
  }
  return read_inputs(npz, "x_", options, false);
}

/// The arrays of a PNG, JPEG, BMP, PGM, PPM, IDX, NPY or NPZ file (its array x, images, x_test or
/// test_images, or the only one), the samples of a file of CIFAR, the rows of a CSV file, or the
/// windows of a text.
Tensor read_samples(const std::string& path, const Preparation& preparation) {
  if (data::is_image(path)) return data::read_image(path, preparation.image_conversion);
  if (path.ends_with(".npy")) return data::read_npy(data::read_file(path), path);
  if (preparation.cifar && path.ends_with(".bin")) {
    return data::read_cifar(std::array{path}, *preparation.cifar).images;
  }
  if (!path.ends_with(".npz")) {
    if (const auto& text = preparation.text) {
      return preparation.table ? data::read_column_texts(
                                     path, preparation.table->spec, text->spec, text->vocabulary)
                               : data::read_windows(path, text->spec, text->vocabulary);
    }
    const std::string kind = data::file_kind_of(path).name;
    if (!preparation.table && (kind.ends_with(" image") || kind == "text")) {
      return data::read_image(path,
                              preparation.image_conversion);  // reports why it is not an image
    }
    if (!preparation.table) return data::read_idx(path);
    return data::read_features(path, preparation.table->spec, preparation.table->encoding);
  }
  const data::NpzReader npz(path);
  for (const char* name : {"x", "images", "x_test", "test_images"}) {
    if (npz.contains(name)) return npz.read(name);
  }
  const std::vector<std::string> names = npz.names();
  if (names.size() == 1) return npz.read(names.front());
  throw UserError(
      ErrorKind::data,
      {path, 0, 0, ""},
      fmt::format("has the arrays {}, and none is named x, images, x_test or test_images",
                  fmt::join(names, ", ")));
}

struct InputFile {
  std::string path;
  bool from_folder = false;
};

/// The input files. In place of a folder: for a run on a text the texts in it, else the images in
/// it and below it, in the order of their paths. A run on a table takes no folder.
std::vector<InputFile> files_of(std::vector<std::string> inputs,
                                const std::vector<std::string>& more,
                                const Preparation& preparation) {
  inputs.insert(inputs.end(), more.begin(), more.end());
  std::vector<InputFile> files;
  for (const std::string& input : inputs) {
    if (!fs::is_directory(input) || preparation.table) {  // a table reports a folder as an error
      files.push_back({input});
    } else if (preparation.text) {
      for (std::string& path : data::text_files(input)) files.push_back({std::move(path)});
    } else {
      for (std::string& path : data::list_images(input)) {
        files.push_back({std::move(path), true});
      }
    }
  }
  if (!files.empty()) return files;
  throw UserError(
      ErrorKind::config,
      {"INPUT", 0, 0, ""},
      "is missing: name files (JPEG, PNG, BMP, PGM, PPM, IDX, NPY, NPZ, CSV, text) or a "
      "folder of images");
}

/// `shape` without axes of extent 1, which do not change a sample.
std::vector<std::int64_t> without_ones(std::span<const std::int64_t> dims) {
  std::vector<std::int64_t> rest(dims.begin(), dims.end());
  std::erase(rest, 1);
  return rest;
}

/// The number of samples of shape `sample` in a tensor; nothing when it holds none or others.
/// Shapes: one sample or [n, sample...], flat or not, with or without axes of extent 1.
std::optional<std::int64_t> count_samples(const Shape& shape, const Shape& sample) {
  const auto is_sample = [&](std::span<const std::int64_t> dims) {
    return without_ones(dims) == without_ones(sample.dims()) ||
           (dims.size() == 1 && dims[0] == sample.elements());
  };
  if (is_sample(shape.dims())) return 1;
  if (shape.rank() < 2 || shape[0] == 0 || !is_sample(shape.dims().subspan(1))) return std::nullopt;
  return shape[0];
}

/// Stored samples as [n, height, width, channels] where they have channels.
Tensor arranged(Tensor tensor, const data::LayoutHints& hints) {
  const Shape& wanted = *hints.wanted;
  if (wanted.rank() != 3 || tensor.shape().rank() == 0) return tensor;
  const Shape whole = tensor.shape();
  const bool one = whole.rank() == 3 && (data::find_layout(whole, hints) || whole == wanted);
  if (one) tensor.reshape({1, whole[0], whole[1], whole[2]});
  if (whole.rank() == 1 && whole.elements() == wanted.elements()) {
    tensor.reshape({1, whole.elements()});
  }
  if (tensor.shape().rank() < 2) return tensor;
  const Shape stored(tensor.shape().dims().subspan(1));
  return data::to_nhwc(std::move(tensor), data::find_layout(stored, hints), wanted);
}

/// Appends the samples of `path`, ready for the model, and returns their number.
std::int64_t append_samples(const std::string& path,
                            const Preparation& preparation,
                            std::vector<float>& to) {
  const Shape& sample = *preparation.layout.wanted;
  const auto fail = [&](std::string message) {
    throw UserError(ErrorKind::data, {path, 0, 0, ""}, std::move(message));
  };
  const bool several = !preparation.several.inputs.empty();
  const bool is_image = !several && data::is_image(path);
  Tensor tensor =
      several ? read_several(path, preparation.several) : read_samples(path, preparation);
  const Shape stored = tensor.shape();
  if (!is_image && !several) tensor = arranged(std::move(tensor), preparation.layout);
  const auto count = count_samples(tensor.shape(), sample);
  if (!count) {
    fail(fmt::format(
        "holds {}, the model takes samples of {}", to_string(stored), to_string(sample)));
  }
  const bool bytes = tensor.dtype() == DType::uint8;
  if (bytes && !preparation.trained_on_bytes && !preparation.scale) {
    log_warning("{}: holds bytes, which are scaled to [0, 1]; the run was trained on floats", path);
  }
  const std::size_t first = to.size();
  to.resize(first + static_cast<std::size_t>(tensor.elements()));
  convert(tensor.view(),
          {DType::float32, {static_cast<std::int64_t>(to.size() - first)}, to.data() + first});
  const std::span<float> values = std::span(to).subspan(first);
  const auto broken = std::ranges::find_if(values, [](float x) { return !std::isfinite(x); });
  if (broken != values.end()) {
    fail(fmt::format("sample {} has {}", (broken - values.begin()) / sample.elements(), *broken));
  }
  // The model applies its own scale afterwards; bytes without a scale are mapped to [0, 1].
  if (bytes && !preparation.scale) {
    for (float& value : values) value *= static_cast<float>(1.0 / 255.0);
  }
  return *count;
}

/// The samples of all files, and the file of each.
struct PredictInput {
  data::Dataset data;
  std::vector<std::string> files;  ///< of each sample
};

PredictInput read_inputs(const PredictFlags& state,
                         const Preparation& preparation,
                         const data::Dataset& trained_on) {
  PredictInput input;
  std::vector<float> values;
  const std::vector<InputFile> files = files_of(state.inputs, state.more_inputs, preparation);
  for (const auto& [path, from_folder] : files) {
    try {
      const std::int64_t count = append_samples(path, preparation, values);
      input.files.insert(input.files.end(), static_cast<std::size_t>(count), path);
    } catch (const UserError& error) {
      const bool skips = preparation.skip_bad_images && from_folder;
      const bool last = &path == &files.back().path && input.files.empty();
      if (!skips || last || error.kind() != ErrorKind::data) throw;
      log_warning("{}: {}: skipped", path, error.problems().front().message);
    }
  }
  std::vector<std::int64_t> dims{static_cast<std::int64_t>(input.files.size())};
  const Shape& sample = trained_on.sample_shape;
  dims.insert(dims.end(), sample.begin(), sample.end());
  input.data.source = trained_on.source;
  input.data.classes = trained_on.classes;
  input.data.sample_shape = sample;
  input.data.table = trained_on.table;
  input.data.train.labels = Tensor(DType::int32, {dims[0]});
  input.data.train.images = Tensor(DType::float32, Shape(dims));
  std::ranges::copy(values, input.data.train.images.as<float>());
  return input;
}

std::optional<data::Cifar> cifar_of(const config::DataSpec& spec) {
  if (spec.format == config::DataFormat::cifar10 || spec.name == "cifar10") return data::Cifar::ten;
  const bool hundred = spec.format == config::DataFormat::cifar100 || spec.name == "cifar100";
  return hundred ? std::optional(data::Cifar::hundred) : std::nullopt;
}

/// Warns of samples with outputs that are NaN or infinite.
void warn_of_nonfinite(const std::vector<Tensor>& outputs, const std::string& checkpoint) {
  std::set<std::int64_t> broken;
  const std::int64_t samples = outputs.front().shape()[0];
  for (const Tensor& output : outputs) {
    for (std::int64_t i = 0; i < output.elements(); ++i) {
      if (!std::isfinite(output.as<float>()[i])) broken.insert(i / (output.elements() / samples));
    }
  }
  if (broken.empty()) return;
  const config::Warning warning = config::warning(
      config::k_nonfinite_results,
      {checkpoint, 0, 0, ""},
      fmt::format("the outputs of {} of {} samples are not finite", broken.size(), samples));
  log_warnings({&warning, 1});
}

int predict(const PredictFlags& state) {
  apply_logging(state.run);
  UsedRun used = load_trained_run(state.run, state.checkpoint);
  const data::Dataset trained_on = used.data ? std::move(*used.data) : load_data(used.config);
  config::RunSpec spec = used.config.spec;
  Preparation preparation;
  preparation.layout.wanted = trained_on.sample_shape;
  preparation.layout.otherwise = trained_on.layout;
  preparation.layout.where = spec.where("data.layout");
  preparation.scale = spec.data.scale;
  preparation.several = data_options(used.config);
  preparation.cifar = cifar_of(spec.data);
  if (spec.data.format == config::DataFormat::image_folder) {
    preparation.image_conversion = image_conversion(spec.data);
    preparation.skip_bad_images = spec.data.on_bad_sample == config::OnBadSample::skip;
    preparation.image_conversion.height = trained_on.sample_shape[0];
    preparation.image_conversion.width = trained_on.sample_shape[1];
    preparation.image_conversion.channels = trained_on.sample_shape[2];
  }
  if (spec.data.table && trained_on.table) {
    preparation.table = {*spec.data.table, *trained_on.table};
  }
  if (spec.data.text && trained_on.text) preparation.text = {*spec.data.text, *trained_on.text};
  preparation.trained_on_bytes = trained_on.train.images.dtype() == DType::uint8;
  const PredictInput input = read_inputs(state, preparation, trained_on);

  const backend::Backend device = open_device(spec);
  const std::int64_t samples = input.data.train.samples();
  spec.data.validation_split = 0;
  std::int64_t together = state.run.batch_size ? spec.training.batch_size : k_max_at_once;
  // A stateful layer then carries its state from batch to batch, so the batch size matters.
  if (!state.run.batch_size && !spec.data.shuffle) {
    together = spec.training.validation_batch_size.value_or(spec.training.batch_size);
  }
  spec.training.batch_size = std::min(samples, together);
  spec.training.validation_batch_size = spec.training.batch_size;
  train::Session session(spec, input.data, device, nn::Purpose::predict);
  // Training printed the others.
  for (const config::Warning& warning : session.warnings()) {
    if (warning.code == config::k_infinite_input) log_warnings({&warning, 1});
  }
  train::load_weights(used.checkpoint, session.state());
  const std::vector<Tensor> outputs = train::predict(session, input.data.train.images.view());
  warn_of_nonfinite(outputs, used.checkpoint);

  if (!state.output.empty()) {
    write_outputs(state.output, session.step_spec().outputs, outputs);
    if (!state.run.json) return 0;
  }
  const bool several = input.files.front() != input.files.back();
  report::PredictReport report;
  for (std::size_t i = 0; i < input.files.size(); ++i) {
    report::PredictedImage image;
    std::string text;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const nn::TrainedOutput& output = session.step_spec().outputs[k];
      PredictedLine line = describe(output, k, outputs[k], i, trained_on);
      if (output.key.empty()) {
        text = line.text;
        static_cast<report::SamplePrediction&>(image) = std::move(line.prediction);
        continue;
      }
      text += fmt::format("{}{} {}", k > 0 ? "  " : "", output.key, line.text);
      if (!image.outputs) image.outputs.emplace();
      image.outputs->push_back({std::move(line.prediction), output.key});
    }
    if (!state.run.json) {
      print_line("{:>6}  {}{}", i, text, several ? "  " + input.files[i] : "");
      continue;
    }
    image.index = static_cast<std::int64_t>(i);
    image.file = input.files[i];
    report.predictions.push_back(std::move(image));
  }
  if (state.run.json) {
    report.nonfinite = sanitize(field_ref(report));
    fmt::print("{}", report::dump(to_json(report)));
  }
  return 0;
}

std::function<int()> declare_predict(CLI::App& command) {
  const auto state = std::make_shared<PredictFlags>();
  declare(command, state->run, {.seed = false, .json = true});
  command.get_option("--config")->description(k_run_or_config);
  command.add_option("--checkpoint", state->checkpoint, k_checkpoint);
  command.add_option("INPUT",
                     state->inputs,
                     "samples: JPEG, PNG, BMP, PGM, PPM, IDX, NPY, NPZ, CSV or text files, or "
                     "folders of images, searched recursively");
  command.add_option("--input", state->more_inputs, "the same")->allow_extra_args(false);
  command.add_option("--output",
                     state->output,
                     "NPZ file for the outputs of all samples and their classes, instead of text");
  return [state] { return predict(*state); };
}

}  // namespace

extern const Command k_predict{
    "predict", "class and probabilities, or values, of images", declare_predict};

}  // namespace halfstep::app
