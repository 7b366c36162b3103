// Tables: the encoding of columns, targets, splits, and the files that are refused.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "data/deflate.h"
#include "named_sets.h"

namespace halfstep::data::testing {
namespace {

using config::OnMissing;
using config::OnUnknown;

DataOptions csv(const std::string& path, const std::string& target) {
  DataOptions options = formatted("csv", path);
  options.table.emplace().target = target;
  return options;
}

/// A folder with the file t.csv of this content.
struct Table {
  TempFolder folder;
  DataOptions options;

  explicit Table(std::string_view text, const std::string& target = "y")
      : options(csv(folder.file("t.csv"), target)) {
    write_bytes(options.path, bytes(text));
  }
  Dataset load() const { return load_dataset(options); }
  std::string error(ErrorKind kind = ErrorKind::data) const {
    return error_of([&] { load_dataset(options); }, kind);
  }
};

/// The features of each training row, with its label at the end.
std::vector<std::vector<double>> rows_of(const Split& split) {
  std::vector<std::vector<double>> rows;
  const std::int64_t width = split.images.shape()[1];
  for (std::int64_t i = 0; i < split.samples(); ++i) {
    const float* row = split.images.as<float>() + i * width;
    rows.emplace_back(row, row + width);
    rows.back().push_back(split.labels.dtype() == DType::int32
                              ? split.labels.as<std::int32_t>()[i]
                              : static_cast<double>(split.labels.as<float>()[i]));
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// A hundred rows: the number i, the class "a" for four of five and "b" for the others.
std::string hundred_rows() {
  std::string text = "i,y\n";
  for (int i = 0; i < 100; ++i) {
    text += std::to_string(i) + (i % 5 == 0 ? ",b\n" : ",a\n");
  }
  return text;
}

TEST_CASE("csv: numbers are standardized, and each text of a column is a feature") {
  const Table table("size,colour,y\n1,red,no\n3,blue,yes\n5,red,yes\n7,green,no\n");
  const Dataset set = table.load();
  CHECK(set.class_names == std::vector<std::string>{"no", "yes"});
  CHECK(set.classes == 2);
  CHECK(set.sample_shape == Shape{4});
  CHECK(set.scale == 1);
  // Mean 4, deviation of the population sqrt(5); blue, green, red.
  const double unit = 1 / std::sqrt(5.0);
  const std::vector<std::vector<double>> wanted{
      {-3 * unit, 0, 0, 1, 0}, {-unit, 1, 0, 0, 1}, {unit, 0, 0, 1, 1}, {3 * unit, 0, 1, 0, 0}};
  const auto rows = rows_of(set.train);
  REQUIRE(rows.size() == wanted.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows[i].size(); ++j) {
      CHECK(rows[i][j] == doctest::Approx(wanted[i][j]).epsilon(1e-7));
    }
  }
  REQUIRE(set.table);
  CHECK(set.table->columns[0].mean == 4);
  CHECK(set.table->columns[0].deviation == std::sqrt(5.0));
  CHECK(set.table->columns[1].categories == std::vector<std::string>{"blue", "green", "red"});
}

TEST_CASE("csv: numbers can stay as they are, be categories, and columns be left out") {
  Table table("size,code,id,y\n1,10,x7,no\n3,20,x8,yes\n5,10,x9,yes\n");
  table.options.table->standardize = false;
  table.options.table->categorical = {"code"};
  table.options.table->ignore = {"id"};
  CHECK(rows_of(table.load().train) ==
        std::vector<std::vector<double>>{{1, 1, 0, 0}, {3, 0, 1, 1}, {5, 1, 0, 1}});
}

TEST_CASE("csv: what is in quotes, the separator and the ends of lines do not matter") {
  const QuietLog quiet;
  const std::vector<std::string> same{"a,b,y\n1,\"x, \"\"z\"\"\",0\n2,w,1\n",
                                      "a;b;y\n1;\"x, \"\"z\"\"\";0\n2;w;1\n",
                                      "\xEF\xBB\xBF"
                                      "a,b,y\r\n1,\"x, \"\"z\"\"\",0\r\n\r\n2,w,1",
                                      "a,b,y\r1,\"x, \"\"z\"\"\",0\r2,w,1\r",
                                      " a , \"b\" ,y\n 1 , \"x, \"\"z\"\"\" , 0 \n  \n+2,w,1\n",
                                      "a\tb\ty\n1\t\"x, \"\"z\"\"\"\t0\n2\tw\t1\n"};
  for (const std::string& text : same) {
    CAPTURE(text);
    const Table table(text);
    const Dataset set = table.load();
    CHECK(set.table->columns[1].categories == std::vector<std::string>{"w", "x, \"z\""});
    CHECK(rows_of(set.train) == std::vector<std::vector<double>>{{-1, 0, 1, 0}, {1, 1, 0, 1}});
  }
  Table lines("a,y\n1,\"first\nsecond\"\n2,\"first\nsecond\"\n3,other\n4,other\n");
  CHECK(lines.load().class_names == std::vector<std::string>{"first\nsecond", "other"});
  const Table compressed("");
  write_bytes(compressed.options.path, deflate(bytes("a,y\n1,0\n2,1\n"), Wrapper::gzip));
  CHECK(compressed.load().train.samples() == 2);
}

TEST_CASE("csv: a file without a header has the names of the config") {
  Table table("1,no\n2,yes\n", "answer");
  CHECK(contains(table.error(), "has no column 'answer'"));
  table.options.table->columns = {"number", "answer"};
  CHECK(table.load().table->columns[0].name == "number");
  write_bytes(table.options.path, bytes("1,0\n2,1\n"));
  CHECK(table.load().train.samples() == 2);
  table.options.table->columns.clear();
  CHECK(contains(table.error(), "t.csv:1: error: has numbers where the names"));
}

TEST_CASE("csv: texts and few integers are classes, other targets are values; the loss decides") {
  const auto classes = [](std::string_view values, std::optional<bool> of_values = {}) {
    std::string text = "x,y\n";
    std::string_view rest = values;
    for (int i = 0; !rest.empty(); ++i) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      text += std::to_string(i) + "," + std::string(rest.substr(0, end)) + "\n";
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    Table table(text);
    table.options.labels_are_values = of_values;
    return table.load();
  };
  CHECK(classes("10 9 -1 10").class_names == std::vector<std::string>{"-1", "9", "10"});
  CHECK(classes("b a b").class_names == std::vector<std::string>{"a", "b"});
  const Dataset values = classes("0.5 1 2");
  CHECK(values.classes == 0);
  CHECK(values.train.labels.dtype() == DType::float32);
  CHECK(classes("3 1 2", true).train.labels.dtype() == DType::float32);
  CHECK(classes("3 1 2", true).classes == 0);
  const auto refused = [&](std::string_view text, bool of_values) {
    return error_of([&] { classes(text, of_values); });
  };
  CHECK(contains(refused("0.5 1 2", false), "the loss is one of classes"));
  CHECK(contains(refused("0.5 1 2", false), "loss: mean_squared_error predicts numbers"));
  CHECK(contains(refused("1 two 3", true),
                 "t.csv:3: error: 'two' in the column 'y' is not a number"));
}

TEST_CASE("csv: numbers are classes by their values, however they are written") {
  const Table table("x,y\n1,0.0\n2,1.0\n3,1\n4,0\n5,+2\n6,2.00\n");
  const Dataset set = table.load();
  CHECK(set.class_names == std::vector<std::string>{"0", "1", "+2"});
  std::vector<double> labels;
  for (const std::vector<double>& row : rows_of(set.train)) labels.push_back(row.back());
  CHECK(labels == std::vector<double>{0, 1, 1, 0, 2, 2});
  // As pandas writes a column of integers with and without gaps.
  TempFolder folder;
  write_bytes(folder.file("train.csv"), bytes("x,y\n1,0.0\n2,1.0\n"));
  write_bytes(folder.file("test.csv"), bytes("x,y\n1,1\n2,0\n"));
  const Dataset split = load_dataset(csv(folder.path(), "y"));
  CHECK(split.class_names == std::vector<std::string>{"0.0", "1.0"});
  CHECK(split.test.labels.as<std::int32_t>()[0] == 1);
  CHECK(split.test.labels.as<std::int32_t>()[1] == 0);
}

TEST_CASE("csv: a missing value is an error, is filled, or leaves its row out") {
  const QuietLog quiet;
  Table table("size,colour,y\n1,red,no\n,blue,yes\n5,NA,yes\n");
  CHECK(contains(table.error(), "t.csv:3: error: there is no value in the column 'size'"));
  CHECK(contains(table.error(), "data.table.on_missing: fill"));
  table.options.table->on_missing = OnMissing::fill;
  CHECK(rows_of(table.load().train) ==
        std::vector<std::vector<double>>{{-1, 0, 1, 0}, {0, 1, 0, 1}, {1, 0, 0, 1}});
  table.options.table->on_missing = OnMissing::skip;
  CHECK(table.load().train.samples() == 1);
  table.options.table->missing_values = {"blue"};
  table.options.table->on_missing = OnMissing::fill;
  CHECK(contains(table.error(), "'' in the column 'size' is not a number"));

  // A number may stand for no value, as -999 often does; it has no part in the mean.
  Table marked("size,y\n1,no\n-999,yes\n5,yes\n");
  marked.options.table->missing_values = {"-999"};
  marked.options.table->on_missing = OnMissing::fill;
  const Dataset marks = marked.load();
  CHECK(marks.table->columns[0].mean == 3);
  CHECK(marks.table->columns[0].deviation == 2);
  CHECK(rows_of(marks.train) == std::vector<std::vector<double>>{{-1, 0}, {0, 1}, {1, 1}});

  // A target cannot be filled.
  Table target("x,y\n1,\n2,a\n3,b\n");
  target.options.table->on_missing = OnMissing::fill;
  CHECK(contains(target.error(), "t.csv:2: error: there is no value in the column 'y'"));
  target.options.table->on_missing = OnMissing::skip;
  CHECK(target.load().train.samples() == 2);
  write_bytes(target.options.path, bytes("x,y\n1,\n"));
  CHECK(contains(target.error(), "so that none is left"));
}

TEST_CASE("csv: a column of weights is not a feature, and is shuffled with its rows") {
  std::string text = "i,w,y\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{0},{1},{2}\n", i, i * 0.25, i % 2);
  Table table(text);
  table.options.table->standardize = false;
  table.options.sample_weight = "w";
  table.options.test_split = 0.25;
  const Dataset dataset = table.load();
  CHECK(dataset.sample_shape == Shape{1});
  for (const Split* split : {&dataset.train, &dataset.test}) {
    REQUIRE(split->weights.shape() == Shape{split->samples()});
    for (std::int64_t i = 0; i < split->samples(); ++i) {
      CHECK(split->weights.as<float>()[i] == 0.25F * split->images.as<float>()[i]);
    }
  }
  const SplitView some = slice(view(dataset.train), 3, 5);
  CHECK(some.weights.as<float>()[0] == dataset.train.weights.as<float>()[3]);

  table.options.sample_weight = "v";
  CHECK(table.error().find("'v'") != std::string::npos);
  table.options.sample_weight = "w";
  table.options.test_split = 0;
  write_bytes(table.options.path, bytes("i,w,y\n1,1,0\n2,many,1\n"));
  CHECK(table.error().find(":3:") != std::string::npos);
  write_bytes(table.options.path, bytes("i,w,y\n1,1,0\n2,-1,1\n"));
  CHECK(contains(table.error(), "t.csv:3: error: has the weight -1"));
}

TEST_CASE("csv: a missing weight leaves its row out, and cannot be filled") {
  const QuietLog quiet;
  Table table("i,w,y\n1,1,0\n2,,1\n3,2,1\n");
  table.options.sample_weight = "w";
  for (const OnMissing on_missing : {OnMissing::error, OnMissing::fill}) {
    table.options.table->on_missing = on_missing;
    const std::string error = table.error();
    CAPTURE(error);
    CHECK(contains(error, "t.csv:3: error: there is no value in the column 'w'"));
    CHECK(contains(error, "(data.table.on_missing: skip leaves such rows out)"));
  }
  table.options.table->on_missing = OnMissing::skip;
  const Dataset set = table.load();
  CHECK(set.train.samples() == 2);
  CHECK(set.skipped_samples == 1);
}

TEST_CASE("csv: a part of each class is tested on, and the encoding does not see it") {
  Table table(hundred_rows());
  table.options.test_split = 0.2;
  table.options.validation_split = 0.25;
  std::set<std::vector<std::vector<double>>> tests;
  for (const std::uint64_t seed : {0U, 1U, 2U, 0U}) {
    table.options.split_seed = seed;
    table.options.table->standardize = false;
    const Dataset set = table.load();
    const auto train = rows_of(set.train), test = rows_of(set.test);
    CHECK(train.size() == 80);
    CHECK(test.size() == 20);
    CHECK(std::count_if(test.begin(), test.end(), [](const auto& row) { return row[1] == 1; }) ==
          4);
    for (const auto& row : test) CHECK(std::find(train.begin(), train.end(), row) == train.end());
    tests.insert(test);
    // The first 60 rows, in the order of the split, are trained on.
    double sum = 0;
    for (std::int64_t i = 0; i < 60; ++i) {
      sum += static_cast<double>(set.train.images.as<float>()[i]);
    }
    CHECK(set.table->columns[0].mean == doctest::Approx(sum / 60).epsilon(1e-12));
  }
  CHECK(tests.size() == 3);
  table.options.test_split = 0.001;
  CHECK(contains(table.error(ErrorKind::config), "leaves"));
}

TEST_CASE("csv: a folder has a training and a test set, of the same columns and categories") {
  const TempFolder folder;
  write_bytes(folder.file("train.csv"), bytes("c,x,y\nred,1,no\nblue,3,yes\n"));
  DataOptions options = csv(folder.path(), "y");
  CHECK(load_dataset(options).test.samples() == 0);
  // The order of the columns is free, further ones are not used.
  write_bytes(folder.file("test.csv"), bytes("x,more,y,c\n5,,yes,red\n"));
  CHECK(rows_of(load_dataset(options).test) == std::vector<std::vector<double>>{{0, 1, 3, 1}});
  options.test_split = 0.5;
  CHECK(contains(error_of([&] { load_dataset(options); }, ErrorKind::config),
                 "test_split is for a table without a test set"));
  options.test_split = 0;
  const auto refused = [&](std::string_view text) {
    write_bytes(folder.file("test.csv"), bytes(text));
    return error_of([&] { load_dataset(options); });
  };
  CHECK(contains(refused("c,x,y\nreed,5,yes\n"),
                 "test.csv:2: error: 'reed' in the column 'c' is in no training row (did you mean "
                 "'red'?)"));
  CHECK(contains(refused("c,x,y\nred,5,maybe\n"), "'maybe' is not among the 2 classes"));
  CHECK(contains(refused("c,y\nred,yes\n"), "has no column 'x'"));
  options.table->on_unknown = OnUnknown::zeros;
  write_bytes(folder.file("test.csv"), bytes("c,x,y\ngreen,5,yes\n"));
  CHECK(rows_of(load_dataset(options).test) == std::vector<std::vector<double>>{{0, 0, 3, 1}});
  std::filesystem::remove(folder.file("train.csv"));
  CHECK(contains(error_of([&] { load_dataset(options); }), "no train.csv"));
}

TEST_CASE("csv: an encoding that is given is used instead of that of the rows") {
  Table table("x,y\n1,no\n3,yes\n");
  table.options.encoding = {.columns = {{.name = "x", .mean = 1, .deviation = 2}},
                            .classes = {"yes", "no"}};
  CHECK(rows_of(table.load().train) == std::vector<std::vector<double>>{{0, 1}, {1, 0}});
}

TEST_CASE("csv: a column of texts gives the first tokens of each row, padded with 0") {
  Table table("id,t,y\n1,\"b a, b\",no\n2,B c b a,yes\n3,a,no\n");
  table.options.text = {.length = 3, .tokens = config::TextTokens::word, .column = "t"};
  const auto sorted_rows = [&] { return rows_of(table.load().train); };
  Dataset set = table.load();
  REQUIRE(set.text.has_value());
  CHECK_FALSE(set.predicts_tokens());
  // By use, then by bytes; the comma is a token.
  CHECK(set.text->names ==
        std::vector<std::string>{"<padding>", "<unknown>", "a", "b", ",", "B", "c"});
  CHECK(set.classes == 2);
  CHECK(set.class_names == std::vector<std::string>{"no", "yes"});
  CHECK(sorted_rows() ==
        std::vector<std::vector<double>>{{2, 0, 0, 0}, {3, 2, 4, 0}, {5, 6, 3, 1}});
  CHECK(text_of(std::vector<std::int64_t>{2, 0, 0}, *set.text) == "a");

  table.options.text->lowercase = true;
  table.options.text->vocabulary_size = 4;
  CHECK(table.load().text->names == std::vector<std::string>{"<padding>", "<unknown>", "b", "a"});
  CHECK(sorted_rows() ==
        std::vector<std::vector<double>>{{2, 1, 2, 1}, {2, 3, 1, 0}, {3, 0, 0, 0}});

  // That of a run is used, also for texts whose labels are not there.
  table.options.encoding = TableEncoding{.columns = {}, .classes = {"no", "yes"}};
  table.options.vocabulary =
      TextVocabulary{config::TextTokens::word, {"<padding>", "<unknown>", "a"}};
  CHECK(sorted_rows() ==
        std::vector<std::vector<double>>{{1, 1, 1, 1}, {1, 2, 1, 0}, {2, 0, 0, 0}});
  const TempFolder folder;
  write_bytes(folder.file("new.csv"), bytes("t\nA\n\"\"\n"));
  const Tensor ids = read_column_texts(
      folder.file("new.csv"), *table.options.table, *table.options.text, *table.options.vocabulary);
  CHECK(ids.shape() == Shape{2, 3});
  CHECK(ids.as<float>()[0] == 2);
  CHECK(ids.as<float>()[3] == 0);

  // A missing text is an empty one where gaps are filled.
  Table gaps("t,y\nNA,0\na,1\n");
  gaps.options.table->on_missing = OnMissing::fill;
  gaps.options.text = {.length = 1, .tokens = config::TextTokens::word, .column = "t"};
  CHECK(gaps.load().text->names == std::vector<std::string>{"<padding>", "<unknown>", "a"});
  CHECK(rows_of(gaps.load().train) == std::vector<std::vector<double>>{{0, 0}, {2, 1}});
  CHECK(read_column_texts(
            gaps.options.path, *gaps.options.table, *gaps.options.text, *gaps.load().text)
            .as<float>()[0] == 0);

  Table bytewise("t,y\nab,1\nc,0\n");
  bytewise.options.text = {.length = 2, .column = "t"};
  CHECK(rows_of(bytewise.load().train) ==
        std::vector<std::vector<double>>{{97, 98, 1}, {99, 0, 0}});
}

TEST_CASE("csv: the vocabulary of a column is that of the rows that are trained on") {
  std::string text = "t,y\n";
  for (int i = 0; i < 100; ++i) text += "w" + std::to_string(i) + (i % 2 == 0 ? ",a\n" : ",b\n");
  Table table(text);
  table.options.text = {.length = 1, .tokens = config::TextTokens::word, .column = "t"};
  table.options.test_split = 0.2;
  table.options.validation_split = 0.25;
  const Dataset set = table.load();
  CHECK(set.text->names.size() == 2 + 60);
  const auto unknown = [](const Split& split) {
    return std::ranges::count(split.images.span<float>(), 1.0F);
  };
  CHECK(unknown(set.train) == 20);
  CHECK(unknown(set.test) == 20);
  table.options.text->column = "s";
  CHECK(contains(table.error(), "has no column 's'"));
  Table gaps("t,y\nx,1\n,0\n");
  gaps.options.text = {.length = 1, .tokens = config::TextTokens::word, .column = "t"};
  CHECK(contains(gaps.error(), "t.csv:3: error: there is no value in the column 't'"));
  gaps.options.table->on_missing = OnMissing::fill;
  CHECK(rows_of(gaps.load().train) == std::vector<std::vector<double>>{{0, 0}, {2, 1}});
}

TEST_CASE("csv: an error in a file is reported with its line and the remedy") {
  const QuietLog quiet;
  std::string mostly = "x,y\n", names = "name,y\n";
  for (int i = 0; i < 30; ++i) {
    mostly += (i == 20 ? "2o" : std::to_string(i)) + ",1\n";
    names += "name" + std::to_string(i) + "," + std::to_string(i % 2) + "\n";
  }
  struct Row {
    std::string text;
    std::string message;
  };
  for (const Row& row : {
           Row{"x,y\n1,2\n1,2,3\n", "t.csv:3: error: has 3 values, but there are 2 columns"},
           Row{"x,y\n\n\n1\n", "t.csv:4: error: has 1 values"},
           Row{"x,y\n1,\"a\n2,b\n", "t.csv:2: error: has a quoted value that does not end"},
           Row{"x,y\n1,a\"b\n", "t.csv:2: error: has a quote in a value"},
           Row{"x,y\n1,\"a\"b\n", "t.csv:2: error: has a quote in a value"},
           Row{"x,y\n", "t.csv: error: has no rows, only the names of its columns: x, y"},
           Row{"", "t.csv: error: is not a CSV file: it is empty"},
           Row{"x,x,y\n1,2,3\n", "t.csv:1: error: columns 1 and 2 have the same name 'x'"},
           Row{",x,y\n0,1,2\n", "data.table.ignore: [\"\"] leaves it out"},
           Row{"y\n1\n2\n", "has no column but the target 'y'"},
           Row{"x,Y\n1,2\n", "t.csv: error: has no column 'y' (one of x, Y)"},
           Row{"x,y\n1,2\n\xE9,2\n", "t.csv:3: error: is not UTF-8"},
           Row{mostly, "t.csv:22: error: '2o' in the column 'x' is not a number, as 29 of its 30"},
           Row{names, "the column 'name' has 30 different texts in 30 rows"},
           Row{"x;y\n1,5;1\n2,5;0\n", "'1,5' in the column 'x' has a decimal comma"},
           Row{"x,y\n1e999,0\n1,0\n2,1\n", "'1e999' in the column 'x' is not a number"},
           Row{"x,y\n1,0\n-1e300,0\n2,1\n",
               "t.csv:3: error: '-1e300' in the column 'x' is beyond the range of float32"},
           Row{"z,x,y\n1,NA,0\n2,NA,1\n", "there is no value in the column 'x'"},
           Row{std::string("x,y\n1,\0\n", 8), "t.csv: error: is not a CSV file"},
           Row{std::string("\xFF\xFEx\0", 4), "is a text in UTF-16"},
           Row{"\x89PNG\r\n\x1a\n", "is not a CSV file but a PNG image"},
           Row{"<html>", "is not a CSV file but a web page"},
       }) {
    CAPTURE(row.text);
    const std::string error = Table(row.text).error();
    CAPTURE(error);
    CHECK(contains(error, row.message));
  }
  Table filled("z,x,y\n1,NA,0\n2,NA,1\n");
  filled.options.table->on_missing = OnMissing::fill;
  CHECK(contains(filled.error(), "the column 'x' has no value in any training row"));
  Table listed("x,y\n1,0\n2,1\n");
  listed.options.table->ignore = {"z"};
  CHECK(contains(listed.error(), "has no column 'z'"));
  listed.options.table.reset();
  CHECK(contains(listed.error(ErrorKind::config), "a csv needs the column with the labels"));
  CHECK(contains(listed.error(ErrorKind::config), "has x, y"));
}

}  // namespace
}  // namespace halfstep::data::testing
