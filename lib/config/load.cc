#include "config/load.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "core/files.h"
#include "core/printable.h"

namespace halfstep::config {
namespace {

[[noreturn]] void fail(Where where, std::string message, std::string hint = {}) {
  throw UserError(ErrorKind::config, std::move(where), std::move(message), std::move(hint));
}

std::string read_bytes(const std::string& path, std::size_t max_bytes) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    // A run directory has one.
    const std::string inside = (std::filesystem::path(path) / "config.yaml").string();
    fail({path, 0, 0, {}},
         "is a directory, not a config file",
         std::filesystem::exists(inside, ignored) ? fmt::format("did you mean {}?", inside) : "");
  }
  std::string text = read_file(path, max_bytes + 1, ErrorKind::config);
  if (text.size() > max_bytes) {
    fail({path, 0, 0, {}}, fmt::format("is larger than {} bytes: not a config", max_bytes));
  }
  return text;
}

/// Rejects text that is not valid UTF-8, which yaml-cpp would silently repair.
void check_text(std::string_view text, const std::string& file) {
  Where where{file, 1, 1, {}};
  while (!text.empty()) {
    const std::size_t size = first_character(text).bytes;
    const auto first = static_cast<unsigned char>(text[0]);
    const bool control = first < 0x20 && first != '\t' && first != '\n' && first != '\r';
    if (size == 0 || control) {
      fail(where, fmt::format("not a text file in UTF-8 (byte 0x{:02x})", first));
    }
    if (text[0] == '\n') {
      ++where.line;
      where.column = 1;
    } else {
      where.column += static_cast<int>(size);
    }
    text.remove_prefix(size);
  }
}

/// Interpolates the environment variables of every value. `bytes_left` is the number of bytes that
/// values may still add.
void interpolate_all(Node& node,
                     const Lookup& environment,
                     std::size_t& bytes_left,
                     Diagnostics& diagnostics) {
  for (Node& item : node.items) interpolate_all(item, environment, bytes_left, diagnostics);
  for (Node::Entry& entry : node.entries) {
    interpolate_all(entry.value, environment, bytes_left, diagnostics);
  }
  if (node.kind != Node::Kind::scalar || node.text.find("${") == std::string::npos) return;
  const std::size_t problems = diagnostics.problems().size();
  std::string text = interpolate(node.text, environment, bytes_left, node.where, diagnostics);
  if (diagnostics.problems().size() > problems) return;
  if (!is_utf8(text)) {
    diagnostics.error(node.where, "is not UTF-8 text once the environment's variables are put in");
    return;
  }
  bytes_left -= text.size();
  node.text = std::move(text);
  if (!node.quoted && (node.text.empty() || node.text == "null" || node.text == "~")) {
    node.kind = Node::Kind::null;
    node.text.clear();
  }
}

void set_origin(Node& node, const Where& where) {
  node.where = where;
  for (Node& item : node.items) set_origin(item, where);
  for (Node::Entry& entry : node.entries) {
    entry.where = where;
    set_origin(entry.value, where);
  }
}

}  // namespace

Node load_text(std::string_view text,
               const std::string& file,
               Diagnostics& diagnostics,
               const LoadOptions& options) {
  constexpr std::string_view k_byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(k_byte_order_mark)) text.remove_prefix(k_byte_order_mark.size());
  check_text(text, file);
  std::optional<Node> root = parse_yaml(text, file, options.limits, diagnostics);
  if (!root || root->kind == Node::Kind::null) {
    fail({file, 0, 0, {}}, "holds no config: it is empty");
  }
  if (root->kind != Node::Kind::map) {
    const bool list = root->kind == Node::Kind::sequence;
    fail(root->where,
         fmt::format("a config is a map of keys and values, not a {}", list ? "list" : "word"));
  }
  set_paths(*root);
  std::size_t bytes_left = options.limits.bytes;
  interpolate_all(*root, options.environment, bytes_left, diagnostics);
  return std::move(*root);
}

Node load_file(const std::string& path, Diagnostics& diagnostics, const LoadOptions& options) {
  const std::string text = read_bytes(path, options.max_bytes);
  if (options.texts != nullptr) options.texts->push_back(text);
  return load_text(text, path, diagnostics, options);
}

Node load_value(std::string_view text, const std::string& origin, Diagnostics& diagnostics) {
  const Where where{origin, 0, 0, {}};
  check_text(text, origin);
  const Limits limits;
  Diagnostics inside;
  Node value;
  try {
    value = parse_yaml(text, origin, limits, inside).value_or(Node());
  } catch (const UserError&) {
    // Behind a key an open list is called one; at the start of a text it is taken for a key.
    if (text.starts_with('[') || text.starts_with('{')) {
      parse_yaml(fmt::format("value: {}", text), origin, limits, inside);
    }
    throw;
  }
  for (const Problem& problem : inside.problems()) {
    diagnostics.error(where, problem.message, problem.hint);
  }
  set_origin(value, where);
  return value;
}

}  // namespace halfstep::config
