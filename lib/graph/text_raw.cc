#include "graph/text_raw.h"

#include <fmt/core.h>

#include <charconv>

namespace halfstep::graph {
namespace {

constexpr int k_deepest_list = 4;
constexpr std::size_t k_max_attrs = 1000;  ///< of a node
/// Limit on the names, references and values of a text: each takes about 200 bytes of memory.
constexpr std::size_t k_max_items = 2'000'000;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '/' || c == '-' || c == '>' || c == '\\';
}

/// An error in a line, thrown to abandon the line.
struct LineError {
  std::size_t at;
  std::string message;
};

/// One line, scanned left to right. `items_left` is the number of items that may still be read.
class Line {
 public:
  Line(std::string_view text, std::string_view file, int number, std::size_t& items_left)
      : text_(text), file_(file), number_(number), items_left_(items_left) {}

  Where where(std::size_t at) const {
    return {std::string(file_), number_, static_cast<int>(at) + 1, {}};
  }
  /// The position of an item that starts here.
  Where item() {
    if (items_left_ == 0) fail(fmt::format("a graph has at most {} names and values", k_max_items));
    --items_left_;
    return where(at());
  }
  std::size_t at() {
    skip();
    return at_;
  }
  bool done() { return at() == text_.size() || text_[at_] == '#'; }
  bool take(char c) {
    if (at() == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, std::string_view after) {
    if (!take(c)) fail(fmt::format("expected '{}' {}, got {}", c, after, rest()));
  }
  [[noreturn]] void fail(std::string message) const { throw LineError{at_, std::move(message)}; }

  /// The next token, for messages.
  std::string rest() {
    if (done()) return "the end of the line";
    const std::size_t end = text_.find_first_of(" \t,()[]{}=@#", at_ + 1);
    return fmt::format("'{}'", printable(text_.substr(at_, end - at_)));
  }

  RawName name(std::string_view what) {
    RawName result{{}, item()};
    if (at_ < text_.size() && text_[at_] == '"') {
      result.name = quoted();
      if (result.name.empty()) fail(fmt::format("{} is empty", what));
      return result;
    }
    const std::size_t start = at_;
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    if (at_ == start) fail(fmt::format("expected {}, got {}", what, rest()));
    result.name = std::string(text_.substr(start, at_ - start));
    return result;
  }

  RawReference reference() {
    RawReference result;
    result.where = item();
    result.control = take('^');
    result.name = name("the name of a node").name;
    if (at_ < text_.size() && text_[at_] == ':') {
      ++at_;
      if (result.control) fail("a control input has no port");
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), result.port);
      if (error != std::errc() || result.port < 0) fail("expected a port number after ':'");
      at_ = static_cast<std::size_t>(end - text_.data());
    }
    return result;
  }

  std::string device() {
    const std::size_t start = at();
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '{' &&
           text_[at_] != '#') {
      ++at_;
    }
    if (at_ == start) fail("expected a device after '@'");
    return std::string(text_.substr(start, at_ - start));
  }

  RawValue value(int depth = 0) {
    RawValue result;
    result.where = item();
    const std::size_t start = at_;
    if (start < text_.size() && text_[start] == '"') {
      result.kind = RawValue::Kind::text;
      result.text = quoted();
      return result;
    }
    if (take('[')) {
      if (depth == k_deepest_list) fail("lists are nested too deeply");
      result.kind = RawValue::Kind::list;
      while (!take(']')) {
        result.items.push_back(value(depth + 1));
        if (!take(',') && (at() == text_.size() || text_[at_] != ']')) {
          fail(fmt::format("expected ',' or ']' in a list, got {}", rest()));
        }
      }
      result.text = std::string(text_.substr(start, at_ - start));
      return result;
    }
    while (at_ < text_.size() && (is_name_char(text_[at_]) || text_[at_] == '+' ||
                                  text_[at_] == ':' || text_[at_] == '?')) {
      ++at_;
    }
    if (at_ == start) fail(fmt::format("expected a value, got {}", rest()));
    result.text = std::string(text_.substr(start, at_ - start));
    const char first = result.text[0];
    const char second = result.text.size() > 1 ? result.text[1] : ' ';
    const auto digit = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
    const bool number = digit(first) || ((first == '-' || first == '+') && digit(second));
    if (number || result.text == "inf" || result.text == "-inf" || result.text == "nan") {
      result.kind = RawValue::Kind::number;
    }
    return result;
  }

  std::vector<RawAttr> attrs() {
    std::vector<RawAttr> result;
    expect('{', "before attributes");
    while (!take('}')) {
      if (result.size() == k_max_attrs) fail(fmt::format("more than {} attributes", k_max_attrs));
      const RawName key = name("the name of an attribute");
      expect(':', fmt::format("after '{}'", key.name));
      result.push_back({key.name, value(), key.where});
      if (!take(',') && (at() == text_.size() || text_[at_] != '}')) {
        fail(fmt::format("expected ',' or '}}' after an attribute, got {}", rest()));
      }
    }
    return result;
  }

  void end() {
    if (!done()) fail(fmt::format("unexpected {}", rest()));
  }

 private:
  static std::string printable(std::string_view text) {
    std::string result(text.substr(0, 40));
    for (char& c : result) {
      if (c < ' ' || c > '~') c = '?';
    }
    return result;
  }

  std::string quoted() {
    std::string result;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        result += text_[at_];
        continue;
      }
      if (++at_ == text_.size()) break;
      switch (text_[at_]) {
        case 'n':
          result += '\n';
          break;
        case 't':
          result += '\t';
          break;
        default:
          result += text_[at_];
      }
    }
    if (at_ >= text_.size()) fail("the string does not end");
    ++at_;
    return result;
  }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  std::string_view text_;
  std::string_view file_;
  int number_;
  std::size_t& items_left_;
  std::size_t at_ = 0;
};

