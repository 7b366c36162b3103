#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "command.h"
#include "core/files.h"
#include "core/printable.h"
#include "data/contact_sheet.h"
#include "data/dataset.h"
#include "data/dataset_registry.h"
#include "data/inputs.h"
#include "data/synthetic_digits.h"
#include "data/tensor_files.h"
#include "environment.h"
#include "number_flags.h"
#include "report/small_reports.h"
#include "run_options.h"
#include "terminal.h"

namespace halfstep::app {
namespace {

namespace fs = std::filesystem;

/// The labels of each class; those that the loss ignores may be of none.
std::optional<std::vector<std::int64_t>> histogram(const data::Split& split, std::int64_t classes) {
  if (split.samples() == 0 || split.labels.dtype() != DType::int32) return std::nullopt;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes), 0);
  for (const std::int32_t label : split.labels.span<std::int32_t>()) {
    if (label >= 0 && label < classes) ++counts[static_cast<std::size_t>(label)];
  }
  return counts;
}

struct Info {
  std::string name;
  std::string path;
  std::string format;
  std::string layout;
  std::string target;
  std::string text_column;
  std::string tokens;
  std::string sheet;
  bool json = false;
};

/// The layout of arrays in the files; images and CIFAR's files have one of their own.
std::optional<data::Layout> stored_layout(const data::Dataset& set) {
  return set.name == "npz" || set.name == "idx" ? set.layout : std::nullopt;
}

/// A note on the stored layout; "" if there is nothing to report.
std::string layout_text(const data::Dataset& set) {
  if (stored_layout(set) == data::Layout::nchw) return "stored as nchw, transposed to nhwc";
  if (stored_layout(set) == data::Layout::nhwc) return "stored as nhwc";
  if (set.layout) return "";
  if (set.sample_shape.rank() != 3 || set.sample_shape.back() == 1) return "";
  return "layout is ambiguous: use --layout nhwc or nchw";
}

void print_columns(const std::vector<data::ColumnEncoding>& columns) {
  fmt::print("{:<24} {:>8}  {}\n", "column", "features", "in the training rows");
  for (const data::ColumnEncoding& column : columns) {
    const std::string content =
        column.categories.empty()
            ? fmt::format("mean {:.6g}, deviation {:.6g}", column.mean, column.deviation)
            : truncated(fmt::format("{}", fmt::join(column.categories, ", ")), 60);
    print_line("{:<24} {:>8}  {}", truncated(column.name, 24), column.features(), content);
  }
}

/// Windows long enough to be read, of characters unless asked for others.
config::TextSpec text_spec(const std::string& tokens) {
  const auto kind = config::value_named(tokens, config::k_text_tokens);
  return {.length = 64, .tokens = kind.value_or(config::TextTokens::character)};
}

/// Prints the vocabulary and the beginning of the text.
void print_text(const data::Dataset& set) {
  constexpr std::size_t k_max_bytes = 200;
  const data::TextVocabulary& vocabulary = *set.text;
  print_line("vocabulary of {} {}s{}",
             vocabulary.size(),
             config::name_of(vocabulary.tokens, config::k_text_tokens),
             vocabulary.names.empty()
                 ? ""
                 : truncated(fmt::format(": {}", fmt::join(vocabulary.names, " ")), k_max_bytes));
  const std::int64_t length = set.sample_shape[0];
  for (std::int64_t i = 0; i < std::min<std::int64_t>(3, set.train.samples()); ++i) {
    const float* window = set.train.images.as<float>() + i * length;
    const std::vector<std::int64_t> ids(window, window + length);
    print_line("{} {}: {}",
               set.predicts_tokens() ? "window" : "text",
               i,
               truncated(data::text_of(ids, vocabulary), k_max_bytes));
  }
}

bool is_config(const std::string& name) {
  return name.ends_with(".yaml") || name.ends_with(".yml");
}

/// The inputs and outputs of a model of several, by the names of the arrays.
void name_parts(data::DataOptions& options) {
  data::ElementSpec parts = data::element_spec_of(data::NpzReader(options.path), options.layout);
  options.inputs = std::move(parts.inputs);
  options.outputs = std::move(parts.outputs);
}

/// Refuses a flag whose value `fitting` data alone would use.
void refuse_unless(bool fitting,
                   const char* flag,
                   const std::string& value,
                   const data::DataOptions& options) {
  if (fitting || value.empty()) return;
  throw UserError(ErrorKind::config,
                  {flag, 0, 0, ""},
                  fmt::format("does not apply to {}",
                              options.format.empty() ? "a data set that is known by its name"
                                                     : "the format " + options.format));
}

