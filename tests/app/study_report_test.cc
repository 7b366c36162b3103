// The reports of compare, bench, explain and the rewrite of a graph: two validators accept them,
// and whatever is changed in one is named.

#include <doctest/doctest.h>

#include <functional>
#include <ostream>
#include <string_view>

#include "app/independent.h"
#include "app/small_run.h"

namespace halfstep::test {
namespace {

constexpr std::string_view k_graph = R"(
input = Const
w = VariableV2
mul = MatMul(input, w)
act = Relu(mul)
lst = AddN(act, act) {N: 2}
out = Identity(lst)
preserve out
)";

/// Runs the command with --json and stores its output as a file.
Json keep(const TemporaryDirectory& directory,
          std::vector<std::string> words,
          const std::string& file,
          int exit_code = 0) {
  words.emplace_back("--json");
  const Finished end = halfstep(words, directory.path());
  CAPTURE(words.front());
  CAPTURE(end.err);
  CHECK(end.exit_code == exit_code);
  write_text(directory.file(file), end.out);
  return Json::parse(end.out);
}

struct Spoiled {
  std::string_view path;
  std::function<void(Json&)> spoil;
};

/// Every change to the report is found, and its first violation has the path of the change.
void check_spoiled(const TemporaryDirectory& directory,
                   const Json& good,
                   const std::vector<Spoiled>& rows) {
  std::vector<std::string> words{"report", "validate"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Json bad = good;
    rows[i].spoil(bad);
    words.push_back("bad" + std::to_string(i) + ".json");
    write_text(directory.file(words.back()), bad.dump());
  }
  const Finished end = halfstep(words, directory.path());
  CHECK(end.exit_code == 2);
  CHECK(end.out.empty());
  const std::vector<std::string> said = lines(end.err);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].path);
    const std::string file = words[i + 2] + ": ";
    std::string first;
    for (const std::string& line : said) {
      if (first.empty() && line.starts_with(file)) first = line.substr(file.size());
    }
    CAPTURE(first);
    CHECK(first.starts_with(std::string(rows[i].path) + ": "));
  }
}

}  // namespace

TEST_CASE("report: comparisons follow their schema, and every change to one is named") {
  const TemporaryDirectory directory;
  write_config(directory);
  const Json study = keep(directory,
                          {"compare",
                           "run.yaml",
                           "--threads",
                           "1",
                           "--seeds",
                           "2",
                           "--policies",
                           "float32,mixed_float16,rewrite:bfloat16",
                           "--fail-if",
                           "mixed_float16.accuracy.delta > -200pp"},
                          "compare.json",
                          5);
  REQUIRE(train(directory, "a").exit_code == 0);
  REQUIRE(train(directory, "b", {"--policy", "mixed_float16"}).exit_code == 0);
  keep(directory, {"compare", "a", "b"}, "runs.json");
  keep(directory, {"report", "diff", "a", "b"}, "diff.json");
  SmallRun unsplit;
  unsplit.data = "{name: synthetic_digits, train_samples: 256, test_samples: 64}";
  write_config(directory, unsplit);
  keep(directory,
       {"compare",
        "run.yaml",
        "--threads",
        "1",
        "--seeds",
        "1",
        "--policies",
        "float32,mixed_bfloat16"},
       "unsplit.json");
  const std::vector<std::string> files{"compare.json", "runs.json", "diff.json", "unsplit.json"};
  std::vector<std::string> words{"report", "validate"};
  words.insert(words.end(), files.begin(), files.end());
  const Finished own = halfstep(words, directory.path());
  CAPTURE(own.err);
  CHECK(own.exit_code == 0);
  check_independently(directory, files);

  check_spoiled(
      directory,
      study,
      {{"margins", [](Json& r) { r["margins"] = 1; }},
       {"policies[1].speedup.ci95", [](Json& r) { r["policies"][1]["speedup"]["ci95"] = {1.0}; }},
       {"policies[1].tost.p", [](Json& r) { r["policies"][1]["tost"]["p"] = 1.5; }},
       {"policies[0].runs", [](Json& r) { r["policies"][0]["runs"] = 3; }},
       {"policies[0].diverged", [](Json& r) { r["policies"][0]["diverged"] = 1; }},
       {"policies[0].step_time.n", [](Json& r) { r["policies"][0]["step_time"]["n"] = 7; }},
       {"policies[2].baseline", [](Json& r) { r["policies"][2]["baseline"] = true; }},
       {"policies[2].policy", [](Json& r) { r["policies"][2]["policy"] = "float32"; }},
       {"policies[1].accuracy_delta.mean",
        [](Json& r) { r["policies"][1]["accuracy_delta"]["mean"] = 0.5; }},
       {"policies[1].mcnemar.b", [](Json& r) { r["policies"][1]["mcnemar"]["b"] = 127; }},
       {"policies[1].tost.equivalent",
        [](Json& r) {
          r["policies"][1]["tost"]["p"] = 0.5;
          r["policies"][1]["tost"]["equivalent"] = true;
        }},
       {"policies[1].runs", [](Json& r) { r["runs"][1]["policy"] = "float16"; }},
       {"runs[0].history.loss", [](Json& r) { r["runs"][0]["history"]["loss"].push_back(1.0); }},
       {"pairs[0].accuracy_delta", [](Json& r) { r["pairs"][0]["accuracy_delta"] = nullptr; }},
       {"gates[0].failed",
        [](Json& r) {
          r["gates"][0]["failed"] = false;
          r["exit_code"] = 0;
        }},
       {"exit_code", [](Json& r) { r["exit_code"] = 0; }},
       {"exit_code", [](Json& r) { r["exit_code"] = 130; }},
       {"baseline", [](Json& r) { r["baseline"] = 1; }}});
}

