#include "config/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "config/scalar.h"

namespace halfstep::config {

/// One map being read (or a list, between its elements).
struct Reader::Level {
  const Node* node = nullptr;         ///< nullptr: absent, so its fields keep their values
  std::vector<std::string> known;     ///< keys asked for, in order
  std::unique_ptr<Node> spelled_out;  ///< the map that a bare scalar stands for
};

namespace {

constexpr std::size_t k_longest_key_list = 100;

/// "must be at least 1, got 0", or nothing when the value is within its bounds.
std::string out_of_range(double value, const About& about, const Node& node) {
  const auto message = [&](std::string_view relation, double bound) {
    return fmt::format("must be {} {}, got {}", relation, shortest(bound), describe(node));
  };
  if (about.above && !(value > *about.above)) return message("above", *about.above);
  if (value < about.min) return message("at least", about.min);
  if (about.below && !(value < *about.below)) return message("below", *about.below);
  if (value > about.max) return message("at most", about.max);
  return {};
}

Parsed<DType> to_dtype(const Node& node) {
  Parsed<std::string> text = to_text(node);
  if (!text.value) return {{}, fmt::format("must be the name of a dtype, got {}", describe(node))};
  const std::optional<DType> dtype = dtype_named(*text.value);
  if (dtype) return {dtype, {}};
  return {{}, fmt::format("unknown dtype {}", describe(node))};
}

Parsed<bool> parse(const Node& node, const bool*) { return to_bool(node); }
Parsed<std::string> parse(const Node& node, const std::string*) { return to_text(node); }
Parsed<DType> parse(const Node& node, const DType*) { return to_dtype(node); }
Parsed<std::int64_t> parse(const Node& node, const std::int64_t*) { return to_integer(node); }
Parsed<double> parse(const Node& node, const double*) { return to_number(node); }

std::string hint_for(const Node& node, const std::string& message, const DType*) {
  if (node.kind != Node::Kind::scalar || message.empty()) return {};
  std::vector<std::string> names;
  for (const DType dtype : all_dtypes()) names.emplace_back(name(dtype));
  return did_you_mean(node.text, names);
}
template <class T>
std::string hint_for(const Node& node, const std::string&, const T*) {
  if constexpr (std::is_arithmetic_v<T>) {
    Node plain = node;
    plain.quoted = false;
    if (node.quoted && parse(plain, static_cast<const T*>(nullptr)).value) {
      return "leave out the quotes";
    }
  }
  return {};
}

/// Reads one scalar into `value`; on an error `value` stays as it is.
template <class T>
bool read_scalar(const Node& node, T& value, const About& about, Diagnostics& diagnostics) {
  Parsed<T> parsed = parse(node, static_cast<const T*>(nullptr));
  if (parsed.value) {
    if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>) {
      parsed.wrong = out_of_range(static_cast<double>(*parsed.value), about, node);
    }
  }
  if (!parsed.wrong.empty()) {
    diagnostics.error(
        node.where, parsed.wrong, hint_for(node, parsed.wrong, static_cast<const T*>(nullptr)));
    return false;
  }
  value = std::move(*parsed.value);
  return true;
}

std::string_view plural(const std::int64_t*) { return "whole numbers"; }
std::string_view plural(const double*) { return "numbers"; }
std::string_view plural(const std::string*) { return "names"; }

template <class T>
void read_list(const Node& node, std::vector<T>& value, const About& about, Diagnostics& out) {
  constexpr bool k_names = std::is_same_v<T, std::string>;
  if (k_names && node.kind == Node::Kind::scalar) {
    T single{};
    if (read_scalar(node, single, about, out)) value = {std::move(single)};
    return;
  }
  if (node.kind != Node::Kind::sequence) {
    out.error(node.where,
              fmt::format("must be a list of {}, got {}",
                          plural(static_cast<const T*>(nullptr)),
                          describe(node)));
    return;
  }
  std::vector<T> items;
  items.reserve(node.items.size());
  for (const Node& item : node.items) {
    T element{};
    if (read_scalar(item, element, about, out)) items.push_back(std::move(element));
  }
  if (items.size() == node.items.size()) value = std::move(items);
}

std::string join(std::span<const std::string_view> words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<std::string> copies(std::span<const std::string_view> words) {
  return {words.begin(), words.end()};
}

/// The index of the word at `node`, or nothing and an error.
std::optional<std::size_t> read_word(const Node& node,
                                     std::span<const std::string_view> names,
                                     Diagnostics& diagnostics) {
  if (node.kind == Node::Kind::scalar) {
    const auto found = std::find(names.begin(), names.end(), node.text);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  diagnostics.error(
      node.where,
      fmt::format(
          "must be {}{}, got {}", names.size() > 1 ? "one of " : "", join(names), describe(node)),
      node.kind == Node::Kind::scalar ? did_you_mean(node.text, copies(names)) : std::string());
  return std::nullopt;
}

void check_type(const Node& name,
                std::span<const std::string_view> types,
                Diagnostics& diagnostics) {
  if (std::find(types.begin(), types.end(), name.text) != types.end()) return;
  const std::string near = did_you_mean(name.text, copies(types));
  const std::string all = join(types);
  const bool list_all = near.empty() && all.size() <= 3 * k_longest_key_list;
  diagnostics.error(name.where,
                    fmt::format("unknown type {}", describe(name)),
                    list_all ? "known: " + all : near);
}

std::optional<Typed> read_typed(const Node& node,
                                std::span<const std::string_view> types,
                                Diagnostics& diagnostics) {
  Typed typed;
  if (node.kind == Node::Kind::scalar) {
    typed.type = node.text;
    typed.where = node.where;
    typed.node.kind = Node::Kind::map;
    typed.node.where = node.where;
    check_type(node, types, diagnostics);
    return typed;
  }
  if (node.kind != Node::Kind::map) {
    diagnostics.error(
        node.where,
        fmt::format("must be a name or a map with the key 'type', got {}", describe(node)));
    return std::nullopt;
  }
  const Node* type = node.find("type");
  if (type == nullptr) {
    diagnostics.error(node.where, "missing required key 'type'");
    return std::nullopt;
  }
  if (!read_scalar(*type, typed.type, {}, diagnostics)) return std::nullopt;
  check_type(*type, types, diagnostics);
  typed.where = type->where;
  typed.node = node;
  std::erase_if(typed.node.entries, [](const Node::Entry& entry) { return entry.key == "type"; });
  return typed;
}

void report_unknown(const Node& map,
                    const std::vector<std::string>& known,
                    Diagnostics& diagnostics) {
  for (const Node::Entry& entry : map.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    std::string hint = did_you_mean(entry.key, known);
    if (hint.empty()) {
      std::string all = fmt::format("{}", fmt::join(known, ", "));
      if (!known.empty() && all.size() <= k_longest_key_list) hint = "known keys: " + all;
    }
    // The message names the place, so the path is not said twice.
    Where where = entry.where;
    where.path.clear();
    const std::string_view in = map.where.path.empty() ? "" : " in ";
    diagnostics.error(std::move(where),
                      fmt::format("unknown key '{}'{}{}", entry.key, in, map.where.path),
                      std::move(hint));
  }
}

}  // namespace

Reader::Reader(const Node& node,
               Diagnostics& diagnostics,
               std::span<const std::string_view> ignored)
    : diagnostics_(diagnostics) {
  Level level;
  level.known = copies(ignored);
  if (node.kind == Node::Kind::map || node.kind == Node::Kind::null) {
    level.node = &node;
  } else {
    diagnostics_.error(node.where, fmt::format("must be a map, got {}", describe(node)));
  }
  levels_.push_back(std::move(level));
}

Reader::~Reader() = default;

void Reader::finish() {
  require(levels_.size() == 1, "{} sections were not ended", levels_.size() - 1);
  end_section();
}

const Node* Reader::take(std::string_view name, const About& about) {
  Level& level = levels_.back();
  level.known.emplace_back(name);
  if (level.node == nullptr) return nullptr;
  const Node* found = level.node->find(name);
  if (found == nullptr && about.required) {
    diagnostics_.error(level.node->where, fmt::format("missing required key '{}'", name));
  }
  return found;
}

template <class T>
void Reader::scalar(std::string_view name, T& value, const About& about) {
  if (const Node* found = take(name, about)) read_scalar(*found, value, about, diagnostics_);
}

template <class T>
void Reader::optional_scalar(std::string_view name, std::optional<T>& value, const About& about) {
  const Node* found = take(name, about);
  if (found == nullptr) return;
  if (found->kind == Node::Kind::null) {
    value.reset();
    return;
  }
  T present{};
  if (read_scalar(*found, present, about, diagnostics_)) value = std::move(present);
}

template <class T>
void Reader::list(std::string_view name, std::vector<T>& value, const About& about) {
  if (const Node* found = take(name, about)) read_list(*found, value, about, diagnostics_);
}

void Reader::field(std::string_view name, bool& value, const About& about) {
  scalar(name, value, about);
}
void Reader::field(std::string_view name, std::int64_t& value, const About& about) {
  scalar(name, value, about);
}
void Reader::field(std::string_view name, double& value, const About& about) {
  scalar(name, value, about);
}
void Reader::field(std::string_view name, std::string& value, const About& about) {
  scalar(name, value, about);
}
void Reader::field(std::string_view name, DType& value, const About& about) {
  scalar(name, value, about);
}
void Reader::field(std::string_view name, std::vector<std::int64_t>& value, const About& about) {
  list(name, value, about);
}
void Reader::field(std::string_view name, std::vector<double>& value, const About& about) {
  list(name, value, about);
}
void Reader::field(std::string_view name, std::vector<std::string>& value, const About& about) {
  list(name, value, about);
}
void Reader::field(std::string_view name, std::optional<bool>& value, const About& about) {
  optional_scalar(name, value, about);
}
void Reader::field(std::string_view name, std::optional<std::int64_t>& value, const About& about) {
  optional_scalar(name, value, about);
}
void Reader::field(std::string_view name, std::optional<double>& value, const About& about) {
  optional_scalar(name, value, about);
}
void Reader::field(std::string_view name, std::optional<std::string>& value, const About& about) {
  optional_scalar(name, value, about);
}

void Reader::field(std::string_view name, Pair& value, const About& about) {
  const Node* found = take(name, about);
  if (found == nullptr) return;
  if (found->kind == Node::Kind::sequence && found->items.size() == 2) {
    Pair both = value;
    const bool first = read_scalar(found->items[0], both[0], about, diagnostics_);
    const bool second = read_scalar(found->items[1], both[1], about, diagnostics_);
    if (first && second) value = both;
  } else if (found->kind == Node::Kind::scalar) {
    std::int64_t one = 0;
    if (read_scalar(*found, one, about, diagnostics_)) value = {one, one};
  } else {
    const std::string got = found->kind == Node::Kind::sequence
                                ? fmt::format("a list of {}", found->items.size())
                                : describe(*found);
    diagnostics_.error(found->where,
                       fmt::format("must be a whole number or a list of two, got {}", got));
  }
}

void Reader::field(std::string_view name, std::vector<NamedExtents>& value, const About& about) {
  const Node* found = take(name, about);
  if (found == nullptr) return;
  if (found->kind != Node::Kind::map) {
    diagnostics_.error(found->where,
                       fmt::format("must be a map from names to lists of whole numbers, got {}",
                                   describe(*found)));
    return;
  }
  value.clear();
  for (const Node::Entry& entry : found->entries) {
    value.push_back({entry.key, {}});
    read_list(entry.value, value.back().extents, about, diagnostics_);
  }
}

void Reader::field(std::string_view name,
                   Typed& value,
                   std::span<const std::string_view> types,
                   const About& about) {
  const Node* found = take(name, about);
  if (found == nullptr) return;
  if (std::optional<Typed> typed = read_typed(*found, types, diagnostics_)) {
    value = std::move(*typed);
  }
}

void Reader::field(std::string_view name,
                   std::optional<Typed>& value,
                   std::span<const std::string_view> types,
                   const About& about) {
  const Node* found = take(name, about);
  if (found == nullptr) return;
  value.reset();
  if (found->kind != Node::Kind::null) value = read_typed(*found, types, diagnostics_);
}

void Reader::node(std::string_view name, Node& value, const About& about) {
  if (const Node* found = take(name, about)) value = *found;
}

void Reader::word(std::string_view name,
                  std::size_t& index,
                  std::span<const std::string_view> names,
                  const About& about) {
  const Node* found = take(name, about);
  if (found == nullptr) return;
  index = read_word(*found, names, diagnostics_).value_or(index);
}

void Reader::optional_word(std::string_view name,
                           std::optional<std::size_t>& index,
                           std::span<const std::string_view> names,
                           const About& about) {
  const Node* found = take(name, about);
  if (found == nullptr) return;
  index.reset();
  if (found->kind != Node::Kind::null) index = read_word(*found, names, diagnostics_);
}

bool Reader::begin_section(std::string_view name, const About& about) {
  const Node* found = take(name, about);
  Level level;
  if (found != nullptr && found->kind == Node::Kind::map) {
    level.node = found;
  } else if (found != nullptr && found->kind == Node::Kind::scalar && !about.bare.empty()) {
    level.spelled_out = std::make_unique<Node>();
    level.spelled_out->kind = Node::Kind::map;
    level.spelled_out->where = found->where;
    level.spelled_out->entries.push_back({std::string(about.bare), found->where, *found});
    level.node = level.spelled_out.get();
  } else if (found != nullptr && (found->kind != Node::Kind::null || about.required)) {
    const std::string_view or_word = about.bare.empty() ? "" : " or a word";
    diagnostics_.error(found->where,
                       fmt::format("must be a map{}, got {}", or_word, describe(*found)));
  }
  const bool visit = level.node != nullptr;
  levels_.push_back(std::move(level));
  return visit;
}

bool Reader::begin_optional_section(std::string_view name, bool present, const About& about) {
  static_cast<void>(present);
  return begin_section(name, about);
}

void Reader::end_section() {
  const Level& level = levels_.back();
  if (level.node != nullptr) report_unknown(*level.node, level.known, diagnostics_);
  levels_.pop_back();
}

std::size_t Reader::begin_list(std::string_view name, std::size_t size, const About& about) {
  const Node* found = take(name, about);
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
    if (item.kind == Node::Kind::map) {
      level.node = &item;
    } else {
      diagnostics_.error(item.where, fmt::format("must be a map, got {}", describe(item)));
    }
  }
  levels_.push_back(std::move(level));
}

void Reader::end_list() { levels_.pop_back(); }

}  // namespace halfstep::config