/// The data of a config, or of a name or path.
data::Dataset described(const Info& flags) {
  if (is_config(flags.name)) {
    for (const auto& [flag, value] : {std::pair("--format", &flags.format),
                                      std::pair("--layout", &flags.layout),
                                      std::pair("--target", &flags.target),
                                      std::pair("--text-column", &flags.text_column),
                                      std::pair("--tokens", &flags.tokens)}) {
      if (value->empty()) continue;
      throw UserError(
          ErrorKind::config, {flag, 0, 0, ""}, "is for a path; a config sets it itself");
    }
    RunOptions options;
    options.configs = {flags.name};
    return load_data(load_config(options), true);
  }
  data::DataOptions options;
  options.format = flags.format;
  // A path shows its format, unless it has the name of a known set.
  if (options.format.empty() && data::find_set(flags.name) == nullptr) {
    options.format = data::format_at(flags.name);
  }
  (options.format.empty() ? options.name : options.path) = flags.name;
  const bool csv = options.format == "csv";
  refuse_unless(
      options.format == "npz" || options.format == "idx", "--layout", flags.layout, options);
  refuse_unless(csv, "--target", flags.target, options);
  refuse_unless(csv, "--text-column", flags.text_column, options);
  refuse_unless(
      options.format == "text" || !flags.text_column.empty(), "--tokens", flags.tokens, options);
  options.verify = true;
  if (!flags.layout.empty()) {
    options.layout = config::value_named(flags.layout, config::k_data_layouts);
  }
  if (!flags.target.empty()) {
    options.table = {.target = flags.target, .on_missing = config::OnMissing::fill};
  }
  if (options.format == "text") options.text = text_spec(flags.tokens);
  if (!flags.text_column.empty()) {
    options.text = text_spec(flags.tokens.empty() ? "word" : flags.tokens);
    options.text->column = flags.text_column;
  }
  options.search_paths = data_search_paths("");
  // Images of any size and channels can be shown.
  options.image_conversion.resize = data::Resize::bilinear;
  options.image_conversion.convert = true;
  if (options.format == "npz" && data::find_dataset(options)) name_parts(options);
  return data::load_dataset(options);
}

/// The first of `count` numbers of a tensor, from element `at` on.
std::string beginning(const Tensor& tensor, std::int64_t at, std::int64_t count) {
  constexpr std::int64_t k_max_values = 8;
  std::string text;
  for (std::int64_t i = 0; i < std::min(count, k_max_values); ++i) {
    const double value = element_as_double(tensor.view(), at + i);
    text += is_floating(tensor.dtype()) ? fmt::format(" {:.4g}", value) : fmt::format(" {}", value);
  }
  return text + (count > k_max_values ? " ..." : "");
}

/// Label `i` of labels that are one number each; that of a class by its name if it has one.
std::string label_text(const Tensor& labels,
                       std::int64_t i,
                       const std::vector<std::string>& names) {
  const double number = element_as_double(labels.view(), i);
  const bool named =
      labels.dtype() == DType::int32 && number >= 0 && number < static_cast<double>(names.size());
  return named ? names[static_cast<std::size_t>(number)] : fmt::format("{:.6g}", number);
}

/// How the first samples begin, of data that is neither images nor text.
void print_samples(const data::Dataset& set) {
  const data::Split& train = set.train;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(3, train.samples()); ++i) {
    std::string line;
    std::int64_t at = i * set.sample_shape.elements();
    if (set.inputs.size() < 2) line = beginning(train.images, at, set.sample_shape.elements());
    for (std::size_t k = 0; k < set.inputs.size() && set.inputs.size() > 1; ++k) {
      const data::InputSpec& part = set.inputs[k];
      const std::int64_t count = part.shape.elements();
      line +=
          fmt::format("{} {}{}", k > 0 ? " " : "", part.name, beginning(train.images, at, count));
      at += count;
    }
    std::string label;
    for (std::size_t k = 0; k < set.outputs.size(); ++k) {
      const data::LabelSpec& part = set.outputs[k];
      if (part.absent) continue;
      const Tensor labels = data::labels_of(train.labels.view(), set.outputs, k);
      const std::int64_t count = part.shape.elements();
      const std::string text = part.shape.rank() == 0
                                   ? " " + label_text(labels, i, part.class_names)
                                   : beginning(labels, i * count, count);
      label += fmt::format("{}{}{}", label.empty() ? "" : "  ", part.name, text);
    }
    if (set.outputs.empty() && train.labels.shape().rank() == 1) {
      label = label_text(train.labels, i, set.class_names);
    }
    print_line("sample {}:{}{}", i, line, label.empty() ? "" : "  label " + label);
  }
}