TEST_CASE("report: benchmarks follow their schema, and every change to one is named") {
  const TemporaryDirectory directory;
  write_config(directory);
  const std::vector<std::string> bench{
      "bench", "run.yaml", "--threads", "1", "--steps", "6", "--warmup", "0"};
  std::vector<std::string> two = bench;
  two.insert(two.end(),
             {"--repeat", "2", "--policies", "float32,mixed_bfloat16", "--profile", "--synthetic"});
  const Json report = keep(directory, two, "bench.json");
  std::vector<std::string> one = bench;
  one.insert(one.end(), {"--repeat", "1"});
  keep(directory, one, "one.json");
  const Finished own = halfstep({"report", "validate", "bench.json", "one.json"}, directory.path());
  CAPTURE(own.err);
  CHECK(own.exit_code == 0);
  check_independently(directory, {"bench.json", "one.json"});

  check_spoiled(
      directory,
      report,
      {{"bench.warm", [](Json& r) { r["bench"]["warm"] = 1; }},
       {"profile.ops[0].share", [](Json& r) { r["profile"]["ops"][0]["share"] = 1.5; }},
       {"bench.policy", [](Json& r) { r["bench"]["policy"] = "mixed_bfloat16"; }},
       {"step_time", [](Json& r) { r["step_time"]["outliers"] = 99; }},
       {"policies[1].step_time.n", [](Json& r) { r["policies"][1]["repeats"].erase(0); }},
       {"policies[1].repeats[0].max", [](Json& r) { r["policies"][1]["repeats"][0]["max"] = 0.0; }},
       {"profile.total_ms", [](Json& r) { r["profile"]["total_ms"] = 1e6; }},
       {"profile.by_type", [](Json& r) { r["profile"]["by_type"].erase(0); }},
       {"policies", [](Json& r) { r["policies"] = Json::array(); }},
       {"exit_code", [](Json& r) { r["exit_code"] = 5; }}});
}

TEST_CASE("report: explanations follow their schema, and every change to one is named") {
  const TemporaryDirectory directory;
  write_config(directory);
  write_text(directory.file("graph.txt"), std::string(k_graph));
  const Json explained =
      keep(directory, {"explain", "run.yaml", "--policy", "mixed_float16"}, "explain.json");
  keep(directory,
       {"explain", "run.yaml", "--rewrite", "auto", "--set", "precision.target=bfloat16"},
       "rewrite.json");
  keep(directory, {"explain", "run.yaml", "--diff", "float32", "rewrite:bfloat16"}, "diff.json");
  const Json graph = keep(directory, {"explain", "--graph", "graph.txt"}, "graph.json");
  REQUIRE(graph.at("status") == "ok");
  REQUIRE(graph.at("casts").size() > 0);
  keep(directory, {"explain", "--graph", "graph.txt", "--mode", "cpu"}, "emulated.json");
  write_text(directory.file("unknown.txt"), "a = NoSuchOp\n");
  CHECK(keep(directory, {"explain", "--graph", "unknown.txt"}, "failed.json", 2).at("status") ==
        "failed");
  const std::vector<std::string> files{
      "explain.json", "rewrite.json", "diff.json", "graph.json", "emulated.json", "failed.json"};
  std::vector<std::string> words{"report", "validate"};
  words.insert(words.end(), files.begin(), files.end());
  const Finished own = halfstep(words, directory.path());
  CAPTURE(own.err);
  CHECK(own.exit_code == 0);
  check_independently(directory, files);

  check_spoiled(directory,
                explained,
                {{"ops[0].dtype", [](Json& r) { r["ops"][0]["dtype"] = "float16"; }},
                 {"half_flops_share", [](Json& r) { r["half_flops_share"] = 0.5; }},
                 {"half_bytes_share", [](Json& r) { r["half_bytes_share"] = -1; }},
                 {"casts_executed", [](Json& r) { r["casts_executed"] = 1000; }}});
  check_spoiled(
      directory,
      graph,
      {{"mode", [](Json& r) { r["mode"] = "gpu"; }},
       {"paint[0].step", [](Json& r) { r["paint"][0]["step"] = "guessed"; }},
       {"nodes[0].attrs.dtype", [](Json& r) { r["nodes"][0]["attrs"]["dtype"] = 1; }},
       {"casts[0].to", [](Json& r) { r["casts"][0]["to"] = r["casts"][0]["from"]; }},
       {"casts[0].input", [](Json& r) { r["casts"][0]["input"] = "nowhere:0"; }},
       {"casts[0].consumers[0]", [](Json& r) { r["casts"][0]["consumers"][0] = "nobody"; }},
       {"casts_counted", [](Json& r) { r["casts_counted"] = 9; }},
       {"paint[0].node", [](Json& r) { r["paint"][0]["node"] = "nobody"; }},
       {"message", [](Json& r) { r["status"] = "failed"; }}});
}

}  // namespace halfstep::test
