// A language model from a text to predictions of the next tokens.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <ostream>
#include <string_view>

#include "app/small_run.h"
#include "support/paths.h"

namespace halfstep::test {
namespace {

constexpr std::string_view k_rhyme =
    "The quick brown fox jumps over the lazy dog; the dog sleeps on. \xE2\x82\xAC 5!\n";

std::string rhymes(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += k_rhyme;
  return text;
}

constexpr std::string_view k_language_model = R"(version: 1
seed: 2
data:
  format: text
  path: rhyme.txt
  text: {length: 16, tokens: character, stride: 5}
  test_split: 0.2
  validation_split: 0.1
model:
  inputs: {tokens: [16]}
  nodes:
    characters: {type: embedding, input_dim: 40, output_dim: 24, from: tokens}
    positions: {type: position_embedding, sequence_length: 16, from: characters}
    embedded: {type: add, from: [characters, positions]}
    attention: {type: multi_head_attention, num_heads: 2, key_dim: 12, use_causal_mask: true, from: embedded}
    sum: {type: add, from: [embedded, attention]}
    hidden: {type: dense, units: 64, activation: relu, from: sum}
    logits: {type: dense, units: 40, dtype: float32, from: hidden}
  outputs: [logits]
loss: {type: sparse_categorical_crossentropy, from_logits: true}
optimizer: {type: adam, learning_rate: 1e-2}
training: {epochs: 8, batch_size: 32}
)";

}  // namespace

TEST_CASE("text: a language model learns, is resumed, evaluated by its vocabulary, and predicts") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "rhyme.txt", rhymes(60));
  write_text(directory.path() / "run.yaml", std::string(k_language_model));
  for (const std::string policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
    CAPTURE(policy);
    const Finished trained = train(directory, policy, {"--policy", policy});
    CAPTURE(trained.err);
    REQUIRE(trained.exit_code == 0);
    CHECK(report_of(directory, policy).at("test").at("accuracy").get<double>() > 0.8);
  }
  REQUIRE(train(directory, "half", {"--epochs", "4"}).exit_code == 0);
  REQUIRE(train(directory, "half", {"--resume", "auto", "--epochs", "8"}).exit_code == 0);
  CHECK(final_hash(directory, "half") == final_hash(directory, "float32"));

  // The windows of all texts of a folder, by the names of the texts.
  std::filesystem::create_directory(directory.path() / "texts");
  write_text(directory.path() / "texts/a.txt", rhymes(1).substr(0, 16));
  write_text(directory.path() / "texts/b.txt", rhymes(2).substr(0, 32));
  const Finished all = halfstep({"predict", "float32", "texts"}, directory.path());
  CAPTURE(all.err);
  CHECK(lines(all.out).size() == 3);
  CHECK(holds(all.out, "texts/b.txt"));

  // In another text characters have other frequencies; the ids remain those of the training.
  write_text(directory.path() / "other.txt",
             "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\n" + rhymes(20) + std::string(64, 'z'));
  const Finished evaluated = halfstep({"eval",
                                       "float32",
                                       "--split",
                                       "train",
                                       "--set",
                                       "data.path=" + directory.file("other.txt"),
                                       "--json"},
                                      directory.path());
  CAPTURE(evaluated.err);
  REQUIRE(evaluated.exit_code == 0);
  CHECK(Json::parse(evaluated.out).at("metrics").at("accuracy").get<double>() > 0.75);

  write_text(directory.path() / "start.txt", "e quick brown fo");
  const Finished predicted = halfstep({"predict", "float32", "start.txt"}, directory.path());
  CAPTURE(predicted.err);
  CHECK(predicted.exit_code == 0);
  CAPTURE(predicted.out);
  CHECK(predicted.out.starts_with("     0  next  "));
  CHECK(predicted.out.ends_with("brown fox\n"));
  write_text(directory.path() / "short.txt", "e quick");
  const Finished refused = halfstep({"predict", "float32", "short.txt"}, directory.path());
  CHECK(refused.exit_code == 3);
  CHECK(holds(refused.err, "short.txt: error: has 7 tokens; the model takes 16 at once"));
  const Finished tokens =
      halfstep({"eval", "float32", "--set", "data.text.tokens=byte"}, directory.path());
  CHECK(tokens.exit_code == 2);
  CHECK(holds(tokens.err, "data.text.tokens"));

  const Finished measured = halfstep(
      {"bench", "run.yaml", "--synthetic", "--steps", "3", "--warmup", "1"}, directory.path());
  CAPTURE(measured.err);
  CHECK(measured.exit_code == 0);
}

