#include "config/merge.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "config/node.h"
#include "config/yaml.h"
#include "support.h"

namespace halfstep::config::testing {
namespace {

std::string merged(std::string_view base, std::string_view over) {
  Node node = node_of(base);
  overlay(node, node_of(over));
  return emit_yaml(node);
}

struct Result {
  std::string yaml;
  std::vector<std::string> problems;
};

Result change(std::string_view base, Override::Kind kind, std::string_view argument) {
  constexpr std::string_view k_flags[] = {"--set", "--set-str", "--unset"};
  Node node = node_of(base);
  Diagnostics diagnostics;
  apply(node, Override::parse(kind, k_flags[static_cast<int>(kind)], argument), diagnostics);
  return {emit_yaml(node), problems(diagnostics)};
}

Result set(std::string_view base, std::string_view argument) {
  return change(base, Override::Kind::set, argument);
}

}  // namespace

TEST_CASE("merge: maps merge, lists and scalars and null replace") {
  struct Case {
    std::string_view name, base, over, want;
  };
  static constexpr Case k_cases[] = {
      {"maps", "a: {u: 1, v: 1}\nb: 1", "a: {v: 2, w: 3}", "a:\n  u: 1\n  v: 2\n  w: 3\nb: 1\n"},
      {"lists", "a: [1, 2, 3]", "a: [4]", "a: [4]\n"},
      {"scalars", "a: 1", "a: two", "a: two\n"},
      {"null", "a: {x: 1}", "a: null", "a: null\n"},
      {"map over a scalar", "a: 1", "a: {x: 2}", "a:\n  x: 2\n"},
      {"new keys go last", "b: 1", "a: 1", "b: 1\na: 1\n"},
      {"same type merges",
       "o: {type: sgd, rate: 1, m: 2}",
       "o: {type: sgd, rate: 3}",
       "o:\n  type: sgd\n  rate: 3\n  m: 2\n"},
      {"another type replaces",
       "o: {type: sgd, rate: 1}",
       "o: {type: adam, beta: 2}",
       "o:\n  type: adam\n  beta: 2\n"},
      {"fields over a bare name",
       "optimizer: sgd",
       "optimizer: {momentum: 0.9}",
       "optimizer:\n  type: sgd\n  momentum: 0.9\n"},
      {"fields over a bare number",
       "precision: {loss_scale: 1024}",
       "precision: {loss_scale: {max: 4096}}",
       "precision:\n  loss_scale:\n    mode: fixed\n    initial: 1024\n    max: 4096\n"},
      {"a device's name leaves its threads",
       "device: {kind: cuda, index: 1, threads: 4}",
       "device: cpu",
       "device:\n  kind: cpu\n  index: 0\n  threads: 4\n"},
      {"nodes remove layers",
       "model: {input: [3], layers: [a]}",
       "model: {inputs: {x: [3]}, nodes: {a: 1}, outputs: [a]}",
       "model:\n  inputs:\n    x: [3]\n  nodes:\n    a: 1\n  outputs: [a]\n"},
      {"layers remove nodes",
       "model: {inputs: {x: [3]}, nodes: {a: 1}, outputs: [a]}",
       "model: {input: [3], layers: [a]}",
       "model:\n  input: [3]\n  layers: [a]\n"},
      {"a named data set removes a path",
       "data: {format: idx, path: x, scale: 1}",
       "data: {name: mnist}",
       "data:\n  scale: 1\n  name: mnist\n"},
      {"a path removes a named data set",
       "data: {name: mnist, scale: 1}",
       "data: {format: idx, path: x}",
       "data:\n  scale: 1\n  format: idx\n  path: x\n"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.name);
    CHECK(merged(c.base, c.over) == c.want);
  }
}

TEST_CASE("merge: each value remembers its file, and paths fit the merged tree") {
  Diagnostics diagnostics;
  Node node = load_text("a: {x: 1}\n", "one.yaml", diagnostics);
  overlay(node, load_text("b: 0\na: {x: 2, y: [{z: 5}]}\n", "two.yaml", diagnostics));
  CHECK(find_path(node, "a.x")->where == Where{"two.yaml", 2, 8, "a.x"});
  CHECK(find_path(node, "a")->where == Where{"one.yaml", 1, 4, "a"});
  CHECK(find_path(node, "a.y[0].z")->where.path == "a.y[0].z");
}

TEST_CASE("set: paths lead through maps and lists, and make what is missing") {
  struct Case {
    std::string_view base, argument, want;
  };
  static constexpr Case k_cases[] = {
      {"a: 1", "a=2", "a: 2\n"},
      {"a: 1", "b.c.d=2", "a: 1\nb:\n  c:\n    d: 2\n"},
      {"a: 1", "a=[1,2]", "a: [1, 2]\n"},
      {"a: 1", "a={b: 1e-3}", "a:\n  b: 1e-3\n"},
      {"a: 1", "a=b=c", "a: b=c\n"},
      {"a: 1", "a=", "a: null\n"},
      {"a: null", "a.b=1", "a:\n  b: 1\n"},
      {"a: 1", "a='5'", "a: \"5\"\n"},
      {"a: [1, 2]", "a[1]=3", "a: [1, 3]\n"},
      {"l: [{name: x, u: 1}, {name: y, u: 2}]",
       "l[y].u=3",
       "l:\n  - name: x\n    u: 1\n  - name: y\n    u: 3\n"},
      {"l: [{name: x, u: 1}]",
       "l[0].dtype=float32",
       "l:\n  - name: x\n    u: 1\n    dtype: float32\n"},
      {"l: [{name: \"1\"}, {name: \"0\"}]",
       "l[0].u=3",
       "l:\n  - name: \"1\"\n  - name: \"0\"\n    u: 3\n"},
      {"m: {a.b: 1}", "m[a.b]=2", "m:\n  a.b: 2\n"},
      {"optimizer: adam",
       "optimizer.learning_rate=1",
       "optimizer:\n  type: adam\n  learning_rate: 1\n"},
      {"optimizer: {type: sgd, momentum: 1}", "optimizer=adam", "optimizer: adam\n"},
      {"device: cuda:2", "device.threads=3", "device:\n  kind: cuda\n  index: 2\n  threads: 3\n"},
      {"device: {kind: cpu, threads: 3}",
       "device=cuda:1",
       "device:\n  kind: cuda\n  threads: 3\n  index: 1\n"},
      {"data: {format: idx, path: x}", "data.name=mnist", "data:\n  name: mnist\n"},
      {"data: {format: text, path: x, text: {length: 9}, test_split: 0.1}",
       "data.name=mnist",
       "data:\n  name: mnist\n"},
      {"data: {name: x}", "data.name=mnist", "data:\n  name: mnist\n"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.argument);
    const Result result = set(c.base, c.argument);
    CHECK(result.problems.empty());
    CHECK(result.yaml == c.want);
  }
}

TEST_CASE("set-str takes the value as it stands") {
  for (const std::string_view value : {"%@#=", "null", "1", "[a", "", "a: b", "${env:HOME}"}) {
    CAPTURE(value);
    Node node = node_of("a: 1");
    Diagnostics diagnostics;
    apply(node,
          Override::parse(Override::Kind::set_text, "--set-str", "a=" + std::string(value)),
          diagnostics);
    CHECK(diagnostics.empty());
    CHECK(node.find("a")->kind == Node::Kind::scalar);
    CHECK(node.find("a")->text == value);
  }
}

TEST_CASE("set-str refuses what no config file can hold") {
  Node node = node_of("a: 1");
  Diagnostics diagnostics;
  apply(node, Override::parse(Override::Kind::set_text, "--set-str", "a=caf\xe9"), diagnostics);
  CHECK(problems(diagnostics) ==
        std::vector<std::string>{"--set-str a=caf\\xe9: error: the value is not UTF-8 text, so no "
                                 "config can hold it"});
  CHECK(node.find("a")->text == "1");
}

TEST_CASE("set: a long list does not carry its whole setting with every item") {
  std::string list = "a=[1";
  for (int i = 0; i < 20'000; ++i) list += ",1";
  const Override change = Override::parse(Override::Kind::set, "--set", list + "]");
  CHECK(change.origin.size() < 300);
  Node node = node_of("a: 1");
  Diagnostics diagnostics;
  apply(node, change, diagnostics);
  CHECK(diagnostics.empty());
  CHECK(node.find("a")->items.size() == 20'001);
  CHECK(node.find("a")->items[7].where.file == change.origin);
}

TEST_CASE("unset removes a key or an item, and the paths behind it move up") {
  CHECK(change("a: {b: 1, c: 2}", Override::Kind::unset, "a.b").yaml == "a:\n  c: 2\n");
  CHECK(change("a: [1, 2, 3]", Override::Kind::unset, "a[1]").yaml == "a: [1, 3]\n");
  CHECK(change("l: [{name: x}, {name: y}]", Override::Kind::unset, "l[x]").yaml ==
        "l:\n  - name: y\n");
  Node node = node_of("l: [1, 2]");
  Diagnostics diagnostics;
  apply(node, Override::parse(Override::Kind::unset, "--unset", "l[0]"), diagnostics);
  CHECK(node.find("l")->items[0].where.path == "l[0]");
}

TEST_CASE("unset: what another way of saying the same has removed may be removed again") {
  Node node = node_of("data: {name: mnist}");
  Diagnostics diagnostics;
  apply(node, Override::parse(Override::Kind::set, "--set", "data.path=x"), diagnostics);
  apply(node, Override::parse(Override::Kind::unset, "--unset", "data.name"), diagnostics);
  CHECK(problems(diagnostics).empty());
  CHECK(emit_yaml(node) == "data:\n  path: x\n");
}

TEST_CASE("set: a path that leads nowhere is an error that says why") {
  struct Case {
    Override::Kind kind;
    std::string_view base, argument, want;
  };
  constexpr Override::Kind k_set = Override::Kind::set;
  constexpr Override::Kind k_unset = Override::Kind::unset;
  static constexpr Case k_cases[] = {
      {k_set, "a: 1", "a.b=2", "--set a.b=2: error: a is not a map, so it has no 'b'"},
      {k_set, "a: [1]", "a[1]=2", "--set a[1]=2: error: a has 1 items, none is [1]"},
      {k_set,
       "a: 1",
       "b[0]=2",
       "--set b[0]=2: error: b is not set, so it has no item [0] (b=[...] sets the whole list)"},
      {k_set,
       "a: [{name: logits}]",
       "a[logit].b=2",
       "--set a[logit].b=2: error: a has 1 items, none is [logit] (did you mean 'logits'?)"},
      {k_set, "a: [1]", "a.b=2", "--set a.b=2: error: a is a list (a[b] names an item)"},
      {k_set,
       "a: 1",
       "a=@x",
       "--set a=@x: error: not valid YAML: unknown token (--set-str takes the value as it stands)"},
      {k_set,
       "a: 1",
       "a=[1",
       "--set a=[1: error: not valid YAML: the ] of a list is not found (--set-str takes the value "
       "as it stands)"},
      {k_set,
       "a: 1",
       "a={b: 1, b: 2}",
       "--set a={b: 1, b: 2}: error: duplicate key 'b' (first at line 1)"},
      {k_unset, "a: 1", "b", "--unset b: error: there is nothing to unset"},
      {k_unset, "a: 1", "b.c", "--unset b.c: error: there is nothing to unset"},
      {k_unset,
       "data: {name: mnist}",
       "data.nam",
       "--unset data.nam: error: there is nothing to unset (did you mean 'name'?)"},
      {k_unset,
       "data: {scale: 1}",
       "data.name",
       "--unset data.name: error: there is nothing to unset"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.argument);
    const Result result = change(c.base, c.kind, c.argument);
    REQUIRE(result.problems.size() == 1);
    CHECK(result.problems[0] == c.want);
  }
}

TEST_CASE("set: arguments that are no settings are refused") {
  for (const std::string_view argument :
       {"a", "=1", ".a=1", "a.=1", "a..b=1", "a[=1", "a[]=1", "[0]=1", "a[0]b=1"}) {
    CAPTURE(argument);
    CHECK_THROWS_AS(Override::parse(Override::Kind::set, "--set", argument), UserError);
  }
}

TEST_CASE("set: a flag's path that is none is an error, not a crash") {
  Node node = node_of("a: 1");
  Diagnostics diagnostics;
  apply(node, {Override::Kind::unset, "a..b", "", "--unset a..b"}, diagnostics);
  CHECK(problems(diagnostics) ==
        std::vector<std::string>{"--unset a..b: error: 'a..b' is not a config path "
                                 "(training.epochs and model.layers[0].units are)"});
}

TEST_CASE("set: messages about a value name the setting it came from") {
  Node node = node_of(contents(folder() / "good" / "graph.yaml"));
  Diagnostics diagnostics;
  apply(node, Override::parse(Override::Kind::set, "--set", "training.epochs=0"), diagnostics);
  apply(node, {Override::Kind::set, "device.threads", "many", "HALFSTEP_THREADS"}, diagnostics);
  apply(node, Override::parse(Override::Kind::set, "--set", "trainig.epochs=1"), diagnostics);
  parse_run_spec(node, diagnostics);
  const std::vector<std::string> expected{
      "--set training.epochs=0: training.epochs: error: must be at least 1, got 0",
      "HALFSTEP_THREADS: device.threads: error: must be a whole number, got 'many'",
      "--set trainig.epochs=1: error: unknown key 'trainig' (did you mean 'training'?)",
  };
  std::vector<std::string> found = problems(diagnostics);
  std::sort(found.begin(), found.end());
  std::vector<std::string> sorted = expected;
  std::sort(sorted.begin(), sorted.end());
  CHECK(found == sorted);
}

TEST_CASE("assemble: files in order, then settings in order") {
  const std::string file = (folder() / "good" / "graph.yaml").string();
  const std::string over = (folder() / "good" / "shorthand.yaml").string();
  const std::vector<std::string> files{file, over};
  const std::vector<Override> settings{
      {Override::Kind::set, "seed", "1", "--set seed=1"},
      {Override::Kind::set, "seed", "2", "--seed 2"},
  };
  Diagnostics diagnostics;
  std::vector<std::string> texts;
  LoadOptions options;
  options.texts = &texts;
  const Node node = assemble(files, settings, diagnostics, options);
  CHECK(texts == std::vector{contents(file), contents(over)});
  CHECK(diagnostics.empty());
  CHECK(node.find("seed")->text == "2");
  CHECK(node.find("seed")->where.file == "--seed 2");
  CHECK(find_path(node, "model.nodes") == nullptr);
  CHECK(find_path(node, "data.name") == nullptr);
  CHECK(find_path(node, "training.target")->where.file == file);
}

}  // namespace halfstep::config::testing
