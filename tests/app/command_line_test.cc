// Help, misspelled arguments, configs and data: errors before training.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <iterator>
#include <ostream>
#include <sstream>
#include <string_view>

#include "app/small_run.h"
#include "support/paths.h"

namespace halfstep::test {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

TEST_CASE("command line: help comes at once and names every command") {
  const TemporaryDirectory directory;
  // The best of three: other work on the machine may delay any one of them.
  double seconds = 1e9;
  for (int i = 0; i < 3; ++i) {
    const Finished help = halfstep({"--help"}, directory.path());
    REQUIRE(help.exit_code == 0);
    CHECK(help.err.empty());
    for (std::string_view command : {"train", "eval", "predict", "config", "report", "doctor"}) {
      CAPTURE(command);
      CHECK(holds(help.out, command));
    }
    seconds = std::min(seconds, help.seconds);
  }
  CHECK(seconds < 1);
  CHECK(halfstep({"train", "--help"}, directory.path()).exit_code == 0);
}

TEST_CASE("command line: mistakes end with 2 and name what was meant") {
  const TemporaryDirectory directory;
  write_config(directory);
  struct Row {
    std::vector<std::string> words;
    std::string_view said;
  };
  const std::vector<Row> rows{{{"trian", "run.yaml"}, "did you mean 'train'?"},
                              {{"train", "run.yaml", "--epoch-count", "3"}, "--epoch-count"},
                              {{"train", "run.yaml", "--epochs", "many"}, "--epochs"},
                              {{"train", "run.yaml", "--epochs", "1", "--epochs=2", "--seed", "3"},
                               "error: --epochs is given 2 times: 1, 2\n"},
                              {{"bench", "r", "--steps=1", "--steps=1", "--repeat=1", "--repeat=2"},
                               "--steps is given 2 times: 1, 1\nerror: --repeat is given 2"},
                              {{"bench", "r", "--steps", "x", "--repeat", "0"},
                               "got 'x'\n--repeat: error: must be a whole number from 1 to 1000"},
                              {{"train"}, "name a YAML file"},
                              {{}, "Usage: halfstep"},
                              {{"config"}, "subcommand"},
                              {{"config", "shwo", "run.yaml"}, "did you mean 'show'?"},
                              {{"train", "--polcy", "float32"}, "did you mean '--policy'?"},
                              {{"--verison"}, "did you mean '--version'?"},
                              {{"report", "schema", "trian"}, "did you mean 'train'?"},
                              {{"config", "init", "mnist-mpl"}, "did you mean 'mnist-mlp'?"}};
  for (const Row& row : rows) {
    CAPTURE(row.said);
    const Finished end = halfstep(row.words, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(end.out.empty());
    CHECK(holds(end.err, row.said));
  }
}

TEST_CASE("command line: a number is refused with its flag and the numbers that this takes") {
  const TemporaryDirectory directory;
  write_config(directory);
  constexpr std::string_view k_large = "99999999999999999999";
  constexpr std::string_view k_any = "a whole number from 0 to 9223372036854775807";
  constexpr std::string_view k_count = "a whole number from 1 to 9223372036854775807";
  struct Row {
    std::string_view command, flag, value, wanted;
  };
  for (const Row& row :
       {Row{"data synth --out d", "--seed", k_large, k_any},
        Row{"data synth --out d", "--seed", "-1", k_any},
        Row{"data synth --out d", "--samples", "0", k_count},
        Row{"data synth --out d", "--test-samples", "many", k_count},
        Row{"runs prune", "--keep", k_large, k_any},
        Row{"runs prune", "--older-than", "-1", "a number of days of at least 0"},
        Row{"runs prune", "--older-than", "nan", "a number of days of at least 0"},
        Row{"train run.yaml", "--progress-every", "nan", "a number of seconds of at least 0"},
        Row{"tune", "--max-minutes", "inf", "a number of minutes of at least 0"},
        Row{"tune", "--rounds", "1", "a whole number from 2 to 1000"},
        Row{"verify-resume run.yaml", "--at-step", k_large, k_count},
        Row{"compare run.yaml", "--seeds", "1001", "a whole number from 1 to 1000"},
        Row{"bench run.yaml", "--steps", k_large, "a whole number from 1 to 1000000000"},
        Row{"bench run.yaml", "--warmup", "-1", "a whole number from 0 to 1000000000"},
        Row{"bench run.yaml", "--repeat", "0", "a whole number from 1 to 1000"},
        Row{"explain --graph g", "--cuda-version", k_large, "a whole number from 0 to 999999"}}) {
    std::istringstream command{std::string(row.command)};
    std::vector<std::string> words{std::istream_iterator<std::string>(command), {}};
    words.insert(words.end(), {std::string(row.flag), std::string(row.value)});
    const Finished end = halfstep(words, directory.path());
    CHECK(end.exit_code == 2);
    CHECK(end.err ==
          fmt::format("{}: error: must be {}, got '{}'\n", row.flag, row.wanted, row.value));
  }
}

TEST_CASE("tune: a file that cannot be written is found before anything is measured") {
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished end = halfstep({"tune", "--output", "run.yaml/costs"}, directory.path());
  CHECK(end.exit_code == 3);
  CHECK(holds(end.err, "run.yaml: error: cannot make the folder"));
  CHECK_FALSE(holds(end.err, "workloads"));
}

TEST_CASE("command line: errors show control characters of arguments as escapes") {
  const TemporaryDirectory directory;
  write_config(directory);
  const std::string steering = "\x1b[31m\x1b]0;title\a\n";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{steering},
        std::vector<std::string>{"train", "--" + steering},
        std::vector<std::string>{"train", steering},
        std::vector<std::string>{"train", "run.yaml", "--color", steering},
        std::vector<std::string>{"train", "run.yaml", "--log-file", "/" + steering + "/log"},
        std::vector<std::string>{"train", "run.yaml", steering},
        std::vector<std::string>{"eval", "run", "--split", steering},
        std::vector<std::string>{"bench", "run.yaml", "--steps", steering},
        std::vector<std::string>{"completion", steering},
        std::vector<std::string>{"help", steering},
        std::vector<std::string>{"report", "show", steering}}) {
    const Finished end = halfstep(words, directory.path());
    CAPTURE(words.front());
    CAPTURE(end.err);
    CHECK(end.exit_code != 0);
    CHECK(holds(end.err, "\\x1b[31m\\x1b]0;title\\x07"));
    CHECK(end.err.find_first_of("\x1b\a") == std::string::npos);
  }
}