TEST_CASE("text: the shipped language models learn under each policy and the rewrite") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "rhyme.txt", rhymes(200));
  const std::string transformer = (source_dir() / "configs/char_lm.yaml").string();
  const std::string lstm = (source_dir() / "configs/char_lstm.yaml").string();
  struct Way {
    std::string config, name;
    std::vector<std::string> words;
  };
  const std::vector<Way> ways{
      {transformer, "float32", {}},
      {transformer, "bfloat16", {"--policy", "mixed_bfloat16"}},
      {transformer, "float16", {"--policy", "mixed_float16"}},
      {transformer, "rewrite", {"--rewrite", "auto"}},
      // The LSTMs need larger steps to learn as much in 125 of them.
      {lstm, "lstm", {"--policy", "mixed_bfloat16", "--set", "optimizer.learning_rate=1e-2"}}};
  for (const Way& way : ways) {
    std::vector<std::string> words{"train",
                                   way.config,
                                   "--run-dir",
                                   way.name,
                                   "--epochs",
                                   "5",
                                   "--batch-size",
                                   "8",
                                   "--set",
                                   "data.path=" + directory.file("rhyme.txt"),
                                   "--set",
                                   "optimizer.learning_rate=3e-3"};
    words.insert(words.end(), way.words.begin(), way.words.end());
    CAPTURE(way.name);
    const Finished trained = halfstep(words, directory.path());
    CAPTURE(trained.err);
    REQUIRE(trained.exit_code == 0);
    // Of guesses it would be -log(1/64) = 4.2.
    CHECK(report_of(directory, way.name).at("history").at("loss").back().get<double>() < 0.7);
  }
}

TEST_CASE("text: ids beyond 2048 reach the embedding unrounded under each policy") {
  // 3000 words in a fixed order: a model that looks at the last word alone can know the next one,
  // unless float16, whose whole numbers above 2048 are even, merges its id with that of another.
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 3001; ++i) text += "w" + std::to_string(i) + " ";
  write_text(directory.path() / "words.txt", text);
  write_text(directory.path() / "run.yaml", R"(version: 1
seed: 1
data: {format: text, path: words.txt, text: {length: 10, tokens: word}}
model:
  input: [10]
  layers:
    - {type: embedding, input_dim: 3002, output_dim: 32, embeddings_initializer: {type: random_normal, stddev: 1}}
    - {type: dense, units: 3002, dtype: float32}
loss: {type: sparse_categorical_crossentropy, from_logits: true}
optimizer: {type: adam, learning_rate: 3e-2}
training: {epochs: 12, batch_size: 10}
)");
  const auto accuracy = [&](const std::string& name, const std::vector<std::string>& more) {
    CAPTURE(name);
    const Finished trained = train(directory, name, more);
    CAPTURE(trained.err);
    REQUIRE(trained.exit_code == 0);
    const Json evaluated =
        Json::parse(halfstep({"eval", name, "--split", "train", "--json"}, directory.path()).out);
    return evaluated.at("metrics").at("accuracy").get<double>();
  };
  CHECK(accuracy("float32", {}) > 0.95);
  for (const std::string policy : {"mixed_float16", "mixed_bfloat16"}) {
    CHECK(accuracy(policy, {"--policy", policy}) > 0.95);
  }
  CHECK(accuracy("rewrite", {"--rewrite", "auto", "--set", "precision.target=float16"}) > 0.95);
}

TEST_CASE("text: data info shows the vocabulary and the first windows, and checks name the key") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "rhyme.txt", rhymes(60));
  write_text(directory.path() / "run.yaml", std::string(k_language_model));
  const Finished info = halfstep({"data", "info", "run.yaml"}, directory.path());
  CAPTURE(info.out);
  CHECK(info.exit_code == 0);
  CHECK(holds(info.out, " windows of [16] float32, 35 classes\n"));
  CHECK(holds(info.out, "vocabulary of 35 characters: <unknown>   e o"));
  CHECK(holds(info.out, "window 1: uick brown fox j\n"));
  const Finished words = halfstep(
      {"data", "info", "rhyme.txt", "--format", "text", "--tokens", "word"}, directory.path());
  CAPTURE(words.out);
  CHECK(holds(words.out, "window 0: The quick brown fox jumps over the lazy dog ; the dog"));
  const Json json = Json::parse(
      halfstep({"data", "info", "rhyme.txt", "--format", "text", "--json"}, directory.path()).out);
  CHECK(json.at("class_names")[0] == "<unknown>");

  const auto check = [&](const std::string& setting) {
    const Finished end =
        halfstep({"config", "check", "run.yaml", "--set", setting}, directory.path());
    CHECK(end.exit_code == 2);
    return end.err;
  };
  CHECK(holds(check("data.text=null"), "the format text needs data.text.length"));
  CHECK(holds(check("data.text={length: 16, vocabulary_size: 9}"), "there are 256 bytes"));
  CHECK(holds(check("data.text={tokens: word}"), "length"));
  CHECK(holds(check("data.split_seed=1"), "is for the formats csv and image_folder only"));
  CHECK(holds(check("data.scale=2"), "cannot be combined with a text"));
  CHECK(holds(check("data.class_names=[a, b]"), "the classes of a text are its tokens"));
  CHECK(holds(check("data.layout=nhwc"), "is for the formats npz and idx"));
  CHECK(holds(check("data.format=npz"), "is for the formats text and csv only"));
  CHECK(holds(check("data.text.column=t"), "is for the format csv; a text has no columns"));
  const Finished narrow = train(directory, "narrow", {"--set", "model.nodes.logits.units=30"});
  CHECK(narrow.exit_code != 0);
  CAPTURE(narrow.err);
  CHECK(holds(narrow.err, "is not in 0..29"));
}

