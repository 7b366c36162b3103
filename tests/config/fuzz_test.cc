// Random damage to valid configs: whatever comes out, it is read, or refused with a message.

#include <doctest/doctest.h>

#include <random>

#include "config/merge.h"
#include "config/printer.h"
#include "config/yaml.h"
#include "core/printable.h"
#include "support.h"

namespace halfstep::config::testing {
namespace {

/// One random change to a text.
void damage(std::string& text, std::mt19937& random) {
  static constexpr std::string_view k_bits[] = {
      "{",     "}",    "[",  "]",     ":",  ": ",       "- ",       "\n",     "\n  ",
      "\t",    "'",    "\"", "&a ",   "*a", "<<: ",     "#",        "null",   "~",
      "!x ",   "|",    "? ", "1e999", "-1", "0",        "${env:X}", "${",     "---\n",
      "...\n", "\x80", "%",  "@",     ",",  "\xC3\xA9", "\\",       "type: ", "yes"};
  const auto below = [&random](std::size_t n) { return n == 0 ? 0 : random() % n; };
  const std::size_t at = below(text.size() + 1);
  switch (below(4)) {
    case 0:
      text.insert(at, k_bits[below(std::size(k_bits))]);
      break;
    case 1:
      text.erase(at, 1 + below(8));
      break;
    case 2:
      text.insert(at, text.substr(below(text.size()), 1 + below(40)));
      break;
    default:
      if (at < text.size()) text[at] = static_cast<char>(random() % 256);
  }
}

/// Further properties of a config that was read without problems.
void check_round_trip(const RunSpec& spec) {
  const std::string text = print(spec);
  CAPTURE(text);
  const std::vector<std::string> found = check_text(text, "printed.yaml");
  CHECK(found == std::vector<std::string>{});
  if (found.empty()) CHECK(print(spec_of(node_of(text))) == text);
}

}  // namespace

TEST_CASE("fuzz: a damaged config is read or refused, never worse") {
  std::mt19937 random(20240229);
  int read = 0;
  int refused = 0;
  for (const std::filesystem::path& file : files_of("good")) {
    const std::string good = contents(file);
    for (int round = 0; round < 1000; ++round) {
      std::string text = good;
      const std::size_t count = 1 + random() % 4;
      for (std::size_t i = 0; i < count; ++i) damage(text, random);
      CAPTURE(text);
      const std::vector<std::string> found = check_text(text, "c.yaml");
      for (const std::string& line : found) CHECK(line.find("error: ") != std::string::npos);
      if (found.empty()) {
        ++read;
        check_round_trip(spec_of(node_of(text)));
      } else {
        ++refused;
      }
    }
  }
  // Both ways must be taken, or the damage is of the wrong size.
  CHECK(read > 100);
  CHECK(refused > 100);
}

TEST_CASE("fuzz: any text in any place is printed so that it reads back") {
  std::mt19937 random(20240302);
  static constexpr std::string_view k_letters = "ab1e.-+:?,[]{}#&*!|>'\"%@`~$= \n\t\\/<0x_";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const std::size_t size = random() % 7;
    for (std::size_t i = 0; i < size; ++i) text += k_letters[random() % k_letters.size()];
    CAPTURE(text);
    Node value = Node::scalar(text);
    value.quoted = resolves_to_non_string(text);
    Node list;
    list.kind = Node::Kind::sequence;
    list.items = {value, value};
    const Node root = Node::map({{"v", {}, value}, {"w" + text, {}, value}, {text, {}, list}});
    const std::string yaml = emit_yaml(root);
    CAPTURE(yaml);
    CHECK(same(node_of(yaml), root));
  }
}

TEST_CASE("fuzz: every character is printed so that it reads back, and none steers a terminal") {
  // All of the first plane that mean something, some of the rest.
  const auto step = [](char32_t code) { return code < 0x3100U || code >= 0xFE00U ? 1U : 97U; };
  for (char32_t code = 0; code <= 0x10FFFF; code += code < 0x10050 ? step(code) : 4096U) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text = "a";
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else if (code < 0x800) {
      text += {static_cast<char>(0xC0U | code >> 6U), static_cast<char>(0x80U | (code & 0x3FU))};
    } else if (code < 0x10000) {
      text += {static_cast<char>(0xE0U | code >> 12U),
               static_cast<char>(0x80U | (code >> 6U & 0x3FU)),
               static_cast<char>(0x80U | (code & 0x3FU))};
    } else {
      text += {static_cast<char>(0xF0U | code >> 18U),
               static_cast<char>(0x80U | (code >> 12U & 0x3FU)),
               static_cast<char>(0x80U | (code >> 6U & 0x3FU)),
               static_cast<char>(0x80U | (code & 0x3FU))};
    }
    CAPTURE(static_cast<std::uint32_t>(code));
    const Node root = Node::map({{"v", {}, Node::scalar(text)}, {text, {}, Node::scalar("w")}});
    const std::string yaml = emit_yaml(root);
    CHECK(printable_lines(yaml) == yaml);
    CHECK(same(node_of(yaml), root));
  }
}

TEST_CASE("fuzz: damaged settings are applied or refused, never worse") {
  std::mt19937 random(20240301);
  const Node good = node_of(contents(folder() / "good" / "graph.yaml"));
  static constexpr std::string_view k_settings[] = {"training.epochs=3",
                                                    "model.nodes.c1.filters=8",
                                                    "precision.overrides[0].dtype=float16",
                                                    "optimizer.learning_rate=1e-3",
                                                    "metrics=[accuracy]"};
  for (int round = 0; round < 3000; ++round) {
    std::string argument(k_settings[random() % std::size(k_settings)]);
    damage(argument, random);
    CAPTURE(argument);
    const auto kind = static_cast<Override::Kind>(random() % 3);
    try {
      Node node = good;
      Diagnostics diagnostics;
      apply(node, Override::parse(kind, "--set", argument), diagnostics);
      parse_run_spec(node, diagnostics);
    } catch (const UserError& error) {
      CHECK(error.kind() == ErrorKind::config);
    }
  }
}

}  // namespace halfstep::config::testing
