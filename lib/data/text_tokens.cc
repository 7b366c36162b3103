#include "data/text_tokens.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/printable.h"
#include "data/deflate.h"
#include "data/file.h"
#include "data/file_kind.h"

namespace halfstep::data {
namespace {

using config::TextSpec;
using config::TextTokens;
using namespace std::string_view_literals;

constexpr std::string_view k_unknown = "<unknown>", k_padding = "<padding>";
constexpr std::int64_t k_no_limit = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t k_bytes = 256;

bool is_blank(char c) { return " \t\n\v\f\r"sv.find(c) != std::string_view::npos; }

/// Letters and digits; beyond ASCII every character counts as a letter, as there is no table of
/// them here.
bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// The bytes of the word at the start of `text`, which is no blank. An apostrophe between letters
/// belongs to it, as in "don't".
std::size_t word_size(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size()) {
    const bool joins =
        text[size] == '\'' && size > 0 && size + 1 < text.size() && in_word(text[size + 1]);
    if (!in_word(text[size]) && !joins) break;
    ++size;
  }
  return std::max<std::size_t>(size, 1);
}

[[noreturn]] void refuse(const std::string& path,
                         std::string_view text,
                         std::size_t at,
                         std::string_view problem,
                         std::string hint) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line_end = before.rfind('\n');
  const std::size_t line_start = line_end == before.npos ? 0 : line_end + 1;
  const auto line = 1 + std::ranges::count(before, '\n');
  throw UserError(ErrorKind::data,
                  {path, static_cast<int>(line), static_cast<int>(at - line_start) + 1, ""},
                  fmt::format("{} {:02x}", problem, static_cast<unsigned char>(text[at])),
                  std::move(hint));
}

}  // namespace

std::int64_t TextVocabulary::size() const {
  return tokens == TextTokens::byte ? k_bytes : static_cast<std::int64_t>(names.size());
}

void each_token(std::string_view text, TextTokens tokens, const TokenCallback& take) {
  while (!text.empty()) {
    std::size_t size = 1;
    if (tokens == TextTokens::character) size = first_character(text).bytes;
    if (tokens == TextTokens::word) {
      if (is_blank(text.front())) {
        text.remove_prefix(1);
        continue;
      }
      size = word_size(text);
    }
    take(text.substr(0, size));
    text.remove_prefix(size);
  }
}

TextVocabulary build_vocabulary(std::span<const std::string> texts,
                                const TextSpec& spec,
                                std::int64_t count) {
  TextVocabulary vocabulary{spec.tokens};
  if (spec.tokens == TextTokens::byte) return vocabulary;
  std::unordered_map<std::string_view, std::int64_t> uses;
  for (const std::string& text : texts) {
    each_token(text, spec.tokens, [&](std::string_view token) {
      if (count-- > 0) ++uses[token];
    });
  }
  std::vector<std::pair<std::string_view, std::int64_t>> known(uses.begin(), uses.end());
  std::ranges::sort(known, [](const auto& a, const auto& b) {
    return std::pair(-a.second, a.first) < std::pair(-b.second, b.first);
  });
  if (spec.column) vocabulary.names.emplace_back(k_padding);
  vocabulary.names.emplace_back(k_unknown);
  const auto most = static_cast<std::size_t>(spec.vocabulary_size.value_or(k_no_limit));
  for (const auto& [token, times] : known) {
    if (vocabulary.names.size() >= most) break;
    vocabulary.names.emplace_back(token);
  }
  return vocabulary;
}

TokenEncoder::TokenEncoder(const TextVocabulary& vocabulary) : vocabulary_(vocabulary) {
  for (const std::string& name : vocabulary.names) {
    const auto id = static_cast<std::int32_t>(ids_.size());
    if (name == k_unknown) unknown_ = id;
    ids_.emplace(name, id);
  }
}