TEST_CASE("command line: results show control characters of paths as escapes") {
  const TemporaryDirectory directory;
  const std::string steering = "a\x1b[31m\nb", shown = "a\\x1b[31m\\nb";
  const std::string config = directory.file(steering + ".yaml");
  fs::rename(write_config(directory), config);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"config", "check", config},
        std::vector<std::string>{"train", config, "--max-steps", "1", "--run-dir", steering},
        std::vector<std::string>{"report", "validate", steering},
        std::vector<std::string>{"report", "show", steering},
        std::vector<std::string>{"model", "export", steering, "--to", steering + ".npz"},
        std::vector<std::string>{
            "bench", config, "--steps=1", "--repeat=1", "--run-dir", "b" + steering},
        std::vector<std::string>{
            "data", "synth", "--samples=1", "--test-samples=1", "--out", steering}}) {
    const Finished end = halfstep(words, directory.path());
    CAPTURE(end.err);
    CAPTURE(words.front());
    CHECK(end.exit_code == 0);
    CHECK(holds(end.out, shown));
    CHECK(end.out.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("command line: settings hold in the order in which they are given") {
  const TemporaryDirectory directory;
  write_config(directory);
  struct Row {
    std::vector<std::string> words;
    std::string_view shown;
  };
  for (const Row& row : {Row{{"--set", "name=a", "--set-str", "name=b"}, "name: b\n"},
                         Row{{"--set-str", "name=b", "--set", "name=a"}, "name: a\n"},
                         Row{{"--unset", "seed", "--set", "seed=3"}, "seed: 3\n"},
                         Row{{"--set", "seed=3", "--unset", "seed", "--seed", "4"}, "seed: 4\n"}}) {
    std::vector<std::string> words{"config", "show", "run.yaml"};
    words.insert(words.end(), row.words.begin(), row.words.end());
    const Finished end = halfstep(words, directory.path());
    CAPTURE(row.shown);
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
    CHECK(holds(end.out, row.shown));
  }
}

TEST_CASE("command line: --policy takes the names that compare has for the rewrite") {
  const TemporaryDirectory directory;
  write_config(directory);
  const auto shown = [&](std::vector<std::string> flags) {
    std::vector<std::string> words{"config", "show", "run.yaml"};
    words.insert(words.end(), flags.begin(), flags.end());
    return halfstep(words, directory.path());
  };
  CHECK(shown({"--policy", "rewrite:bfloat16"}).out ==
        shown({"--policy", "float32", "--rewrite", "auto", "--set", "precision.target=bfloat16"})
            .out);
  CHECK(shown({"--policy", "rewrite"}).out ==
        shown({"--policy", "float32", "--rewrite", "auto"}).out);
  CHECK(shown({"--policy", "rewrite:float64"}).exit_code == 2);
  const Finished both = shown({"--policy", "rewrite", "--rewrite", "none"});
  CHECK(both.exit_code == 2);
  CHECK(holds(both.err, "excludes --rewrite"));
  CHECK(shown({"--policy", "rewrites"}).exit_code == 2);
}

TEST_CASE("command line: a result that cannot be written is no success") {
  const TemporaryDirectory directory;
  write_config(directory);
  for (const std::string command : {"config show run.yaml", "report schema train", "version"}) {
    CAPTURE(command);
    const std::string line = "'" + program().string() + "' " + command + " > /dev/full";
    const Finished end = Process({"/bin/sh", "-c", line}, directory.path()).wait();
    CHECK(end.exit_code == 3);
    CHECK(holds(end.err, "No space left"));
  }
}

TEST_CASE("command line: a wrong config ends with 2 and its first line says where") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.training = "{epochs: 2, batch_sise: 64}";
  write_config(directory, run);
  const Finished end = train(directory, "run");
  CAPTURE(end.err);
  CHECK(end.exit_code == 2);
  CHECK(first_line(end.err).starts_with("run.yaml:15:23: "));
  CHECK(holds(end.err, "did you mean 'batch_size'?"));
  CHECK(!fs::exists(directory.path() / "run"));
}

TEST_CASE("command line: configs that cannot be trained end with their code and a reason") {
  struct Row {
    std::string_view title;
    SmallRun run;
    int code;
    std::string_view said;
  };
  std::vector<Row> rows;
  const auto add = [&](std::string_view title, int code, std::string_view said) -> SmallRun& {
    rows.push_back({title, {}, code, said});
    return rows.back().run;
  };
  add("unknown data set", 2, "no_such_digits").data = "{name: no_such_digits}";
  add("missing file", 3, "absent.npz").data = "{format: npz, path: absent.npz}";
  add("batch larger than the data", 2, "batch").training = "{epochs: 1, batch_size: 4096}";
  add("shapes that do not fit", 2, "hidden").layers = R"(
    - {type: conv2d, filters: 4, kernel_size: 3, name: hidden}
    - {type: dense, units: 10}
)";
  add("unknown layer", 2, "did you mean 'dense'?").layers = R"(
    - {type: dens, units: 10}
)";
  for (const Row& row : rows) {
    CAPTURE(row.title);
    const TemporaryDirectory directory;
    write_config(directory, row.run);
    const Finished end = train(directory, "run");
    CAPTURE(end.err);
    CHECK(end.exit_code == row.code);
    CHECK(holds(end.err, row.said));
    CHECK(end.out.empty());
  }
}

