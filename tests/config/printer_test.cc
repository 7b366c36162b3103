#include "config/printer.h"

#include <doctest/doctest.h>

#include "config/node.h"
#include "config/yaml.h"
#include "support.h"

namespace halfstep::config::testing {
namespace {

Node text_node(std::string_view text) {
  Node value = Node::scalar(std::string(text));
  value.quoted = resolves_to_non_string(text);
  return Node::map({{"v", {}, std::move(value)}});
}

struct Small {
  std::optional<std::string> word;
  double rate = 0.5;
  Pair pair{2, 2};
  std::vector<std::string> names;
  std::vector<NamedExtents> inputs;
  Typed typed;
  std::int64_t needed = 3;

  void fields(Fields& f) {
    f.field("word", word, {});
    f.field("rate", rate, {});
    f.field("pair", pair, {});
    f.field("names", names, {});
    f.field("inputs", inputs, {});
    f.field("typed", typed, {}, {});
    f.field("needed", needed, {.required = true});
  }
};

}  // namespace

TEST_CASE("emit: any text reads back as the same text") {
  static constexpr std::string_view k_texts[] = {"plain",
                                                 "two words",
                                                 "null",
                                                 "~",
                                                 "",
                                                 "true",
                                                 "yes",
                                                 "No",
                                                 "010",
                                                 "1e-3",
                                                 "1/255",
                                                 "-",
                                                 "- x",
                                                 "a: b",
                                                 "a:",
                                                 "a #b",
                                                 "#b",
                                                 "[x",
                                                 "{x",
                                                 "&x",
                                                 "*x",
                                                 "!x",
                                                 "|",
                                                 ">",
                                                 "'q'",
                                                 "\"q\"",
                                                 "%x",
                                                 "@x",
                                                 "`x",
                                                 "a\\b",
                                                 "a\nb",
                                                 "\ttab",
                                                 " lead",
                                                 "trail ",
                                                 "a  b",
                                                 "${env:X}",
                                                 "$${x}",
                                                 "$x",
                                                 "---",
                                                 "...",
                                                 "..x",
                                                 "../data/x.npz",
                                                 "./x",
                                                 "x, y",
                                                 "re:^n[0-9]+$",
                                                 "é ü",
                                                 "\x7F",
                                                 "\xC2\x85",
                                                 "\xE2\x80\xA8x",
                                                 "2001-01-01",
                                                 "12:30",
                                                 "0x1F",
                                                 ".5",
                                                 ".inf",
                                                 "=",
                                                 "<<",
                                                 "?",
                                                 ":",
                                                 "a'b",
                                                 "C:\\x: y",
                                                 "\xEF\xBB\xBF"
                                                 "x",
                                                 "\xF0\x9F\x98\x80",
                                                 "y",
                                                 "a\rb"};
  for (const std::string_view text : k_texts) {
    CAPTURE(text);
    const Node root = text_node(text);
    const std::string yaml = emit_yaml(root);
    CAPTURE(yaml);
    CHECK(lines(yaml).size() == 1);
    const Node back = node_of(yaml);
    REQUIRE(back.find("v") != nullptr);
    CHECK(back.find("v")->kind == Node::Kind::scalar);
    CHECK(back.find("v")->text == text);
    CHECK(same(back, root));

    Node items;
    items.kind = Node::Kind::sequence;
    items.items = {root.entries[0].value, root.entries[0].value};
    const Node list = Node::map({{std::string(text), {}, std::move(items)}});
    const std::string flow = emit_yaml(list);
    CAPTURE(flow);
    CHECK(same(node_of(flow), list));
  }
}

TEST_CASE("emit: plain where plain is safe") {
  for (const std::string_view text :
       {"data/mnist.npz", "../data", "re:^n[0-9]+$", "mixed_float16", "two words", "a'b"}) {
    CAPTURE(text);
    CHECK(emit_yaml(text_node(text)) == "v: " + std::string(text) + "\n");
  }
  // In quotes a number would be a text.
  for (const std::string_view text : {"-1", "-.5e3"}) {
    const Node map = Node::map({{"v", {}, Node::scalar(std::string(text))}});
    CHECK(emit_yaml(map) == "v: " + std::string(text) + "\n");
  }
}

TEST_CASE("emit: nesting is in blocks, lists of scalars on one line") {
  const std::string yaml =
      "a:\n"
      "  b: 1\n"
      "  c: [1, [2, x], null]\n"
      "d:\n"
      "  - e: 1\n"
      "    f:\n"
      "      g: []\n"
      "  - x\n"
      "  - - h: {}\n"
      "      i: 2\n"
      "    - y\n";
  CHECK(emit_yaml(node_of(yaml)) == yaml);
  CHECK(emit_yaml(Node()) == "{}\n");
}

TEST_CASE("emit: origins name file and line, setting, or default") {
  Node root = node_of("a: 1\nb: [2]\n");
  root.find("b")->where = {"--set b=[2]", 0, 0, "b"};
  root.entries.push_back({"c", {}, Node::scalar("3")});
  const std::string yaml = emit_yaml(root, true);
  CHECK(yaml == "a: 1  # c.yaml:1\nb: [2]  # --set b=[2]\nc: 3  # default\n");
  CHECK(same(node_of(yaml), root));
}

TEST_CASE("printer: every type of field prints as it is written") {
  Small value;
  value.word = "no";
  value.rate = 1e-7;
  value.names = {"json", "csv"};
  value.inputs = {{"image", {28, 28, 1}}};
  value.typed.type = "sgd";
  CHECK(emit_yaml(to_node(value)) ==
        "word: \"no\"\nrate: 1e-7\npair: 2\nnames: [json, csv]\n"
        "inputs:\n  image: [28, 28, 1]\ntyped: sgd\nneeded: 3\n");
  value.word.reset();
  value.pair = {2, 3};
  value.typed.node = node_of("momentum: 0.9");
  CHECK(emit_yaml(to_node(value)) ==
        "word: null\nrate: 1e-7\npair: [2, 3]\nnames: [json, csv]\n"
        "inputs:\n  image: [28, 28, 1]\ntyped:\n  type: sgd\n  momentum: 0.9\nneeded: 3\n");
}

TEST_CASE("printer: against defaults only differences and required fields remain") {
  const Node defaults = to_node(Small());
  Small value;
  CHECK(emit_yaml(to_node(value, &defaults)) == "needed: 3\n");
  value.pair = {1, 2};
  CHECK(emit_yaml(to_node(value, &defaults)) == "pair: [1, 2]\nneeded: 3\n");
}

}  // namespace halfstep::config::testing
