#include <fmt/format.h>

#include "core/ranges.h"
#include "nn/metric.h"
#include "reference/reference.h"

namespace halfstep::app {
namespace {

using config::FieldDoc;

bool is_section(const Entry& entry) { return entry.kind == kinds::k_section; }

/// Names of an entry itself.
std::vector<std::string> names_of(const Entry& entry) {
  std::vector<std::string> names{entry.name};
  for (const std::string& prefix : entry.prefixes) names.push_back(prefix + "." + entry.name);
  return names;
}

/// The full path of a key of a config.
std::string key_of(const Entry& section, const FieldDoc& field) {
  return section.name == "config" ? field.path : section.name + "." + field.path;
}

/// The names of an argument of an entry that is no section of a config.
std::vector<std::string> names_of(const Entry& entry, const FieldDoc& field) {
  std::vector<std::string> names;
  for (const std::string& name : names_of(entry)) names.push_back(name + "." + field.path);
  for (const std::string& prefix : entry.prefixes) names.push_back(prefix + "." + field.path);
  return names;
}

bool same(const FieldDoc& a, const FieldDoc& b) {
  return a.path == b.path && a.doc == b.doc && a.type == b.type && a.words == b.words &&
         a.default_value == b.default_value && a.required == b.required;
}

/// An argument with those below it, as an entry; its owners are listed in a fact.
struct Match {
  EntryKind kind{};
  std::string name{};
  std::vector<FieldDoc> fields{};
  std::vector<std::string> owners{};
};

/// Collects matches and merges equal arguments of several entries.
class Matches {
 public:
  void add(const Entry& owner, const std::vector<FieldDoc>& all, const FieldDoc& field) {
    if (!is_section(owner)) {
      for (Match& match : matches_) {
        if (match.kind != owner.kind || !same(match.fields.front(), field)) continue;
        if (!contains(match.owners, owner.name)) match.owners.push_back(owner.name);
        return;
      }
    }
    Match match{.kind = owner.kind,
                .name = is_section(owner) ? key_of(owner, field) : field.path,
                .fields = {},
                .owners = {owner.name}};
    for (const FieldDoc& other : all) {
      if (&other != &field && !other.path.starts_with(field.path + ".")) continue;
      match.fields.push_back(other);
      if (is_section(owner)) match.fields.back().path = key_of(owner, other);
    }
    matches_.push_back(std::move(match));
  }

  std::vector<Entry> entries() const {
    std::vector<Entry> entries;
    for (const Match& match : matches_) {
      const auto& [kind, name, fields, owners] = match;
      Entry entry{.kind = {.name = kind.part, .argument = kind.argument},
                  .name = name,
                  .arguments = fields};
      if (kind != kinds::k_section) {
        const std::string named = fmt::format("{} {}", kind.name, fmt::join(owners, ", "));
        entry.facts.push_back({"of", owners.front() == kind.name ? std::string(kind.name) : named});
      }
      entries.push_back(std::move(entry));
    }
    return entries;
  }

  bool empty() const { return matches_.empty(); }

 private:
  std::vector<Match> matches_;
};

template <class Visit>
void each_argument(const std::vector<Topic>& topics, const Visit& visit) {
  for (const Topic& topic : topics) {
    for (const Entry& entry : topic.entries) {
      // The section `data` is also an entry of the topic config.
      if (is_section(entry) && topic.name != "config") continue;
      for (const auto* list : {&entry.arguments, &entry.common_arguments}) {
        for (const FieldDoc& field : *list) visit(entry, *list, field);
      }
    }
  }
}

/// The name without list indices, and with the part after a layer's regularizer or initializer as
/// an argument of that.
std::string plain_name(std::string_view word) {
  std::string name;
  int depth = 0;
  for (const char c : word) {
    if (c == '[') ++depth;
    if (depth == 0) name += c;
    if (c == ']') --depth;
  }
  for (const char* part : {"_initializer.", "_regularizer."}) {
    if (const std::size_t at = name.find(part); at != std::string::npos) return name.substr(at + 1);
  }
  return name;
}

std::vector<Entry> find_whole(const std::vector<Topic>& topics, const std::string& name) {
  std::vector<Entry> entries;
  for (const Topic& topic : topics) {
    for (const Entry& entry : topic.entries) {
      if (is_section(entry) && topic.name != "config") continue;
      const bool metric = entry.kind == kinds::k_metric && nn::find_metric(name) != nullptr &&
                          nn::find_metric(name)->name == entry.name;
      if (metric || contains(names_of(entry), name)) entries.push_back(entry);
    }
  }
  Matches keys;
  each_argument(topics, [&](const Entry& entry, const auto& all, const FieldDoc& field) {
    const bool has_entry = entry.name == "config" && field.type == "section";
    if (is_section(entry) && !has_entry && key_of(entry, field) == name) {
      keys.add(entry, all, field);
    }
  });
  for (Entry& entry : keys.entries()) entries.push_back(std::move(entry));
  return entries;
}

}  // namespace

std::vector<Entry> find_entries(const std::vector<Topic>& topics, std::string_view word) {
  std::string name = plain_name(word);
  std::vector<Entry> entries = find_whole(topics, name);
  if (entries.empty() && name.ends_with(".type")) {
    name.erase(name.rfind('.'));
    entries = find_whole(topics, name);
  }
  if (!entries.empty()) return entries;

  Matches arguments, parts;
  each_argument(topics, [&](const Entry& entry, const auto& all, const FieldDoc& field) {
    if (!is_section(entry) && contains(names_of(entry, field), name)) {
      arguments.add(entry, all, field);
    }
    // Fields of reports have many short names, such as `layer`; they are found by their paths.
    const bool short_name = entry.kind != kinds::k_report;
    if (short_name && (field.name == name || contains(field.words, name))) {
      parts.add(entry, all, field);
    }
  });
  return arguments.empty() ? parts.entries() : arguments.entries();
}

std::vector<std::string> reference_names(const std::vector<Topic>& topics) {
  std::vector<std::string> names;
  for (const Topic& topic : topics) {
    names.emplace_back(topic.name);
    for (const Entry& entry : topic.entries) {
      for (std::string& name : names_of(entry)) names.push_back(std::move(name));
    }
  }
  each_argument(topics, [&](const Entry& entry, const auto&, const FieldDoc& field) {
    if (is_section(entry)) {
      names.push_back(key_of(entry, field));
    } else {
      for (std::string& name : names_of(entry, field)) names.push_back(std::move(name));
    }
  });
  return names;
}

}  // namespace halfstep::app
