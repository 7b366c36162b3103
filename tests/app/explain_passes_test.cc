// `explain --passes`, `--dump-after` and `--skip-pass` as a reader sees them.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ostream>
#include <string_view>

#include "app/independent.h"
#include "app/small_run.h"
#include "core/files.h"

namespace halfstep::test {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

const Json& row(const Json& report, std::string_view name) {
  for (const Json& pass : report.at("passes")) {
    if (pass.at("name") == name) return pass;
  }
  FAIL("no pass ", name);
  return report;
}

}  // namespace

TEST_CASE("explain --passes: a row for each pass, from differentiation to lowering") {
  const RunFolder folder;
  const Json report = Json::parse(folder.explain({"--passes", "--json"}));
  const Json& passes = report.at("passes");
  CHECK(passes.front().at("name") == "differentiate");
  CHECK(passes.back().at("name") == "start_sums_early");
  CHECK(row(report, "differentiate").at("outcome") == "changed");
  CHECK(row(report, "differentiate").at("nodes_after") >
        row(report, "differentiate").at("nodes_before"));
  CHECK(row(report, "rewrite").at("outcome") == "unchanged");
  CHECK(row(report, "fuse_finite").at("nodes_after") <
        row(report, "fuse_finite").at("nodes_before"));
  const Json rewritten = Json::parse(folder.explain(
      {"--passes", "--json", "--rewrite", "auto", "--set", "precision.target=bfloat16"}));
  CHECK(row(rewritten, "rewrite").at("outcome") == "changed");
  const std::string table = folder.explain({"--passes"});
  for (const Json& pass : passes) {
    CHECK(has(table, "\n" + pass.at("name").get<std::string>() + " "));
  }
  CHECK(has(folder.explain({"--passes", "-v"}), passes.back().at("reason").get<std::string>()));
}

TEST_CASE("explain --passes: its JSON is a report with a schema") {
  const RunFolder folder;
  const std::vector<std::string> files{"passes.json", "dumped.json", "skipped.json"};
  const TemporaryDirectory& directory = folder.directory;
  write_text(directory.file(files[0]), folder.explain({"--passes", "--json"}));
  write_text(directory.file(files[1]),
             folder.explain({"--passes", "--json", "--dump-after", "prune"}));
  write_text(directory.file(files[2]),
             folder.explain({"--passes", "--json", "--skip-pass", "fuse_finite"}));
  std::vector<std::string> words{"report", "validate"};
  words.insert(words.end(), files.begin(), files.end());
  const Finished valid = halfstep(words, directory.path());
  CAPTURE(valid.err);
  CHECK(valid.exit_code == 0);
  CHECK(has(valid.out, "passes.json: ok, passes\n"));
  check_independently(directory, files);
  Json wrong = Json::parse(read_text(directory.file(files[0])));
  wrong["passes"][0]["outcome"] = "change";
  write_text(directory.file("wrong.json"), wrong.dump());
  const Finished refused = halfstep({"report", "validate", "wrong.json"}, directory.path());
  CHECK(refused.exit_code == 2);
  CHECK(has(refused.err, "passes[0].outcome: "));
}

TEST_CASE("explain --dump-after: the graph's text, on stdout or in numbered files") {
  const RunFolder folder;
  const std::string text =
      folder.explain({"--dump-after", "differentiate", "--dump-after", "prune"});
  CHECK(text.starts_with("# after differentiate\n"));
  CHECK(has(text, "\n# after prune\n"));
  CHECK_FALSE(has(text.substr(0, text.find("# after prune")), "ResourceApply"));
  CHECK(has(text, " = ResourceApply"));
  CHECK(folder.explain({"--dump-after", "all", "--dump-dir", "dumps"}).empty());
  const Json report = Json::parse(folder.explain({"--passes", "--json", "--dump-after", "all"}));
  std::size_t number = 0;
  for (const Json& pass : report.at("passes")) {
    const std::string name =
        fmt::format("{:02}-{}.txt", ++number, pass.at("name").get<std::string>());
    CHECK(read_file(folder.directory.file("dumps/" + name)) == pass.at("graph").get<std::string>());
  }
}

TEST_CASE("explain --skip-pass: the pass is left out, and its kernels with it") {
  const RunFolder folder;
  const Json report =
      Json::parse(folder.explain({"--passes", "--json", "--skip-pass", "fuse_finite"}));
  CHECK(row(report, "fuse_finite").at("outcome") == "skipped");
  CHECK(row(report, "prune").at("outcome") != "skipped");
  CHECK(has(folder.explain({"--dump-after", "fuse_elementwise", "--skip-pass", "fuse_finite"}),
            " = IsFinite("));
  CHECK_FALSE(has(folder.explain({"--dump-after", "fuse_elementwise"}), " = IsFinite("));
}

TEST_CASE("explain --passes: unknown, required and misplaced flags are refused") {
  const RunFolder folder;
  CHECK(has(folder.explain({"--skip-pass", "fuse_norm"}, 2), "did you mean 'fuse_norms'?"));
  CHECK(has(folder.explain({"--dump-after", "fuse_norm"}, 2), "did you mean 'fuse_norms'?"));
  CHECK(has(folder.explain({"--skip-pass", "differentiate"}, 2), "cannot be skipped"));
  folder.explain({"--dump-dir", "dumps"}, 2);
  folder.explain({"--passes", "--format", "dot"}, 2);
  folder.explain({"--passes", "--diff", "float32", "mixed_bfloat16"}, 2);
}

}  // namespace halfstep::test