/// Statistics of images that differ in size or channels from a sample.
void print_forms(const data::ImageFolderStats& forms, const Shape& sample) {
  if (forms.resized > 0) {
    print_line("resized: {} images, as their sizes are {} to {} x {} to {} pixels (data.resize)",
               forms.resized,
               forms.min_height,
               forms.max_height,
               forms.min_width,
               forms.max_width);
  }
  if (forms.converted > 0) {
    print_line("converted to {}: {} images (data.channels: {})",
               sample[2] == 1 ? "grey" : "RGB",
               forms.converted,
               sample[2]);
  }
}

/// Longer lists of classes are omitted.
constexpr std::size_t k_max_names = 20;

int info(const Info& flags) {
  const data::Dataset set = described(flags);
  if (!flags.sheet.empty())
    write_file_atomically(flags.sheet, data::png_of(data::contact_sheet(set)));
  if (flags.json) {
    report::DataReport report;
    report.name = set.name;
    report.source = set.source;
    report.origin = set.origin;
    report.licence = set.licence;
    report.classes = set.classes;
    report.class_names = set.class_names;
    if (set.table) report.columns = set.table->columns;
    for (const data::InputSpec& part : set.inputs) {
      report.inputs.push_back({part.name, {part.shape.begin(), part.shape.end()}});
    }
    for (const data::LabelSpec& part : set.outputs) {
      if (!report.outputs) report.outputs.emplace();
      if (part.absent) continue;
      report.outputs->push_back(
          {part.name, {part.shape.begin(), part.shape.end()}, part.classes, part.class_names});
    }
    report.sample_shape.assign(set.sample_shape.begin(), set.sample_shape.end());
    report.dtype = name(set.train.images.dtype());
    if (const auto layout = stored_layout(set)) {
      report.layout = config::name_of(*layout, config::k_data_layouts);
    }
    report.train_samples = set.train.samples();
    report.test_samples = set.test.samples();
    report.left_out_samples = set.skipped_samples;
    if (set.image_stats) {
      report.resized_samples = set.image_stats->resized;
      report.converted_samples = set.image_stats->converted;
    }
    report.train_per_class = histogram(set.train, set.classes);
    report.test_per_class = histogram(set.test, set.classes);
    report.content_hash = data::content_hash(set);
    for (const data::SourceFile& file : set.files) {
      report.files.push_back({file.path, file.sha256});
    }
    fmt::print("{}", report::dump(to_json(report)));
    return 0;
  }
  print_line("{}: {} training and {} test {} of {} {}, {}",
             set.name,
             set.train.samples(),
             set.test.samples(),
             set.table                                            ? "rows"
             : set.text                                           ? "windows"
             : set.inputs.empty() && set.sample_shape.rank() == 3 ? "images"
                                                                  : "samples",
             to_string(set.sample_shape),
             name(set.train.images.dtype()),
             !set.outputs.empty() ? fmt::format("labels of {} outputs", set.outputs.size())
             : set.classes == 0   ? "labels are numbers"
                                  : fmt::format("{} classes", set.classes));
  for (const data::InputSpec& part : set.inputs) {
    print_line("input {:<18} {}", part.name, to_string(part.shape));
  }
  for (const data::LabelSpec& part : set.outputs) {
    if (part.absent) {
      print_line("output {:<17} no labels, as it has neither a loss nor metrics", part.name);
      continue;
    }
    std::string kind = part.classes > 0 ? fmt::format("{} classes", part.classes) : "numbers";
    if (!part.class_names.empty() && part.class_names.size() <= k_max_names) {
      kind += fmt::format(": {}", fmt::join(part.class_names, ", "));
    }
    const std::string shape = part.shape.rank() == 0 ? "" : to_string(part.shape) + ", ";
    print_line("output {:<17} {}{}", part.name, shape, kind);
  }
  if (!is_config(flags.name)) {
    const std::string config = data::config_of({set.inputs, set.outputs});
    if (!config.empty()) print_line("a config takes them with {}", config);
  }
  print_line("from {}", set.source);
  if (set.image_stats) print_forms(*set.image_stats, set.sample_shape);
  if (set.skipped_samples > 0)
    print_line("skipped: {} samples that cannot be read", set.skipped_samples);
  if (const std::string layout = layout_text(set); !layout.empty()) fmt::print("{}\n", layout);
  const bool lists_classes = !set.class_names.empty() && !set.predicts_tokens();
  if (lists_classes && set.class_names.size() <= k_max_names) {
    print_line("classes: {}", fmt::join(set.class_names, ", "));
  }
  if (set.table && !set.text) print_columns(set.table->columns);
  if (set.text) {
    print_text(set);
  } else if (set.sample_shape.rank() < 3 || !set.outputs.empty()) {
    print_samples(set);
  }
  if (!set.origin.empty()) fmt::print("origin: {}\nlicence: {}\n", set.origin, set.licence);
  // A folder has a file per image; --json lists them all.
  constexpr std::size_t k_max_files = 12;
  if (set.files.size() > k_max_files) {
    fmt::print("  {}  of {} files, one after the other\n", set.sha256, set.files.size());
    return 0;
  }
  for (const data::SourceFile& file : set.files) print_line("  {}  {}", file.sha256, file.path);
  return 0;
}