TEST_CASE("text: a column of a table is classified, by the vocabulary of the run ever after") {
  const TemporaryDirectory directory;
  std::string table = "number,review,verdict\n";
  constexpr std::array k_words{"awful", "sad", "poor", "lovely", "great", "happy"};
  for (std::size_t i = 0; i < 600; ++i) {
    const std::string filler = i % 5 == 0 ? "a film with a plot" : "the plot, and an actor";
    table +=
        fmt::format("{},\"{}, {}\",{}\n", i, filler, k_words[i % 6], i % 6 < 3 ? "bad" : "good");
  }
  write_text(directory.path() / "reviews.csv", table);
  write_text(directory.path() / "run.yaml", R"(version: 1
seed: 1
data:
  format: csv
  path: reviews.csv
  table: {target: verdict}
  text: {column: review, length: 8, tokens: word, lowercase: true}
  test_split: 0.2
model:
  input: [8]
  layers:
    - {type: embedding, input_dim: 20, output_dim: 8, mask_zero: true}
    - {type: global_average_pooling1d}
    - {type: dense, units: 2}
    - {type: softmax, dtype: float32}
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 0.05}
training: {epochs: 3, batch_size: 32}
)");
  for (const std::string policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
    CAPTURE(policy);
    const Finished trained = train(directory, policy, {"--policy", policy});
    CAPTURE(trained.err);
    REQUIRE(trained.exit_code == 0);
    CHECK(report_of(directory, policy).at("test").at("accuracy").get<double>() > 0.95);
  }
  const Finished info = halfstep({"data", "info", "run.yaml"}, directory.path());
  CAPTURE(info.out);
  CHECK(holds(info.out, " rows of [8] float32, 2 classes\n"));
  CHECK(holds(info.out, "vocabulary of 17 words: <padding> <unknown> , "));
  // Rows without labels, in another table with other words.
  write_text(directory.path() / "new.csv", "review\n\"LOVELY, zebra\"\nsad\n");
  const Finished predicted = halfstep({"predict", "float32", "new.csv"}, directory.path());
  CAPTURE(predicted.err);
  CAPTURE(predicted.out);
  CHECK(predicted.exit_code == 0);
  CHECK(predicted.out.starts_with("     0  class   1  good"));
  CHECK(holds(predicted.out, "     1  class   0  bad"));
  const Finished evaluated = halfstep(
      {"eval", "float32", "--set", "data.test_split=0", "--split", "train"}, directory.path());
  CAPTURE(evaluated.err);
  CHECK(holds(evaluated.out, "\nbad "));
  const Finished other =
      halfstep({"eval", "float32", "--set", "data.text.lowercase=false"}, directory.path());
  CHECK(other.exit_code == 2);
  CHECK(holds(other.err, "data.text.lowercase"));
  const Finished shown = halfstep({"data",
                                   "info",
                                   "reviews.csv",
                                   "--format",
                                   "csv",
                                   "--target",
                                   "verdict",
                                   "--text-column",
                                   "review"},
                                  directory.path());
  CAPTURE(shown.err);
  CHECK(holds(shown.out, "text 0: "));

  const auto check = [&](const std::string& setting) {
    return halfstep({"config", "check", "run.yaml", "--set", setting}, directory.path()).err;
  };
  CHECK(holds(check("data.text.stride=2"), "a row of a csv is one sample"));
  CHECK(holds(check("data.text.column=verdict"), "is the target"));
  CHECK(holds(check("data.text.column=null"), "needs column, the column of the csv"));
  CHECK(holds(check("data.table.ignore=[review]"), "holds the column of the texts"));
  CHECK(
      holds(check("data.table.categorical=[number]"), "the model sees the column of texts alone"));
  CHECK(holds(check("data.text.vocabulary_size=2"), "must be at least 3"));
  CHECK(holds(check("data.sample_weight=review"), "is the sample_weight"));
}

}  // namespace halfstep::test
