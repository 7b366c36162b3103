#include "config/load.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "config/node.h"
#include "support.h"

namespace halfstep::config::testing {
namespace {

Where where_of(const Node& root, std::string_view path) {
  const Node* node = find_path(root, path);
  REQUIRE(node != nullptr);
  return node->where;
}

std::string text_of(const Node& root, std::string_view path) {
  const Node* node = find_path(root, path);
  REQUIRE(node != nullptr);
  CHECK(node->kind == Node::Kind::scalar);
  return node->text;
}

std::string failure(std::string_view text, const LoadOptions& options = {}) {
  try {
    node_of(text, options);
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

LoadOptions environment() {
  LoadOptions options;
  options.environment = [](std::string_view name) -> std::optional<std::string> {
    if (name == "HOME") return "/home/me";
    if (name == "COUNT") return "7";
    if (name == "EMPTY") return "";
    if (name == "TRICK") return "${env:HOME}: {a: b}";
    return std::nullopt;
  };
  return options;
}

}  // namespace

TEST_CASE("load: values and keys know their place and path") {
  const Node root = node_of("a: 1\nb:\n  c: [x, {d: 2}]\n  'e.f': \"q\"\n");
  CHECK(where_of(root, "a") == Where{"c.yaml", 1, 4, "a"});
  CHECK(where_of(root, "b") == Where{"c.yaml", 3, 3, "b"});
  CHECK(where_of(root, "b.c") == Where{"c.yaml", 3, 6, "b.c"});
  CHECK(where_of(root, "b.c[0]") == Where{"c.yaml", 3, 7, "b.c[0]"});
  CHECK(where_of(root, "b.c[1].d") == Where{"c.yaml", 3, 14, "b.c[1].d"});
  CHECK(where_of(root, "b[e.f]") == Where{"c.yaml", 4, 10, "b[e.f]"});
  CHECK(root.entries[1].where == Where{"c.yaml", 2, 1, "b"});
  CHECK(find_path(root, "b.c[2]") == nullptr);
  CHECK(find_path(root, "a.b") == nullptr);
}

TEST_CASE("load: scalars keep their text and their quotes") {
  struct Case {
    std::string_view yaml;
    Node::Kind kind;
    std::string_view text;
    bool quoted;
  };
  constexpr Node::Kind k_scalar = Node::Kind::scalar;
  constexpr Node::Kind k_null = Node::Kind::null;
  static constexpr Case k_cases[] = {
      {"010", k_scalar, "010", false},
      {"yes", k_scalar, "yes", false},
      {"1e-5", k_scalar, "1e-5", false},
      {"'1'", k_scalar, "1", true},
      {"\"null\"", k_scalar, "null", true},
      {"!!str 5", k_scalar, "5", true},
      {"|\n  two\n  lines", k_scalar, "two\nlines\n", true},
      {"null", k_null, "", false},
      {"~", k_null, "", false},
      {"", k_null, "", false},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.yaml);
    const Node root = node_of("v: " + std::string(c.yaml) + "\n");
    const Node* node = root.find("v");
    REQUIRE(node != nullptr);
    CHECK(node->kind == c.kind);
    CHECK(node->text == c.text);
    CHECK(node->quoted == c.quoted);
  }
}

TEST_CASE("load: Windows line ends, a byte order mark and no final newline are fine") {
  const Node root = node_of(
      "\xEF\xBB\xBF"
      "a: 1\r\nb: x");
  CHECK(text_of(root, "a") == "1");
  CHECK(where_of(root, "b") == Where{"c.yaml", 2, 4, "b"});
}

TEST_CASE("load: aliases repeat a value, under their own path") {
  const Node root = node_of("a: &x {u: 1}\nb: *x\nc: [*x, *x]\n");
  CHECK(where_of(root, "b.u") == Where{"c.yaml", 1, 11, "b.u"});
  CHECK(text_of(root, "c[1].u") == "1");
}

TEST_CASE("load: merge keys fill in what the map does not say itself") {
  const Node root = node_of(
      "one: &one {a: 1, b: 1}\n"
      "two: &two {b: 2, c: 2}\n"
      "both: {a: 0, <<: [*one, *two], d: 3}\n"
      "last: {<<: *one, b: 9}\n"
      "text: {'<<': 5}\n");
  CHECK(text_of(root, "both.a") == "0");
  CHECK(text_of(root, "both.b") == "1");
  CHECK(text_of(root, "both.c") == "2");
  CHECK(text_of(root, "both.d") == "3");
  CHECK(root.find("both")->entries.size() == 4);
  CHECK(text_of(root, "last.b") == "9");
  CHECK(text_of(root, "last.a") == "1");
  CHECK(root.find("text")->entries[0].key == "<<");
}

TEST_CASE("load: the environment is read by name, with defaults") {
  struct Case {
    std::string_view text;
    std::string_view want;
  };
  static constexpr Case k_cases[] = {
      {"${env:HOME}", "/home/me"},
      {"${env:HOME}/x/${env:COUNT}", "/home/me/x/7"},
      {"${env:NONE:-data}/mnist.npz", "data/mnist.npz"},
      {"${env:HOME:-data}", "/home/me"},
      {"a${env:NONE:-}b", "ab"},
      {"a${env:EMPTY}b", "ab"},
      {"${env:NONE:-a:-b}", "a:-b"},
      {"'${env:COUNT}'", "7"},
      {"${env:TRICK}", "${env:HOME}: {a: b}"},
      {"$${env:HOME}", "${env:HOME}"},
      {"$HOME", "$HOME"},
      {"cost $5 {x}", "cost $5 {x}"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.text);
    const Node root = node_of("v: " + std::string(c.text) + "\n", environment());
    CHECK(text_of(root, "v") == c.want);
  }
  const Node root = node_of("a: ${env:EMPTY}\nb: '${env:EMPTY}'\n", environment());
  CHECK(root.find("a")->kind == Node::Kind::null);
  CHECK(root.find("b")->kind == Node::Kind::scalar);
}

TEST_CASE("load: an unset variable is an error that names it") {
  CHECK(failure("a: 1\nb: x${env:NONE}y\n", environment()) ==
        "c.yaml:2:4: b: error: the environment variable NONE is not set "
        "(${env:NONE:-default} gives it a default)");
  CHECK(failure("a: ${env:1X}\n", environment()) ==
        "c.yaml:1:4: a: error: cannot interpolate '${env:1X}' "
        "(write ${env:NAME} or ${env:NAME:-default})");
}

TEST_CASE("load: files that are none are named with the reason") {
  Diagnostics diagnostics;
  const auto failure_of = [&](const std::string& path, const LoadOptions& options = {}) {
    try {
      load_file(path, diagnostics, options);
    } catch (const UserError& error) {
      CHECK(error.kind() == ErrorKind::config);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(failure_of("/no/such/file.yaml") ==
        "/no/such/file.yaml: error: cannot open: No such file or directory");
  CHECK(failure_of("/") == "/: error: is a directory, not a config file");
  CHECK(failure_of("/dev/null") == "/dev/null: error: holds no config: it is empty");
  const std::string good = (folder() / "good" / "guide.yaml").string();
  LoadOptions small;
  small.max_bytes = 100;
  CHECK(failure_of(good, small) == good + ": error: is larger than 100 bytes: not a config");
  CHECK(failure_of(good).empty());
  CHECK(diagnostics.empty());
}

TEST_CASE("load: limits of size and depth hold against bombs") {
  LoadOptions options;
  options.limits.nodes = 12;  // keys count too
  CHECK(failure("a: [1, 2, 3, 4, 5, 6, 7, 8, 9]\n", options).empty());
  CHECK(failure("a: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n", options) ==
        "c.yaml:1:32: error: the config has more than 12 values");
  options.limits.depth = 3;
  CHECK(failure("a: {b: {c: 1}}\n", options).empty());
  CHECK(failure("a: {b: {c: [1]}}\n", options) ==
        "c.yaml:1:12: error: the config is nested more than 3 deep");
  for (const std::string_view opener : {"[", "{a: ", "- ", "? "}) {
    CAPTURE(opener);
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += opener;
    CHECK(failure(text) != "");
  }
}

TEST_CASE("load: memory is bounded for aliases of long text and for values below long keys") {
  const auto repeated = [](std::string_view text, int times) {
    std::string result;
    for (int i = 0; i < times; ++i) result += text;
    return result;
  };
  const std::string word(600'000, 'x');
  CHECK(failure("a: &a " + word + "\nb: [" + repeated("*a,", 90'000) + "]\n")
            .ends_with("error: the config takes more than 64 MiB with its aliases written out"));
  CHECK(failure("a: &a " + word + "\nb:\n" + repeated("  - {*a : 1}\n", 9'000))
            .find("takes more than 64 MiB") != std::string::npos);
  CHECK(failure("a: &a {k: " + word + "}\nb:\n" + repeated("  - {<<: *a}\n", 9'000))
            .find("takes more than 64 MiB") != std::string::npos);
  const std::string key(80'000, 'k');
  CHECK(failure("? " + key + "\n: [" + repeated("1,", 45'000) + "]\n")
            .find("the paths of the config's values take more than 32 MiB (use shorter keys than "
                  "'kkkk") != std::string::npos);
  std::string nested;
  for (int i = 0; i < 60; ++i) nested += "{" + std::string(1000, 'k') + ": ";
  CHECK(failure("a: " + nested + "[" + repeated("1,", 50'000) + "]" + repeated("}", 60))
            .find("take more than 32 MiB") != std::string::npos);
  // As large as a config may be, with paths as they are.
  CHECK(failure("model:\n  layers:\n" + repeated("    - {name: a, units: 10}\n", 19'000)).empty());
}

TEST_CASE("load: an environment variable that is long, or no text, is refused where it is named") {
  LoadOptions options;
  options.environment = [](std::string_view name) -> std::optional<std::string> {
    if (name == "BYTES") return "a\xff";
    return std::string(100'000, 'x');
  };
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "${env:LONG}";
  CHECK(failure("a: \"" + many + "\"\n", options) ==
        "c.yaml:1:4: a: error: is too long once the environment's variables are put in");
  std::string list = "a: [";
  for (int i = 0; i < 1000; ++i) list += "\"${env:LONG}\",";
  CHECK(failure(list + "]\n", options).find("is too long once") != std::string::npos);
  CHECK(failure("a: {b: \"${env:BYTES}\"}\n", options) ==
        "c.yaml:1:8: a.b: error: is not UTF-8 text once the environment's variables are put in");
}

TEST_CASE("load: the value of a setting stands nowhere but in its setting") {
  Diagnostics diagnostics;
  const Node value = load_value("{a: [1, x]}", "--set m={a: [1, x]}", diagnostics);
  CHECK(diagnostics.empty());
  CHECK(value.entries[0].value.items[1].text == "x");
  CHECK(value.entries[0].value.items[1].where == Where{"--set m={a: [1, x]}", 0, 0, ""});
  CHECK(load_value("", "--set m=", diagnostics).kind == Node::Kind::null);
  CHECK(load_value("${env:HOME}", "--set m", diagnostics).text == "${env:HOME}");
}

}  // namespace halfstep::config::testing
