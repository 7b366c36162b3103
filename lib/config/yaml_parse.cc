#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <sstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/yaml.h"
#include "core/printable.h"
#include "core/ranges.h"

namespace halfstep::config {
namespace {

constexpr std::size_t k_longest_name_shown = 100;

[[noreturn]] void reject(Where where, std::string message, std::string hint = {}) {
  throw UserError(ErrorKind::config, std::move(where), std::move(message), std::move(hint));
}

/// The size of a subtree.
struct Size {
  std::size_t nodes = 0;
  std::size_t bytes = 0;

  Size& operator+=(const Size& other) {
    nodes += other.nodes;
    bytes += other.bytes;
    return *this;
  }
};

/// The size of one value without its children, but with the file names in the two Where.
Size size_of_value(const Node& node) {
  return {1, sizeof(Node::Entry) + node.text.size() + 2 * node.where.file.size()};
}

Size size_of_tree(const Node& node) {
  Size size = size_of_value(node);
  for (const Node& item : node.items) size += size_of_tree(item);
  for (const Node::Entry& entry : node.entries) {
    size += size_of_tree(entry.value);
    size.bytes += entry.key.size();
  }
  return size;
}

/// The line of `text` with a number from 1; empty beyond the end.
std::string_view line_of(std::string_view text, int number) {
  for (; number > 1 && !text.empty(); --number) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return text.substr(0, text.find('\n'));
}

/// Whether the quote that `text` starts with is closed; yaml-cpp accepts the end of the text as a
/// closing quote.
bool is_closed(std::string_view text) {
  const char quote = text[0];
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\')
      ++i;
    else if (text[i] == quote && i + 1 < text.size() && text[i + 1] == quote && quote == '\'')
      ++i;
    else if (text[i] == quote)
      return true;
  }
  return false;
}

/// Builds the tree from the bottom up: a value joins its parent when it is complete.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& file, const Limits& limits, Diagnostics& diagnostics)
      : file_(file), limits_(limits), diagnostics_(diagnostics) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) {
      reject(location(mark),
             "a second document starts here, by '---' or by its indentation; a config is one "
             "document");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node;
    node.where = location(mark);
    // An absent value is found only at the next token; the position of the key is more useful.
    if (!open_.empty() && open_.back().key && mark.line + 1 != open_.back().key->where.line) {
      node.where = open_.back().key->where;
    }
    add(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = Node::scalar(value, location(mark));
    node.quoted = tag == "!" || is_text_tag(tag, node.where);
    if (tag == "!") last_quoted_ = node.where;
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) reject(location(mark), "an alias is inside its own anchor");
    count(size_of_tree(found->second), location(mark));
    attach(found->second, location(mark));
  }

  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& tag,
                       YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(Node::Kind::sequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { end(); }

  void OnMapStart(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(Node::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { end(); }

  std::optional<Node> take_root() { return std::move(root_); }
  const std::optional<Where>& last_quoted() const { return last_quoted_; }

 private:
  struct Key {
    std::string text;
    Where where;
    bool merge = false;
  };
  struct Open {
    Node node;
    YAML::anchor_t anchor = 0;
    std::optional<Key> key;                      ///< of a map: waits for its value
    std::unordered_map<std::string, int> lines;  ///< of the keys so far
    std::vector<Node> merged;                    ///< the maps named by `<<`, earlier ones first
    std::size_t merge_at = 0;                    ///< entries before `<<`
    int merge_line = 0;                          ///< of `<<`
  };

  Where location(const YAML::Mark& mark) const {
    return {file_, mark.line + 1, mark.column + 1, {}};
  }

  /// Whether a scalar's tag makes it text; other tags mean nothing here.
  static bool is_text_tag(const std::string& tag, const Where& where) {
    if (tag.empty() || tag == "?") return false;
    if (tag == "tag:yaml.org,2002:str") return true;
    reject(where,
           fmt::format("the tag '{}' has no meaning in a config",
                       truncated(tag, k_longest_name_shown)));
  }

  void count(const Size& size, const Where& where) {
    size_ += size;
    if (size_.nodes > limits_.nodes) {
      reject(where, fmt::format("the config has more than {} values", limits_.nodes));
    }
    if (size_.bytes > limits_.bytes) {
      reject(where,
             fmt::format("the config takes more than {} MiB with its aliases written out",
                         limits_.bytes >> 20U));
    }
  }

  void begin(Node::Kind kind,
             const YAML::Mark& mark,
             const std::string& tag,
             YAML::anchor_t anchor) {
    const Where where = location(mark);
    if (tag != "!") is_text_tag(tag.starts_with("tag:yaml.org,2002:") ? "" : tag, where);
    if (open_.size() >= static_cast<std::size_t>(limits_.depth)) {
      reject(where, fmt::format("the config is nested more than {} deep", limits_.depth));
    }
    if (needs_key()) reject(where, "a key must be a word, not a list or a map");
    Open open;
    open.node.kind = kind;
    open.node.where = where;
    count(size_of_value(open.node), where);
    open.anchor = anchor;
    open_.push_back(std::move(open));
  }

  void end() {
    Open open = std::move(open_.back());
    open_.pop_back();
    merge(open);
    // The start of the value was counted, and keys do not count as values.
    remember(open.node, open.anchor);
    attach(std::move(open.node), {});
  }

  bool needs_key() const {
    return !open_.empty() && open_.back().node.kind == Node::Kind::map && !open_.back().key;
  }

  void add(Node node, YAML::anchor_t anchor) {
    count(size_of_value(node), node.where);
    remember(node, anchor);
    attach(std::move(node), {});
  }

  void remember(const Node& node, YAML::anchor_t anchor) {
    if (anchor == 0) return;
    // The copy is stored in addition to the tree, so it counts as well.
    count(size_of_tree(node), node.where);
    anchors_[anchor] = node;
  }

  /// Attaches a complete value to its parent; `alias` is the position of an alias for it, if any.
  void attach(Node node, const Where& alias) {
    const Where& where = alias.line > 0 ? alias : node.where;
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == Node::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      if (node.kind != Node::Kind::scalar) {
        reject(where, "a key must be a word", "put quotes around it");
      }
      const bool is_merge = node.text == "<<" && !node.quoted;
      parent.key = Key{std::move(node.text), where, is_merge};
    } else {
      Key key = std::move(*parent.key);
      parent.key.reset();
      if (key.merge)
        add_merge(parent, key, std::move(node));
      else
        add_entry(parent, std::move(key), std::move(node));
    }
  }

  void add_entry(Open& parent, Key key, Node value) {
    const auto [first, is_new] = parent.lines.try_emplace(key.text, key.where.line);
    if (!is_new) return report_duplicate(key, first->second);
    parent.node.entries.push_back({std::move(key.text), std::move(key.where), std::move(value)});
  }

  void report_duplicate(const Key& key, int first_line) {
    diagnostics_.error(key.where,
                       fmt::format("duplicate key '{}' (first at line {})",
                                   truncated(key.text, k_longest_name_shown),
                                   first_line));
  }

  void add_merge(Open& parent, const Key& key, Node value) {
    if (parent.merge_line > 0) return report_duplicate(key, parent.merge_line);
    parent.merge_line = key.where.line;
    parent.merge_at = parent.node.entries.size();
    if (value.kind == Node::Kind::sequence) {
      parent.merged = std::move(value.items);
    } else {
      parent.merged.push_back(std::move(value));
    }
    for (const Node& map : parent.merged) {
      if (map.kind != Node::Kind::map) reject(key.where, "'<<' takes a map or a list of maps");
    }
  }

  /// Inserts the merged maps' entries at the position of `<<`, except for keys that exist already.
  static void merge(Open& open) {
    std::vector<Node::Entry> inherited;
    for (Node& map : open.merged) {
      for (Node::Entry& entry : map.entries) {
        const bool is_new = open.lines.try_emplace(entry.key, entry.where.line).second;
        if (is_new) inherited.push_back(std::move(entry));
      }
    }
    open.node.entries.insert(open.node.entries.begin() + static_cast<std::ptrdiff_t>(open.merge_at),
                             std::make_move_iterator(inherited.begin()),
                             std::make_move_iterator(inherited.end()));
  }

  const std::string& file_;
  Limits limits_;
  Diagnostics& diagnostics_;
  Size size_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::optional<Node> root_;
  std::optional<Where> last_quoted_;
};

/// The message of yaml-cpp's exception, with a hint where the cause is known.
[[noreturn]] void fail_syntax(const YAML::Exception& error,
                              std::string_view text,
                              const std::string& file) {
  const Where where{file, error.mark.line + 1, error.mark.column + 1, {}};
  for (int line = std::max(1, where.line - 1); line <= where.line + 1; ++line) {
    const std::string_view found = line_of(text, line);
    const std::size_t first = found.find_first_not_of(' ');
    if (first != std::string_view::npos && found[first] == '\t') {
      reject({file, line, static_cast<int>(first) + 1, {}}, "a tab cannot indent; use spaces");
    }
  }
  const std::string_view line = line_of(text, where.line);
  std::string hint;
  if (line.find("${") != std::string_view::npos && line.find('{') != line.find("${") + 1) {
    hint = "inside { } or [ ], put quotes around \"${env:NAME}\"";
  } else if (error.msg == "unknown token") {
    hint = "text that starts with @ or ` needs quotes";
  } else if (error.msg == "illegal map value") {
    hint = "text with ': ' in it needs quotes";
  }
  struct Reworded {
    std::string_view message, words;
  };
  static constexpr std::array k_reworded{
      Reworded{"bad file", "nested too deep"},
      Reworded{"end of sequence flow not found", "the ] of a list is not found"},
      Reworded{"end of map flow not found", "the } of a map is not found"}};
  const Reworded* reworded = find_or_null(k_reworded, error.msg, &Reworded::message);
  std::string what = reworded != nullptr ? std::string(reworded->words) : error.msg;
  // yaml-cpp 0.8 appends the anchor's name, which is at `where` in the file.
  constexpr std::string_view k_no_anchor = "the referenced anchor is not defined";
  if (what.starts_with(k_no_anchor)) what = k_no_anchor;
  reject(where, fmt::format("not valid YAML: {}", what), hint);
}

}  // namespace

std::optional<Node> parse_yaml(std::string_view text,
                               const std::string& file,
                               const Limits& limits,
                               Diagnostics& diagnostics) {
  TreeBuilder builder(file, limits, diagnostics);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    fail_syntax(error, text, file);
  }
  if (const std::optional<Where>& quoted = builder.last_quoted()) {
    std::string_view rest = text;
    const std::string_view line = line_of(rest, quoted->line);
    rest.remove_prefix(static_cast<std::size_t>(line.data() - rest.data()));
    const auto column = static_cast<std::size_t>(quoted->column - 1);
    const bool is_quote = column < rest.size() && (rest[column] == '"' || rest[column] == '\'');
    if (is_quote && !is_closed(rest.substr(column))) reject(*quoted, "this quote is never closed");
  }
  return builder.take_root();
}

}  // namespace halfstep::config
