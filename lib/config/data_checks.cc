#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "config/spec_checks.h"
#include "core/printable.h"
#include "core/ranges.h"

namespace halfstep::config {
namespace {

class DataChecks : CheckedSpec {
 public:
  explicit DataChecks(const CheckedSpec& checked) : CheckedSpec(checked) {}

  void run() {
    const DataSpec& data = spec_.data;
    if (!is_map("data")) return;
    for (const std::string_view other : {"data.format", "data.path", "data.sha256"}) {
      if (is_set("data.name") && is_set(other)) {
        error(other, fmt::format("excludes data.name (at {})", location("data.name")));
      }
    }
    if (!is_set("data.name") && !is_set("data.format") && !is_set("data.path")) {
      error("data", "needs a name, or a format with a path");
    }
    if (data.streams && data.shuffle && is_set("data.shuffle")) {
      error("data.shuffle", fmt::format("excludes data.streams (at {})", location("data.streams")));
    }
    if (data.streams) spec_.data.shuffle = false;
    const bool drawn = data.format == DataFormat::synthetic_digits;
    if (data.format && !drawn && !is_set("data.path")) error("data", "the format needs a path");
    if (!is_set("data.format") && is_set("data.path") && !is_set("data.name")) {
      error("data.path", "needs data.format");
    }
    if (drawn && is_set("data.path")) error("data.path", "synthetic_digits are drawn, not read");
    const bool files =
        data.format == DataFormat::npz || data.format == DataFormat::idx || !data.format;
    if (is_set("data.layout") && (is_set("data.name") || !files)) {
      error("data.layout", "is for the formats npz and idx; the layout of other data is known");
    }
    image_folder();
    table();
    text();
    class_names();
    sample_weight();
    const bool has_target = data.format == DataFormat::csv || data.format == DataFormat::text;
    if (data.labels == DataLabels::samples && has_target) {
      error("data.labels", "of a csv are its target, and of a text the tokens that follow");
    } else if (data.labels == DataLabels::samples &&
               (spec_.model.inputs.size() > 1 || spec_.model.outputs.size() > 1)) {
      error("data.labels", "are the samples of a model of one input and one output only");
    }
    const bool synthetic = drawn || data.name == "synthetic_digits" || data.name == "moving_digits";
    for (const std::string_view count : {"data.train_samples", "data.test_samples"}) {
      if (is_set(count) && !synthetic)
        error(count, "is for synthetic_digits and moving_digits only");
    }
    const auto is_hex = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    };
    if (data.sha256 && (data.sha256->size() != 64 || !std::ranges::all_of(*data.sha256, is_hex))) {
      error("data.sha256", "must be 64 hexadecimal digits");
    }
  }

 private:
  void image_folder() {
    const DataSpec& data = spec_.data;
    const DataSpec defaults;
    struct Key {
      std::string_view path;
      bool set;
    };
    const bool is_image_folder = data.format == DataFormat::image_folder;
    for (const Key& key :
         {Key{"data.image_size", !data.image_size.empty()},
          Key{"data.channels", data.channels.has_value()},
          Key{"data.resize", data.resize != defaults.resize},
          Key{"data.on_bad_sample", data.on_bad_sample != defaults.on_bad_sample}}) {
      if (key.set && !is_image_folder) error(key.path, "is for the format image_folder only");
    }
    const bool drawn = is_image_folder || data.format == DataFormat::csv;
    if (data.test_split != defaults.test_split && !drawn && data.format != DataFormat::text) {
      error("data.test_split", "is for the formats csv, image_folder and text only");
    }
    if (data.split_seed != defaults.split_seed && !drawn) {
      error("data.split_seed", "is for the formats csv and image_folder only");
    }
    if (!data.image_size.empty() && data.image_size.size() != 2) {
      error("data.image_size",
            fmt::format("must be [height, width], got {} numbers", data.image_size.size()));
    }
    if (data.channels == 2) error("data.channels", "must be 1 (grey) or 3 (RGB), got 2");
  }

