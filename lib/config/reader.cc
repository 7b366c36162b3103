#include "config/reader.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "config/read_value.h"
#include "config/scalar.h"
#include "core/ranges.h"

namespace halfstep::config {

/// One map being read (or a list, between its elements).
struct Reader::Level {
  const Node* node = nullptr;         ///< nullptr: absent, so its fields keep their values
  const Node* other = nullptr;        ///< anything but a map, in the place of one
  std::string_view or_word = "";      ///< in messages, for a section that may be given as a scalar
  std::vector<std::string> known;     ///< keys that fields declare, in order
  std::unique_ptr<Node> spelled_out;  ///< the map that a bare scalar is shorthand for
};

namespace {

constexpr std::size_t k_longest_key_list = 100;

/// The keys of the map at a path, or the command that lists them where they are many.
std::string known_keys(const std::vector<std::string>& known, const std::string& path) {
  const std::string all = fmt::format("{}", fmt::join(known, ", "));
  if (all.size() <= k_longest_key_list) return all.empty() ? "" : "known keys: " + all;
  if (path.find('[') != std::string::npos) return "";
  return fmt::format("'halfstep help {}' lists the keys", path.empty() ? "config" : path);
}

void read_value(const Node& node, Node& value, const FieldOptions&, Diagnostics&) { value = node; }

template <class T>
void read_value(const Node& node,
                std::optional<T>& value,
                const FieldOptions& options,
                Diagnostics& diagnostics) {
  value.reset();
  T present{};
  if (node.kind != Node::Kind::null && read_value(node, present, options, diagnostics)) {
    value = std::move(present);
  }
}

template <class T>
void read_value(const Node& node,
                const NamedRef<T>& field,
                const FieldOptions& options,
                Diagnostics& out) {
  std::optional<T> read;
  if (!field.nullable || node.kind != Node::Kind::null) read = read_name(node, field, options, out);
  if (read || field.nullable) field.value = std::move(read);
}

}  // namespace

Reader::Reader(const Node& node,
               Diagnostics& diagnostics,
               std::span<const std::string_view> ignored,
               Elsewhere elsewhere)
    : diagnostics_(diagnostics), elsewhere_(std::move(elsewhere)) {
  Level level;
  level.known.assign(ignored.begin(), ignored.end());
  if (node.kind == Node::Kind::map || node.kind == Node::Kind::null) {
    level.node = &node;
  } else {
    level.other = &node;
  }
  levels_.push_back(std::move(level));
}

Reader::~Reader() = default;

void Reader::finish() {
  require(levels_.size() == 1, "{} sections were not ended", levels_.size() - 1);
  end_section();
}

void Reader::report_unknown(const Level& level) {
  const std::string& path = level.node->where.path;
  for (const Node::Entry& entry : level.node->entries) {
    if (contains(level.known, entry.key)) continue;
    std::string hint = did_you_mean(entry.key, level.known);
    const std::string other = hint.empty() && elsewhere_ ? elsewhere_(entry.key) : "";
    if (!other.empty()) hint = fmt::format("did you mean {}?", other);
    if (hint.empty()) hint = known_keys(level.known, path);
    // The message already holds the position, so the path is not repeated.
    Where where = entry.where;
    where.path.clear();
    const std::string_view in = path.empty() ? "" : " in ";
    diagnostics_.error(std::move(where),
                       fmt::format("unknown key '{}'{}{}", entry.key, in, path),
                       std::move(hint));
  }
}

const Node* Reader::take(std::string_view name, const FieldOptions& options) {
  Level& level = levels_.back();
  level.known.emplace_back(name);
  if (level.node == nullptr) return nullptr;
  const Node* found = level.node->find(name);
  if (found == nullptr && options.required) {
    diagnostics_.error(level.node->where, fmt::format("missing required key '{}'", name));
  }
  return found;
}

void Reader::visit(std::string_view name, FieldRef field, const FieldOptions& options) {
  const Node* found = take(name, options);
  if (found == nullptr) return;
  std::visit([&](auto* value) { read_value(*found, *value, options, diagnostics_); }, field);
}

bool Reader::begin_section(std::string_view name,
                           std::optional<bool>,
                           const FieldOptions& options) {
  const Node* found = take(name, options);
  Level level;
  if (found != nullptr && found->kind == Node::Kind::map) {
    level.node = found;
  } else if (found != nullptr && found->kind == Node::Kind::scalar &&
             !options.shorthand_key.empty()) {
    level.spelled_out = std::make_unique<Node>(
        Node::map({{std::string(options.shorthand_key), found->where, *found}}, found->where));
    level.node = level.spelled_out.get();
  } else if (found != nullptr && (found->kind != Node::Kind::null || options.required)) {
    level.other = found;
    if (!options.shorthand_key.empty()) level.or_word = " or a word";
  }
  // The keys of a section that is no map are visited too: the message names them.
  const bool visit = level.node != nullptr || level.other != nullptr;
  levels_.push_back(std::move(level));
  return visit;
}

void Reader::end_section() {
  const Level& level = levels_.back();
  if (level.node != nullptr) report_unknown(level);
  if (const Node* other = level.other) {
    diagnostics_.error(other->where,
                       fmt::format("must be a map{}, got {}", level.or_word, describe(*other)),
                       known_keys(level.known, other->where.path));
  }
  levels_.pop_back();
}

std::size_t Reader::begin_list(std::string_view name,
                               std::size_t size,
                               const FieldOptions& options) {
  const Node* found = take(name, options);
  Level level;
  if (found != nullptr && found->kind == Node::Kind::sequence) {
    level.node = found;
    size = found->items.size();
  } else if (found != nullptr) {
    diagnostics_.error(found->where,
                       fmt::format("must be a list of maps, got {}", describe(*found)));
  }
  levels_.push_back(std::move(level));
  return size;
}

void Reader::begin_element(std::size_t index) {
  Level level;
  if (const Node* list = levels_.back().node) {
    const Node& item = list->items[index];
    (item.kind == Node::Kind::map ? level.node : level.other) = &item;
  }
  levels_.push_back(std::move(level));
}

void Reader::end_list() { levels_.pop_back(); }

}  // namespace halfstep::config
