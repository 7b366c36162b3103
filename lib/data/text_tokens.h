#pragma once
// Tokenization of texts into bytes, characters or words. The vocabulary is built from the training
// split, saved with a run, and applied to all texts.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/data_spec.h"
#include "core/tensor.h"

namespace halfstep::data {

/// The tokens by id. The id of a byte is its value. For characters and words, id 0 is the unknown
/// token; where texts are padded, id 0 is padding and id 1 the unknown token.
struct TextVocabulary {
  config::TextTokens tokens = config::TextTokens::byte;
  std::vector<std::string> names{};  ///< by id; empty: bytes

  std::int64_t size() const;
};

/// Called with each token in turn.
using TokenCallback = std::function<void(std::string_view token)>;

void each_token(std::string_view text, config::TextTokens tokens, const TokenCallback& take);

/// Builds the vocabulary from the first `count` tokens of the texts: the most frequent tokens
/// first, ties in byte order. Texts of a column are padded.
TextVocabulary build_vocabulary(std::span<const std::string> texts,
                                const config::TextSpec& spec,
                                std::int64_t count);

/// Maps a text to the ids of its tokens.
class TokenEncoder {
 public:
  /// `vocabulary` must outlive it.
  explicit TokenEncoder(const TextVocabulary& vocabulary);
  std::vector<std::int32_t> operator()(std::string_view text) const;

 private:
  const TextVocabulary& vocabulary_;
  std::unordered_map<std::string_view, std::int32_t> ids_;
  std::int32_t unknown_ = 0;
};

/// The text, with A to Z in lower case if spec.lowercase.
std::string prepared(std::string_view text, const config::TextSpec& spec);

/// Decodes ids to text, without padding; words are separated by blanks.
std::string text_of(std::span<const std::int64_t> ids, const TextVocabulary& vocabulary);

/// The content of a file without the byte order mark of UTF-8.
/// Errors: UserError(data) for the marks of UTF-16.
std::string without_bom(std::span<const std::byte> bytes, const std::string& path);

/// The content of a file, which may be compressed with gzip. Errors: UserError(data), of bytes
/// only for an empty file: with line and byte where it is no UTF-8 or has a byte 0, and for a
/// file of another kind.
std::string read_text(const std::string& path, config::TextTokens tokens);

/// The files of a folder that end in .txt or .txt.gz, by name. Errors: UserError(data) without any.
std::vector<std::string> text_files(const std::string& folder);

/// The tokens of a file as consecutive windows; the last one is aligned to the end of the text.
/// Shapes: float32 [windows, length]. Errors: as read_text; UserError(data) for fewer tokens than a
/// window takes.
Tensor read_windows(const std::string& path,
                    const config::TextSpec& spec,
                    const TextVocabulary& vocabulary);

/// The texts in the column of a CSV file, whose labels need not be there: the first tokens of each.
/// Shapes: float32 [rows, length], with 0 behind those of a shorter text. Errors: as CsvFile;
/// UserError(data) for a column that is not there.
Tensor read_column_texts(const std::string& path,
                         const config::TableSpec& table,
                         const config::TextSpec& spec,
                         const TextVocabulary& vocabulary);

}  // namespace halfstep::data
