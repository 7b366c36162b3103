// The loader of CSV files: splits, then the encoding or the vocabulary of the training rows, then
// tensors.

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/log.h"
#include "core/philox.h"
#include "core/ranges.h"
#include "data/dataset_registry.h"
#include "data/table_encoding.h"

namespace halfstep::data {
namespace {

using Rows = std::vector<std::int64_t>;

/// The part `fraction` of each class of the rows, or of all rows without classes, except one row at
/// least; it is removed from `rows`.
Rows take_test_rows(Rows& rows, const Tensor& labels, double fraction, RandomStream& random) {
  if (fraction == 0) return {};
  std::vector<Rows> groups(1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto group = labels.dtype() == DType::int32
                           ? static_cast<std::size_t>(labels.as<std::int32_t>()[i])
                           : std::size_t{0};
    if (group >= groups.size()) groups.resize(group + 1);
    groups[group].push_back(rows[i]);
  }
  rows.clear();
  Rows test;
  for (Rows& group : groups) {
    if (group.empty()) continue;
    shuffle(std::span(group), random);
    const auto wanted =
        static_cast<std::size_t>(std::llround(fraction * static_cast<double>(group.size())));
    const auto end =
        group.begin() + static_cast<std::ptrdiff_t>(std::min(wanted, group.size() - 1));
    test.insert(test.end(), group.begin(), end);
    rows.insert(rows.end(), end, group.end());
  }
  std::ranges::sort(test);
  return test;
}

std::vector<std::string> names_of(const std::vector<ColumnEncoding>& columns) {
  return mapped<std::string>(columns, &ColumnEncoding::name);
}

/// The texts of rows in the column of a spec, as it reads them; one that is missing is empty where
/// the table's gaps are filled.
std::vector<std::string> texts_of(const CsvFile& file,
                                  const config::TableSpec& table,
                                  const config::TextSpec& spec,
                                  const Rows& rows) {
  std::vector<std::string> texts;
  const std::size_t column = file.column(*spec.column);
  for (const std::int64_t row : rows) {
    const std::string_view cell = file.cell(row, column);
    const bool filled =
        table.on_missing == config::OnMissing::fill && contains(table.missing_values, cell);
    texts.push_back(prepared(filled ? "" : cell, spec));
  }
  return texts;
}

/// The weights of rows. Errors: UserError(data) for a negative one.
Tensor weights_of(const CsvFile& file, const std::string& column, const Rows& rows) {
  Tensor weights = encode_numbers(file, column, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const float weight = weights.as<float>()[i];
    if (weight >= 0) continue;
    throw UserError(ErrorKind::data,
                    file.where(rows[i]),
                    fmt::format("has the weight {}", weight),
                    "weights are at least 0");
  }
  return weights;
}

/// The first tokens of each text, float32 [texts, length], with 0 behind those of a shorter one.
Tensor padded_ids(const std::vector<std::string>& texts,
                  const config::TextSpec& spec,
                  const TextVocabulary& vocabulary) {
  const TokenEncoder ids_of(vocabulary);
  Tensor padded(DType::float32, {static_cast<std::int64_t>(texts.size()), spec.length});
  std::fill_n(padded.as<float>(), padded.elements(), 0.0F);
  float* to = padded.as<float>();
  for (const std::string& text : texts) {
    const std::vector<std::int32_t> ids = ids_of(text);
    std::copy_n(ids.begin(), std::min(static_cast<std::int64_t>(ids.size()), spec.length), to);
    to += spec.length;
  }
  return padded;
}

/// Makes a sample, a label and a weight of each of some rows.
struct RowEncoding {
  const config::TableSpec& spec;
  const TableEncoding& table;
  const std::string& weight;
  const std::optional<config::TextSpec>& text;
  const std::optional<TextVocabulary>& vocabulary;

