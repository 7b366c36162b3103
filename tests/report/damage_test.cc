// Random damage to reports: they are read, or refused with a message, in bounded memory and time.

#include "support/damage.h"

#include <ctime>

#include "core/files.h"
#include "precision/graph_report.h"
#include "report/any_report.h"
#include "report/diff.h"
#include "report/export/exporter.h"
#include "report/tables.h"
#include "train/fixture.h"

namespace halfstep::report {
namespace {

using namespace std::string_view_literals;

TrainReport whole_report() {
  train::TinyRun tiny;
  tiny.precision = "{policy: mixed_float16}";
  train::Run run(tiny.spec());
  const train::TrainResult result = run.finish();
  RunInfo info;
  info.started_at = "2026-01-31T12:00:00Z";
  info.id = "0123456789ab";
  info.directory = "run";
  return train_report(run.session(), result, info, false);
}

/// Does with a valid report everything that the commands do.
void use(const Document& document) {
  show(document);
  const AnyReport& report = document.report;
  for (const Exporter* exporter : export_table()) exporter->write(report);
  if (const auto* training = std::get_if<TrainReport>(&report)) {
    show_diff(diff(*training, *training), "a", "b");
  }
}

TEST_CASE("damage: the text of reports") {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("report.json");
  const std::string graph = precision::to_json(
      precision::explain_graph("x = Const\ny = Relu(x)\nz = MatMul(y, y)\n", "g.txt", {}));
  constexpr std::array k_tokens{"{"sv,
                                "}"sv,
                                "["sv,
                                "]"sv,
                                "\""sv,
                                ","sv,
                                ":"sv,
                                "null"sv,
                                "1e999"sv,
                                "-1"sv,
                                "9223372036854775807"sv,
                                "1e300"sv,
                                "\"kind\": "sv,
                                "\\ud800"sv};
  for (const std::string& valid : {dump(to_json(whole_report())), graph}) {
    const test::DamageOutcome outcome =
        test::read_damaged(valid, k_tokens, 150, [&](const std::string& text) {
          write_file_atomically(path, text);
          use(read_valid_report(path));
        });
    CHECK(outcome.refused > 0);
  }
}

TEST_CASE("damage: the values of reports") {
  const Json valid = to_json(whole_report());
  REQUIRE(validate(valid) == std::vector<Violation>{});
  std::vector<std::string> places;
  const Json flat = valid.flatten();
  for (const auto& [place, value] : flat.items()) places.push_back(place);
  const std::vector<Json> values{nullptr,
                                 true,
                                 0,
                                 -1,
                                 1,
                                 0.5,
                                 1e300,
                                 INT64_MAX,
                                 INT64_MIN,
                                 "",
                                 "nan",
                                 "\x1b[2J",
                                 Json::array(),
                                 Json::object(),
                                 Json::array({1, 2, 3}),
                                 Json{{"a", 1}}};
  std::mt19937 random(20261123);
  int taken = 0, refused = 0;
  for (int round = 0; round < 500; ++round) {
    Json report = valid;
    const std::string& place = places[random() % places.size()];
    const Json& value = values[random() % values.size()];
    CAPTURE(place);
    CAPTURE(value.dump());
    try {
      report[Json::json_pointer(place)] = value;
      std::vector<Violation> found = validate(report);
      if (found.empty()) {
        use({report, find_kind(report.at("kind").get<std::string>())->read(report, found)});
        ++taken;
      } else {
        ++refused;
      }
    } catch (const UserError&) {
      ++refused;
    }
  }
  CHECK(taken > 0);
  CHECK(refused > 0);
}

/// An object without the search for equal keys that inserting one by one does.
template <class Value, class Key>
Json object_of(int members, const Value& value, const Key& key) {
  Json::object_t object;
  auto& list = static_cast<Json::object_t::Container&>(object);
  for (int i = 0; i < members; ++i) list.emplace_back(key(i), value(i));
  return object;
}

TEST_CASE("validate: paths of numbers that are not finite are found in linear time") {
  const auto report_of = [](int members) {
    return Json{{"status", "completed"},
                {"nonfinite",
                 object_of(
                     members,
                     [](int) { return Json("nan"); },
                     [](int i) { return "block.value " + std::to_string(i); })},
                {"block",
                 object_of(
                     members,
                     [](int i) { return i == 7 ? Json(1) : Json(nullptr); },
                     [&](int i) { return "value " + std::to_string(members - i); })}};
  };
  std::vector<Violation> found;
  const auto processor_time = [&](int members) {
    const Json report = report_of(members);
    found.clear();
    const std::clock_t start = std::clock();
    check_nonfinite(report, found);
    return static_cast<double>(std::clock() - start);
  };
  // Linear growth is 16 times the time, with misses of the caches up to 60; quadratic growth 256.
  const double base = processor_time(5'000);
  CHECK(processor_time(80'000) < 128 * base);
  CHECK(found ==
        std::vector<Violation>{{"nonfinite.block.value 0", "does not exist in this report"},
                               {"nonfinite.block.value 79993", "is 1 there and must be null"}});
}

TEST_CASE("validate: a list of objects is read in linear time") {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("report.json");
  const auto processor_time = [&](int objects) {
    std::string text = R"({"kind": "train", "x": [{})";
    for (int i = 1; i < objects; ++i) text += ",{}";
    write_file_atomically(path, text + "]}");
    const std::clock_t start = std::clock();
    CHECK_THROWS_AS(read_valid_report(path), UserError);
    return static_cast<double>(std::clock() - start);
  };
  const double base = processor_time(5'000);
  CHECK(processor_time(80'000) < 128 * base);
}

TEST_CASE("validate: documents that are no reports are given up early") {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("report.json");
  const auto refusal = [&](const std::string& text) -> std::string {
    write_file_atomically(path, text);
    try {
      read_valid_report(path);
    } catch (const UserError& error) {
      return error.problems().at(0).message;
    }
    return "";
  };
  std::string list = "{\"a\": [1";
  for (int i = 0; i < 8'100'000; ++i) list += ",1";
  CHECK(refusal(list + "]}") == "has more than 8000000 values, so it is not a report");
  std::string members = "{\"a0\": 1";
  for (int i = 1; i < 100'000; ++i) members += ",\"a" + std::to_string(i) + "\": 1";
  CHECK(refusal(members + "}") == "has objects with too many members, so it is not a report");
  std::string unknown = "{\"kind\": \"train\"";
  for (int i = 0; i < 2'000; ++i) unknown += ",\"a" + std::to_string(i) + "\": 1";
  CHECK(refusal(unknown + "}") != "");
}

}  // namespace
}  // namespace halfstep::report