/// Parses `name = Op(inputs) {attributes} @device` from after the equals sign.
void read_node(Line& line, RawName name, RawGraph& graph) {
  RawNode node;
  node.name = std::move(name.name);
  node.where = std::move(name.where);
  node.op = line.name("the name of an op").name;
  if (line.take('(')) {
    while (!line.take(')')) {
      node.inputs.push_back(line.reference());
      if (line.take(',')) continue;
      line.expect(')', "after the inputs");
      break;
    }
  }
  bool attrs = false;
  while (!line.done()) {
    if (line.take('@')) {
      if (!node.device.empty()) line.fail("two devices");
      node.device = line.device();
    } else {
      if (attrs) line.fail("two lists of attributes");
      node.attrs = line.attrs();
      attrs = true;
    }
  }
  graph.nodes.push_back(std::move(node));
}

void read_names(Line& line, std::string_view what, std::vector<RawName>& names) {
  while (!line.done()) {
    names.push_back(line.name(what));
    line.take(',');
  }
}

void read_no_kernel(Line& line, RawGraph& graph) {
  const RawName op = line.name("the name of an op");
  do {
    graph.no_kernel.push_back({op, line.name("a dtype")});
    line.take(',');
  } while (!line.done());
}

void read_line(Line& line, RawGraph& graph) {
  if (line.done()) return;
  const std::size_t start = line.at();
  RawName first = line.name("the name of a node");
  if (line.take('=')) {
    read_node(line, std::move(first), graph);
  } else if (first.name == "preserve") {
    read_names(line, "the name of a node", graph.preserved);
  } else if (first.name == "function") {
    graph.functions.push_back(line.name("the name of a function"));
    line.take(',');
    read_names(line, "the name of a function", graph.functions);
  } else if (first.name == "no_kernel") {
    read_no_kernel(line, graph);
  } else if (first.name == "variable") {
    RawVariable variable{line.name("the name of a variable"), {}};
    variable.attrs = line.attrs();
    graph.variables.push_back(std::move(variable));
  } else if (first.name == "result") {
    RawResult result{line.name("the name of a result"), {}};
    result.value = line.reference();
    graph.results.push_back(std::move(result));
  } else {
    throw LineError{start,
                    fmt::format("expected '= Op(...)' after '{}', or one of preserve, no_kernel, "
                                "function, variable, result",
                                first.name)};
  }
  line.end();
}

}  // namespace

RawGraph read_raw(std::string_view text, std::string_view file_name, Diagnostics& diagnostics) {
  RawGraph graph;
  std::size_t items_left = k_max_items;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    Line line(text.substr(0, end), file_name, number, items_left);
    if (items_left == 0 || diagnostics.problems().size() >= k_max_problems) {
      diagnostics.error(line.where(0), "this line and those that follow were not read");
      break;
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    try {
      read_line(line, graph);
    } catch (const LineError& error) {
      diagnostics.error(line.where(error.at), error.message);
    }
  }
  return graph;
}

bool is_bare_name(std::string_view name) {
  if (name.empty()) return false;
  for (char c : name) {
    if (!is_name_char(c)) return false;
  }
  return true;
}

}  // namespace halfstep::graph