std::vector<std::int32_t> TokenEncoder::operator()(std::string_view text) const {
  std::vector<std::int32_t> ids;
  each_token(text, vocabulary_.tokens, [&](std::string_view token) {
    if (vocabulary_.tokens == TextTokens::byte) {
      ids.push_back(static_cast<unsigned char>(token.front()));
      return;
    }
    const auto found = ids_.find(token);
    ids.push_back(found == ids_.end() ? unknown_ : found->second);
  });
  return ids;
}

std::string prepared(std::string_view text, const TextSpec& spec) {
  return spec.lowercase ? lower_case(text) : std::string(text);
}

std::string text_of(std::span<const std::int64_t> ids, const TextVocabulary& vocabulary) {
  const bool padded = !vocabulary.names.empty() && vocabulary.names.front() == k_padding;
  std::string text;
  for (const std::int64_t id : ids) {
    if (padded && id == 0) continue;
    if (vocabulary.tokens == TextTokens::word && !text.empty()) text += ' ';
    if (vocabulary.tokens == TextTokens::byte) {
      text += static_cast<char>(id);
    } else {
      // A model may have more outputs than there are tokens.
      const auto at = static_cast<std::size_t>(id);
      text += at < vocabulary.names.size() ? std::string_view(vocabulary.names[at]) : k_unknown;
    }
  }
  return text;
}

std::string without_bom(std::span<const std::byte> bytes, const std::string& path) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("\xFF\xFE"sv) || text.starts_with("\xFE\xFF"sv)) {
    throw UserError(ErrorKind::data,
                    in_file(path),
                    "is a text in UTF-16",
                    "'iconv -f UTF-16 -t UTF-8' makes it one in UTF-8");
  }
  if (text.starts_with("\xEF\xBB\xBF"sv)) text.remove_prefix(3);
  return std::string(text);
}

std::string read_text(const std::string& path, TextTokens tokens) {
  const std::vector<std::byte> bytes = decompressed(read_file(path), path);
  if (bytes.empty()) throw file_error(path, "is empty");
  if (tokens == TextTokens::byte) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string text = without_bom(bytes, path);
  const FileKind kind = file_kind(bytes);
  const bool other_kind = !kind.name.empty() && !kind.name.starts_with("text");
  const std::string_view all = text;
  for (std::size_t at = 0; at < all.size();) {
    const Character character = first_character(all.substr(at));
    // Other kinds of files have bytes that no text has at their beginning.
    if (character.code == 0 && at < k_kind_bytes && other_kind) {
      throw wrong_file_kind(path, "a text", bytes);
    }
    if (character.bytes == 0) {
      refuse(path,
             all,
             at,
             "is not UTF-8: byte",
             "'iconv -f LATIN1 -t UTF-8' converts a file; data.text.tokens: byte takes any bytes");
    }
    if (character.code == 0) {
      refuse(path, all, at, "is not text: byte", "data.text.tokens: byte takes any bytes");
    }
    at += character.bytes;
  }
  return text;
}

std::vector<std::string> text_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    const bool named = path.ends_with(".txt") || path.ends_with(".txt.gz");
    if (named && entry.is_regular_file()) files.push_back(path);
  }
  if (files.empty()) throw file_error(folder, "holds no texts, whose names end in .txt or .txt.gz");
  std::ranges::sort(files);
  return files;
}

Tensor read_windows(const std::string& path,
                    const TextSpec& spec,
                    const TextVocabulary& vocabulary) {
  const std::vector<std::int32_t> ids =
      TokenEncoder(vocabulary)(prepared(read_text(path, spec.tokens), spec));
  const auto count = static_cast<std::int64_t>(ids.size());
  if (count < spec.length) {
    throw file_error(path, "has {} tokens; the model takes {} at once", count, spec.length);
  }
  const std::int64_t windows = (count + spec.length - 1) / spec.length;
  Tensor tensor(DType::float32, {windows, spec.length});
  for (std::int64_t i = 0; i < windows; ++i) {
    const std::int64_t first = std::min(i * spec.length, count - spec.length);
    std::copy_n(ids.begin() + first, spec.length, tensor.as<float>() + i * spec.length);
  }
  return tensor;
}

}  // namespace halfstep::data
