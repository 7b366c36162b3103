#pragma once
// Texts as sequences of tokens: bytes, characters or words, each with an id. The vocabulary is
// learned from the training part, kept with a run, and applied to all texts that the model sees.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/data_spec.h"
#include "core/tensor.h"

namespace halfstep::data {

/// The tokens by id. Of bytes the id is the value; of others, id 0 is that of all unknown tokens.
struct TextVocabulary {
  config::TextTokens tokens = config::TextTokens::byte;
  std::vector<std::string> names{};  ///< by id; empty: bytes

  std::int64_t size() const;
};

/// Called with each token in turn.
using TakeToken = std::function<void(std::string_view token)>;

void each_token(std::string_view text, config::TextTokens tokens, const TakeToken& take);

/// The vocabulary of the first `count` tokens of a text, the most frequent first, equally frequent
/// ones in the order of their bytes.
TextVocabulary learn_vocabulary(std::string_view text,
                                const config::TextSpec& spec,
                                std::int64_t count);

/// The id of each token.
std::vector<std::int32_t> ids_of(std::string_view text, const TextVocabulary& vocabulary);

/// The text that ids stand for; words are separated by blanks.
std::string text_of(std::span<const std::int64_t> ids, const TextVocabulary& vocabulary);

/// The content of a file without the byte order mark of UTF-8.
/// Errors: UserError(data) for the marks of UTF-16.
std::string without_mark(std::span<const std::byte> bytes, const std::string& path);

/// The content of a file, which may be compressed with gzip. Errors: UserError(data), of bytes
/// only for an empty file: with line and byte where it is no UTF-8 or has a byte 0, and for a
/// file of another kind.
std::string read_text(const std::string& path, config::TextTokens tokens);

/// The files of a folder that end in .txt or .txt.gz, by name. Errors: UserError(data) without any.
std::vector<std::string> text_files(const std::string& folder);

/// The tokens of a file as windows one after the other, of which the last one ends with the text.
/// Shapes: float32 [windows, length]. Errors: as read_text; UserError(data) for fewer tokens than a
/// window takes.
Tensor read_windows(const std::string& path,
                    const config::TextSpec& spec,
                    const TextVocabulary& vocabulary);

}  // namespace halfstep::data
