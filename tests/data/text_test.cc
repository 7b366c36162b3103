// Texts: tokens, vocabularies, windows, splits, and the files that are refused.

#include <doctest/doctest.h>

#include <ostream>
#include <set>

#include "data/deflate.h"
#include "data/text_tokens.h"
#include "named_sets.h"

namespace halfstep::data::testing {
namespace {

using config::TextTokens;

/// A folder with the file t.txt of this content.
struct Text {
  TempFolder folder;
  DataOptions options;

  Text(std::string_view content, std::int64_t length, TextTokens tokens)
      : options(formatted("text", folder.file("t.txt"))) {
    write_bytes(options.path, bytes(content));
    options.text = {.length = length, .tokens = tokens};
  }
  Dataset load() const { return load_dataset(options); }
  std::string error(ErrorKind kind = ErrorKind::data) const {
    return error_of([&] { load_dataset(options); }, kind);
  }
};

std::vector<std::int64_t> row(const Tensor& tensor, std::int64_t i) {
  std::vector<std::int64_t> ids;
  const std::int64_t width = tensor.shape()[1];
  for (std::int64_t k = i * width; k < (i + 1) * width; ++k) {
    ids.push_back(static_cast<std::int64_t>(element_as_double(tensor.view(), k)));
  }
  return ids;
}

std::string inputs(const Dataset& set, const Split& split, std::int64_t i) {
  return text_of(row(split.images, i), *set.text);
}

std::string labels(const Dataset& set, const Split& split, std::int64_t i) {
  return text_of(row(split.labels, i), *set.text);
}

std::string words_of(std::string_view text) {
  std::string all;
  each_token(text, TextTokens::word, [&](std::string_view token) {
    all += "[" + std::string(token) + "]";
  });
  return all;
}

}  // namespace

TEST_CASE("text: a window is labelled with the tokens that follow each of its own") {
  const Text text("abcdefghij", 3, TextTokens::byte);
  const Dataset set = text.load();
  REQUIRE(set.train.samples() == 3);
  CHECK(set.sample_shape == Shape{3});
  CHECK(set.train.labels.dtype() == DType::int32);
  CHECK(set.classes == 256);
  CHECK(set.scale == 1);
  CHECK(row(set.train.images, 0) == std::vector<std::int64_t>{'a', 'b', 'c'});
  CHECK(inputs(set, set.train, 2) == "ghi");
  CHECK(labels(set, set.train, 2) == "hij");
  Text dense("abcdefghij", 3, TextTokens::byte);
  dense.options.text->stride = 1;
  CHECK(dense.load().train.samples() == 7);
  CHECK(labels(set, dense.load().train, 6) == "hij");
}

TEST_CASE("text: the test set is the end of the text, and no token is in both sets") {
  std::string all;
  for (int i = 0; i < 200; ++i) all += static_cast<char>(i);
  Text text(all, 7, TextTokens::byte);
  text.options.test_split = 0.25;
  for (const std::int64_t stride : {1, 3, 7, 20}) {
    CAPTURE(stride);
    text.options.text->stride = stride;
    const Dataset set = text.load();
    const auto tokens = [](const Split& split) {
      std::set<std::int64_t> seen;
      for (std::int64_t i = 0; i < split.samples(); ++i) {
        for (const Tensor* part : {&split.images, &split.labels}) {
          for (const std::int64_t id : row(*part, i)) seen.insert(id);
        }
      }
      return seen;
    };
    CHECK(*tokens(set.train).rbegin() < 150);
    CHECK(*tokens(set.test).begin() == 150);
    // The ends hold no further window.
    CHECK(*tokens(set.train).rbegin() + stride > 149);
    CHECK(*tokens(set.test).rbegin() + stride > 199);
  }
}

TEST_CASE("text: characters and words are numbered by how often the training part has them") {
  Text text("banana \xC3\xA9t\xC3\xA9! zzz", 2, TextTokens::character);
  text.options.test_split = 0.25;  // " zzz"
  const Dataset set = text.load();
  const std::vector<std::string> names{"<unknown>", "a", "n", "\xC3\xA9", " ", "!", "b", "t"};
  CHECK(set.class_names == names);
  CHECK(set.classes == 8);
  CHECK(inputs(set, set.train, 0) == "ba");
  CHECK(inputs(set, set.test, 0) == " <unknown>");

  Text few("the cat, the dog, the end; the rest", 2, TextTokens::word);
  few.options.text->vocabulary_size = 4;
  const Dataset words = few.load();
  CHECK(words.class_names == std::vector<std::string>{"<unknown>", "the", ",", ";"});
  CHECK(inputs(words, words.train, 0) == "the <unknown>");
  CHECK(words_of("Don't  'stop' at 3,50\xE2\x82\xAC\tor l'\xC3\xA9t\xC3\xA9") ==
        "[Don't]['][stop]['][at][3][,][50\xE2\x82\xAC][or][l'\xC3\xA9t\xC3\xA9]");
}

TEST_CASE("text: the vocabulary is that of the samples that are trained on, or of a run") {
  Text text("aaaabbbbccccdddd", 3, TextTokens::character);
  text.options.validation_split = 0.4;  // of five windows
  CHECK(text.load().class_names == std::vector<std::string>{"<unknown>", "a", "b", "c"});
  text.options.vocabulary = TextVocabulary{TextTokens::character, {"<unknown>", "d", "a"}};
  const Dataset set = text.load();
  CHECK(set.classes == 3);
  CHECK(row(set.train.images, 0) == std::vector<std::int64_t>{2, 2, 2});
  CHECK(row(set.train.images, 1) == std::vector<std::int64_t>{2, 0, 0});
  CHECK(row(set.train.labels, 4) == std::vector<std::int64_t>{1, 1, 1});
}

TEST_CASE("text: ids of a large vocabulary are exact") {
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "w" + std::to_string(i) + " ";
  const Text text(many, 4, TextTokens::word);
  const Dataset set = text.load();
  CHECK(set.classes == 4998);  // 1249 windows of 4, the last label, and the unknown word
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < set.train.samples(); ++i) {
    for (const std::int64_t id : row(set.train.images, i)) seen.insert(id);
  }
  CHECK(seen.size() == 4996);
}

