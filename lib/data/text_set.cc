// The loader of texts: tokens, then splits, then the vocabulary of the training part, then windows.

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/dataset_registry.h"
#include "data/file.h"
#include "data/text_tokens.h"

namespace halfstep::data {
namespace {

/// Windows of a run of tokens. One more token than its length belongs to a window: the label of
/// the last.
struct Windows {
  std::int64_t length;
  std::int64_t stride;

  std::int64_t in(std::int64_t tokens) const {
    return tokens <= length ? 0 : (tokens - length - 1) / stride + 1;
  }
  /// The tokens that the first windows take.
  std::int64_t tokens(std::int64_t windows) const { return (windows - 1) * stride + length + 1; }

  Split cut(std::span<const std::int32_t> ids) const {
    const std::int64_t samples = in(static_cast<std::int64_t>(ids.size()));
    Split split{Tensor(DType::float32, {samples, length}), Tensor(DType::int32, {samples, length})};
    for (std::int64_t i = 0; i < samples; ++i) {
      const std::int32_t* const from = ids.data() + i * stride;
      std::copy_n(from, length, split.images.as<float>() + i * length);
      std::copy_n(from + 1, length, split.labels.as<std::int32_t>() + i * length);
    }
    return split;
  }
};

/// The texts one after the other, each from the start of a line.
std::string read_texts(std::span<const std::string> files, config::TextTokens tokens) {
  std::string all;
  for (const std::string& file : files) {
    if (!all.empty() && all.back() != '\n') all += '\n';
    all += read_text(file, tokens);
  }
  return all;
}

}  // namespace

Dataset load_text_set(const DatasetDef&,
                      const DataOptions& options,
                      std::span<const std::string> files) {
  if (!options.text) {
    throw UserError(ErrorKind::config,
                    options.where,
                    "a text needs the number of tokens of a window",
                    "data.text.length gives it");
  }
  const config::TextSpec& spec = *options.text;
  const Windows windows{spec.length, spec.stride.value_or(spec.length)};
  const std::string text = prepared(read_texts(files, spec.tokens), spec);
  std::int64_t count = 0;
  each_token(text, spec.tokens, [&](std::string_view) { ++count; });
  if (windows.in(count) == 0) {
    throw UserError(ErrorKind::data,
                    in_file(options.path),
                    fmt::format("has {} tokens of kind {}; a window and its last label take {}",
                                count,
                                config::name_of(spec.tokens, config::k_text_tokens),
                                spec.length + 1),
                    "data.text.length says how many tokens a window has");
  }
  if (windows.in(count) > std::numeric_limits<std::int32_t>::max()) {
    throw file_error(options.path, "has more than 2^31 windows");
  }
  const auto test = std::llround(options.test_split * static_cast<double>(count));
  const std::int64_t train = count - test;
  if (windows.in(train) == 0 || (options.test_split != 0 && windows.in(test) == 0)) {
    throw UserError(ErrorKind::config,
                    options.where,
                    fmt::format("test_split {} of {} tokens leaves {} to train and {} to test; a "
                                "window and its last label take {}",
                                options.test_split,
                                count,
                                train,
                                test,
                                spec.length + 1));
  }
  Dataset dataset;
  dataset.text = options.vocabulary;
  if (!dataset.text) {
    const std::int64_t fitted =
        validation_split_at(windows.in(train), options.validation_split, options.where);
    dataset.text = build_vocabulary({&text, 1}, spec, windows.tokens(fitted));
  }
  const std::vector<std::int32_t> ids = TokenEncoder(*dataset.text)(text);
  const std::span<const std::int32_t> all(ids);
  dataset.train = windows.cut(all.first(static_cast<std::size_t>(train)));
  if (test > 0) dataset.test = windows.cut(all.last(static_cast<std::size_t>(test)));
  dataset.classes = dataset.text->size();
  dataset.class_names = dataset.text->names;
  return dataset;
}

}  // namespace halfstep::data