  void table() {
    const std::optional<TableSpec>& table = spec_.data.table;
    if (spec_.data.format != DataFormat::csv) {
      if (table) error("data.table", "is for the format csv only");
      return;
    }
    if (!table) {
      error("data", "the format csv needs data.table.target, the column with the labels");
      return;
    }
    const std::string separator = table->separator.value_or(",");
    if (separator.size() != 1 || separator.find_first_of("\"\r\n") != separator.npos) {
      error("data.table.separator",
            fmt::format("must be one character, and no quote or end of line, got '{}'", separator));
    }
    const std::vector<std::string>& columns = table->columns;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!contains(std::span(columns).first(i), columns[i])) continue;
      error(fmt::format("data.table.columns[{}]", i),
            fmt::format("there is another column '{}'", printable(columns[i])));
    }
    if (contains(table->ignore, table->target)) error("data.table.ignore", "holds the target");
    if (contains(table->categorical, table->target)) {
      error("data.table.categorical",
            "holds the target, whose values are classes or numbers as the loss has it");
    }
  }

  void column_of_texts(const TextSpec& text) {
    if (text.stride) {
      error("data.text.stride", "is for the format text; a row of a csv is one sample");
    }
    if (text.vocabulary_size && *text.vocabulary_size < 3) {
      error("data.text.vocabulary_size",
            "must be at least 3, for <padding>, <unknown> and a token");
    }
    const std::optional<TableSpec>& table = spec_.data.table;
    if (!table || !text.column) return;
    const std::string& column = *text.column;
    if (column == table->target) error("data.text.column", "is the target, which has the labels");
    if (column == spec_.data.sample_weight) error("data.text.column", "is the sample_weight");
    if (contains(table->ignore, column)) {
      error("data.table.ignore", "holds the column of the texts");
    }
    if (!table->categorical.empty()) {
      error("data.table.categorical", "has no effect: the model sees the column of texts alone");
    }
  }

  void text() {
    const std::optional<TextSpec>& text = spec_.data.text;
    const bool windows = spec_.data.format == DataFormat::text;
    const bool csv = spec_.data.format == DataFormat::csv;
    if (!text) {
      if (windows) error("data", "the format text needs data.text.length, the tokens of a window");
      return;
    }
    if (!windows && !csv) {
      error("data.text", "is for the formats text and csv only");
      return;
    }
    if (windows && text->column) {
      error("data.text.column", "is for the format csv; a text has no columns");
    } else if (csv && !text->column) {
      error("data.text", "needs column, the column of the csv with the texts");
    }
    if (csv) column_of_texts(*text);
    if (text->vocabulary_size && text->tokens == TextTokens::byte) {
      error("data.text.vocabulary_size", "is for characters and words; there are 256 bytes");
    }
    if (spec_.data.scale)
      error("data.scale", "cannot be combined with a text, whose tokens are indices");
  }

  void class_names() {
    if (spec_.data.class_names.empty()) return;
    const std::optional<DataFormat>& format = spec_.data.format;
    if (spec_.data.labels == DataLabels::samples) {
      error("data.class_names", "names classes, but data.labels are the samples");
    } else if (is_set("data.name") || format == DataFormat::synthetic_digits) {
      error("data.class_names", "is for data without names of its own; this set has names");
    } else if (format == DataFormat::image_folder) {
      error("data.class_names", "the classes of an image_folder have the names of its sub-folders");
    } else if (format == DataFormat::csv) {
      error("data.class_names", "the classes of a csv are the values of its target");
    } else if (format == DataFormat::text) {
      error("data.class_names", "the classes of a text are its tokens");
    }
    for (const NamedStrings& named : spec_.data.class_names) {
      const std::string path =
          named.name.empty() ? "data.class_names" : key_path("data.class_names", named.name);
      names_differ(named.value, path);
    }
  }

  void names_differ(const std::vector<std::string>& names, const std::string& path) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty()) error(item_path(path, i), "a class needs a name");
      const auto first = std::ranges::find(names, names[i]) - names.begin();
      if (static_cast<std::size_t>(first) == i) continue;
      error(item_path(path, i),
            fmt::format("'{}' is the name of class {} already", names[i], first));
    }
  }

  void sample_weight() {
    const DataSpec& data = spec_.data;
    if (!data.sample_weight) return;
    if (data.format != DataFormat::csv && data.format != DataFormat::npz) {
      error("data.sample_weight", "is for the formats csv and npz");
    } else if (data.table && *data.sample_weight == data.table->target) {
      error("data.sample_weight", "is the target, which has the labels");
    }
  }
};

}  // namespace

void check_data(const CheckedSpec& checked) { DataChecks(checked).run(); }

}  // namespace halfstep::config