  Split operator()(const CsvFile& file, const Rows& rows) const {
    return {text ? padded_ids(texts_of(file, spec, *text, rows), *text, *vocabulary)
                 : encode_features(file, spec, table, rows),
            encode_target(file, spec, table, rows),
            weight.empty() ? Tensor() : weights_of(file, weight, rows)};
  }
};

/// Says how many texts are longer than a sample, of which the model does not see the end.
void tell_cut(const std::vector<std::string>& texts, const config::TextSpec& spec) {
  std::int64_t cut = 0, longest = 0;
  for (const std::string& text : texts) {
    std::int64_t tokens = 0;
    each_token(text, spec.tokens, [&](std::string_view) { ++tokens; });
    cut += tokens > spec.length ? 1 : 0;
    longest = std::max(longest, tokens);
  }
  if (cut == 0) return;
  log_info("{} of {} training texts have more than {} tokens and are cut; the longest has {}",
           cut,
           texts.size(),
           spec.length,
           longest);
}

}  // namespace

Dataset load_csv_set(const DatasetDef&,
                     const DataOptions& options,
                     std::span<const std::string> files) {
  if (!options.table) {
    const CsvFile file(files[0], {});
    throw UserError(ErrorKind::config,
                    options.where,
                    fmt::format("a csv needs the column with the labels; {} has {}",
                                files[0],
                                fmt::join(file.columns(), ", ")),
                    "data.table.target names it; for 'data info' --target does");
  }
  config::TableSpec spec = *options.table;
  const std::string& weight = options.sample_weight;
  if (!weight.empty()) spec.ignore.push_back(weight);
  const bool has_test = !files[1].empty();
  if (has_test && options.test_split != 0) {
    throw UserError(
        ErrorKind::config,
        options.where,
        fmt::format("test_split is for a table without a test set; {} has one", options.path),
        "remove test_split");
  }
  const CsvFile file(files[0], spec);
  const std::optional<config::TextSpec>& text = options.text;
  const std::vector<std::string> columns = text               ? std::vector{*text->column}
                                           : options.encoding ? names_of(options.encoding->columns)
                                                              : feature_columns(file, spec);
  Rows rows = complete_rows(file, spec, columns, weight);
  TableEncoding encoding;
  if (options.encoding) {
    encoding = *options.encoding;
  } else {
    encoding.classes = find_classes(file, spec, rows, options.labels_are_values);
  }
  const auto left_out = file.rows() - std::ssize(rows);
  RandomStream random(options.split_seed, name_key("csv", 3));
  const Rows test =
      take_test_rows(rows, encode_target(file, spec, encoding, rows), options.test_split, random);
  if (options.test_split != 0 && test.empty()) {
    throw UserError(
        ErrorKind::config,
        options.where,
        fmt::format("test_split {} leaves {} no test row", options.test_split, files[0]));
  }
  shuffle(std::span(rows), random);
  Dataset dataset;
  dataset.text = options.vocabulary;
  if (!options.encoding) {
    const std::int64_t fitted = validation_split_at(
        static_cast<std::int64_t>(rows.size()), options.validation_split, options.where);
    Rows fit(rows.begin(), rows.begin() + fitted);
    std::ranges::sort(fit);  // errors name the first line
    if (text) {
      const std::vector<std::string> texts = texts_of(file, spec, *text, fit);
      tell_cut(texts, *text);
      dataset.text = build_vocabulary(texts, *text, std::numeric_limits<std::int64_t>::max());
    } else {
      for (const std::string& name : columns) {
        encoding.columns.push_back(fit_column(file, spec, name, fit));
      }
    }
  }
  const RowEncoding encode{spec, encoding, weight, text, dataset.text};
  dataset.train = encode(file, rows);
  if (!test.empty()) dataset.test = encode(file, test);
  if (has_test) {
    const CsvFile held_out(files[1], spec);
    dataset.test = encode(held_out, complete_rows(held_out, spec, columns, weight));
  }
  dataset.classes = static_cast<std::int64_t>(encoding.classes.size());
  dataset.class_names = encoding.classes;
  dataset.table = std::move(encoding);
  dataset.skipped_samples = left_out;
  return dataset;
}

Tensor read_column_texts(const std::string& path,
                         const config::TableSpec& table,
                         const config::TextSpec& spec,
                         const TextVocabulary& vocabulary) {
  const CsvFile file(path, table);
  Rows rows(static_cast<std::size_t>(file.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  return padded_ids(texts_of(file, table, spec, rows), spec, vocabulary);
}

}  // namespace halfstep::data
