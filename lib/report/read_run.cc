#include <fmt/format.h>

#include <filesystem>

#include "config/load.h"
#include "core/files.h"
#include "report/run_files.h"

namespace halfstep::report {
namespace {

Json extents(const Shape& shape) { return std::vector<std::int64_t>(shape.begin(), shape.end()); }

/// No samples of the described dtype and shape.
Tensor no_samples(const Json& dtype, const Json& shape) {
  const std::optional<DType> known = dtype_named(dtype.get<std::string>());
  std::vector<std::int64_t> dims{0};
  for (const Json& extent : shape) dims.push_back(extent.get<std::int64_t>());
  if (!known || dims.size() > Shape::k_max_rank) throw std::invalid_argument("no tensor");
  for (std::size_t i = 1; i < dims.size(); ++i) {
    if (dims[i] < 1) throw std::invalid_argument("an extent below 1");
  }
  return Tensor(*known, Shape(dims));
}

/// The labels of several outputs.
void read_outputs(const Json& outputs, data::Dataset& dataset) {
  std::int64_t values = 0;
  for (const Json& output : outputs) {
    data::LabelSpec& part = dataset.outputs.emplace_back();
    part.name = output.at("name");
    part.absent = output.at("label_shape").is_null();
    if (part.absent) {
      part.shape = {0};
      continue;
    }
    const Tensor labels = no_samples(output.at("label_dtype"), output.at("label_shape"));
    part.shape = Shape(labels.shape().dims().subspan(1));
    part.dtype = labels.dtype();
    part.classes = output.at("classes");
    // Runs of version 0.2.0 lack the member.
    if (output.contains("class_names")) part.class_names = output["class_names"];
    values += part.shape.elements();
  }
  if (dataset.train.labels.shape() != Shape{0, values}) {
    throw std::invalid_argument("the labels of the outputs do not make up a label");
  }
}

data::TextVocabulary text_vocabulary(const std::string& tokens, std::vector<std::string> names) {
  const auto kind = config::value_named(tokens, config::k_text_tokens);
  if (!kind) throw std::invalid_argument("unknown tokens");
  return {*kind, std::move(names)};
}

}  // namespace

config::RunSpec read_run_spec(const std::string& directory) {
  Diagnostics diagnostics;
  const std::string path = (std::filesystem::path(directory) / k_resolved_config_file).string();
  try {
    config::RunSpec spec =
        config::parse_run_spec(config::load_file(path, diagnostics), diagnostics);
    diagnostics.throw_if_any(ErrorKind::data);
    return spec;
  } catch (const UserError& error) {
    // An invalid config is an error of kind config elsewhere; here it is a file of a run.
    throw UserError(ErrorKind::data, error.problems());
  }
}

Json run_data(const data::Dataset& dataset) {
  const auto names_of = [](const std::vector<std::string>& names) {
    Json all = Json::array();
    for (const std::string& name : names) all.push_back(utf8(name));
    return all;
  };
  Json columns = dataset.table ? Json::array() : Json(nullptr);
  if (dataset.table) {
    for (const data::ColumnEncoding& column : dataset.table->columns) {
      columns.push_back(to_json(column));
    }
  }
  Json described{
      {"schema_version", 1},
      {"name", utf8(dataset.name)},
      {"source", utf8(dataset.source)},
      {"sample_shape", extents(dataset.sample_shape)},
      {"sample_dtype", name(dataset.train.images.dtype())},
      {"stored_layout",
       dataset.layout ? Json(config::name_of(*dataset.layout, config::k_data_layouts))
                      : Json(nullptr)},
      {"scale", dataset.scale},
      {"label_shape", extents(Shape(dataset.train.labels.shape().dims().subspan(1)))},
      {"label_dtype", name(dataset.train.labels.dtype())},
      {"classes", dataset.classes},
      {"class_names", names_of(dataset.class_names)},
      {"table_columns", std::move(columns)},
      {"text_tokens",
       dataset.text ? Json(config::name_of(dataset.text->tokens, config::k_text_tokens))
                    : Json(nullptr)},
      // Those that a model predicts are its classes.
      {"text_vocabulary",
       dataset.text && !dataset.predicts_tokens() ? names_of(dataset.text->names) : Json(nullptr)},
      {"train_samples", dataset.train.samples()},
      {"test_samples", dataset.test.samples()}};
  for (const data::LabelSpec& part : dataset.outputs) {
    described["outputs"].push_back({{"name", utf8(part.name)},
                                    {"label_shape", part.absent ? Json() : extents(part.shape)},
                                    {"label_dtype", name(part.dtype)},
                                    {"classes", part.classes},
                                    {"class_names", names_of(part.class_names)}});
  }
  return described;
}

data::Dataset read_run_data(const std::string& path) {
  const std::string text = read_file(path);
  try {
    const Json json = Json::parse(text);
    data::Dataset dataset;
    dataset.name = json.at("name");
    dataset.source = json.at("source");
    dataset.train.images = no_samples(json.at("sample_dtype"), json.at("sample_shape"));
    dataset.train.labels = no_samples(json.at("label_dtype"), json.at("label_shape"));
    dataset.sample_shape = Shape(dataset.train.images.shape().dims().subspan(1));
    if (json.contains("outputs")) read_outputs(json["outputs"], dataset);
    if (!json.at("stored_layout").is_null()) {
      dataset.layout =
          config::value_named(json.at("stored_layout").get<std::string>(), config::k_data_layouts);
    }
    dataset.scale = json.at("scale");
    dataset.classes = json.at("classes");
    for (const Json& name : json.at("class_names")) dataset.class_names.push_back(name);
    // Runs of version 0.2.0 lack the member.
    if (json.contains("table_columns") && !json["table_columns"].is_null()) {
      dataset.table.emplace().classes = dataset.class_names;
      std::vector<Violation> violations;
      for (const Json& column : json["table_columns"]) {
        read_json(column, field_ref(dataset.table->columns.emplace_back()), violations);
      }
      if (!violations.empty()) throw std::invalid_argument(violations.front().message);
    }
    if (json.contains("text_tokens") && !json["text_tokens"].is_null()) {
      const bool labelled = dataset.table.has_value();
      dataset.text =
          text_vocabulary(json["text_tokens"],
                          labelled ? json.at("text_vocabulary").get<std::vector<std::string>>()
                                   : dataset.class_names);
      if (!labelled && dataset.text->size() != dataset.classes) {
        throw std::invalid_argument("tokens and classes differ in number");
      }
    } else if (dataset.table && dataset.table->features() != dataset.sample_shape.elements()) {
      throw std::invalid_argument("the columns have another number of features than a sample");
    }
    return dataset;
  } catch (const std::exception& error) {
    throw UserError(ErrorKind::data,
                    {path, 0, 0, ""},
                    fmt::format("does not describe the data of a run: {}", error.what()));
  }
}

}  // namespace halfstep::report