struct Synth {
  std::string out;
  std::int64_t seed = 0;
  std::int64_t samples = 60000;
  std::int64_t test_samples = 10000;
};

int synth(const Synth& flags) {
  data::DataOptions options;
  options.name = "synthetic_digits";
  options.seed = static_cast<std::uint64_t>(flags.seed);
  options.train_samples = flags.samples;
  options.test_samples = flags.test_samples;
  const data::Dataset set = data::load_dataset(options);
  make_folder(flags.out);
  const auto write = [&](const data::Split& split, const std::string& prefix) {
    TensorView images = split.images.view();
    images.shape = Shape{images.shape[0], images.shape[1], images.shape[2]};
    data::write_idx((fs::path(flags.out) / (prefix + "-images-idx3-ubyte")).string(), images);
    Tensor labels(DType::uint8, split.labels.shape());
    convert(split.labels.view(), labels.view());
    data::write_idx((fs::path(flags.out) / (prefix + "-labels-idx1-ubyte")).string(),
                    labels.view());
  };
  write(set.train, "train");
  write(set.test, "t10k");
  print_line(
      "{}: {} training and {} test images", flags.out, set.train.samples(), set.test.samples());
  return 0;
}

std::function<int()> declare_data(CLI::App& command) {
  command.require_subcommand(1);
  const auto info_flags = std::make_shared<Info>();
  const auto synth_flags = std::make_shared<Synth>();
  CLI::App* info_command =
      command.add_subcommand("info", "show the contents of a data set, with checksums");
  info_command
      ->add_option(
          "NAME", info_flags->name, "a known set, a config, or the path of a file or folder")
      ->required();
  info_command->add_option("--format",
                           info_flags->format,
                           fmt::format("how the files at the path are stored, where their names "
                                       "do not show it: {}",
                                       fmt::join(data::dataset_formats(), ", ")));
  info_command
      ->add_option("--layout", info_flags->layout, "of samples in NPZ and IDX files: nhwc or nchw")
      ->check(CLI::IsMember({"nhwc", "nchw"}));
  info_command->add_option("--target", info_flags->target, "column of a csv with the labels");
  info_command->add_option(
      "--text-column", info_flags->text_column, "column of a csv with texts, which becomes tokens");
  info_command
      ->add_option("--tokens",
                   info_flags->tokens,
                   "of a text: byte, character (default) or word (that of a column of texts)")
      ->check(CLI::IsMember({"byte", "character", "word"}));
  info_command->add_option("--sheet",
                           info_flags->sheet,
                           "write a PNG of the first samples of each class, one row per class");
  info_command->add_flag("--json", info_flags->json, "print JSON");
  CLI::App* synth_command = command.add_subcommand("synth", "write generated digits as IDX files");
  synth_command->add_option("--out", synth_flags->out, "folder")->required();
  add_integer(*synth_command, "--seed", synth_flags->seed, {}, "of the generator");
  add_integer(*synth_command, "--samples", synth_flags->samples, {.min = 1}, "training images");
  add_integer(
      *synth_command, "--test-samples", synth_flags->test_samples, {.min = 1}, "test images");
  return [=] { return info_command->parsed() ? info(*info_flags) : synth(*synth_flags); };
}

}  // namespace

extern const Command k_data{"data", "look at data sets, or generate one", declare_data};

}  // namespace halfstep::app