TEST_CASE("text: a folder gives its texts in the order of their names, each on lines of its own") {
  Text text("second", 2, TextTokens::byte);
  write_bytes(text.folder.file("a.txt.gz"), deflate(bytes("first"), Wrapper::gzip));
  write_bytes(text.folder.file("notes.md"), bytes("other"));
  text.options.path = text.folder.path();
  text.options.text->stride = 1;
  const Dataset set = text.load();
  CHECK(set.files.size() == 2);
  CHECK(inputs(set, set.train, 0) == "fi");
  CHECK(inputs(set, set.train, 5) == "\ns");
}

TEST_CASE("text: files and splits without a window are refused with their position") {
  const auto error = [](std::string_view content, TextTokens tokens) {
    return Text(content, 3, tokens).error();
  };
  CHECK(error("", TextTokens::byte).find("t.txt: error: is empty") != std::string::npos);
  CHECK(error("abc", TextTokens::byte)
            .find("has 3 tokens of kind byte; a window and its last label "
                  "take 4") != std::string::npos);
  CHECK(error(" one two \n three ", TextTokens::word).find("has 3 tokens") != std::string::npos);
  const std::string latin = error("na\xC3\xAFve\n\ncaf\xE9 au lait", TextTokens::character);
  CHECK(latin.find("t.txt:3:4: error: is not UTF-8: byte e9") != std::string::npos);
  CHECK(latin.find("iconv -f LATIN1") != std::string::npos);
  const std::string line = std::string(80, 'x') + "\n";
  const std::string zero = error(line + std::string(1, '\0') + line, TextTokens::word);
  CHECK(zero.find("t.txt:2:1: error: is not text: byte 00") != std::string::npos);
  CHECK(error("\xFF\xFEh\0i\0", TextTokens::character).find("UTF-16") != std::string::npos);
  CHECK(error("\x89PNG\r\n\x1A\n....", TextTokens::character).find("is not a text but a PNG") !=
        std::string::npos);
  CHECK(Text(line + std::string(1, '\0') + line, 3, TextTokens::byte).load().train.samples() == 54);

  Text split("abcdefghij", 3, TextTokens::byte);
  split.options.test_split = 0.2;
  CHECK(split.error(ErrorKind::config).find("leaves 8 to train and 2 to test") !=
        std::string::npos);
  Text none("x", 3, TextTokens::byte);
  none.options.path = none.folder.file("empty");
  std::filesystem::create_directory(none.options.path);
  CHECK(none.error().find("holds no texts") != std::string::npos);
  none.options.text.reset();
  none.options.path = none.folder.file("t.txt");
  CHECK(none.error(ErrorKind::config).find("data.text.length gives it") != std::string::npos);
}

}  // namespace halfstep::data::testing