TEST_CASE("command line: a model whose nodes go in a circle ends with 2") {
  const TemporaryDirectory directory;
  std::string text = SmallRun{}.text();
  const std::size_t from = text.find("  input:"), to = text.find("precision:");
  text.replace(from, to - from, R"(  inputs: {image: [784]}
  nodes:
    stem: {type: dense, units: 8, from: image}
    a: {type: add, from: [stem, b]}
    b: {type: dense, units: 8, from: a}
    out: {type: dense, units: 10, from: b}
  outputs: [out]
)");
  write_text(directory.file("run.yaml"), text);
  const Finished end = train(directory, "run");
  CAPTURE(end.err);
  CHECK(end.exit_code == 2);
  CHECK(first_line(end.err).starts_with("run.yaml:"));
}

TEST_CASE("command line: a run directory that holds a run is refused and stays as it is") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run", {"--epochs", "1"}).exit_code == 0);
  const std::string before = read_text(directory.file("run/report.json"));
  const Finished end = train(directory, "run", {"--epochs", "1"});
  CAPTURE(end.err);
  CHECK(end.exit_code == 2);
  CHECK(holds(end.err, "--resume"));
  CHECK(read_text(directory.file("run/report.json")) == before);
  const Finished as_config = halfstep({"config", "show", "run"}, directory.path());
  CHECK(as_config.exit_code == 2);
  CHECK(holds(as_config.err, "did you mean run/config.yaml?"));
}

TEST_CASE("command line: a run directory that cannot be made ends with 3") {
  const TemporaryDirectory directory;
  write_config(directory);
  write_text(directory.file("taken"), "a file, not a folder");
  Finished end = train(directory, "taken/run", {"--epochs", "1"});
  CAPTURE(end.err);
  CHECK(end.exit_code == 3);
  CHECK(holds(end.err, "taken/run: error: cannot make the folder: Not a directory"));
  if (geteuid() == 0) {
    MESSAGE("as root every folder can be written; folders without permission are not tried");
    return;
  }
  fs::create_directory(directory.path() / "locked");
  fs::permissions(directory.path() / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  for (const std::string path : {"locked/run", "locked/new/run"}) {
    end = train(directory, path, {"--epochs", "1"});
    CHECK(end.exit_code == 3);
    CHECK(holds(end.err, path + ": error: cannot make the folder: Permission denied"));
  }
  fs::permissions(directory.path() / "locked", fs::perms::owner_all);
}

}  // namespace halfstep::test
