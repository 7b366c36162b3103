#include "config/differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/printer.h"
#include "config/scalar.h"
#include "core/ranges.h"

namespace halfstep::config {
namespace {

/// Settings without influence on the weights of any step. A section includes all its fields.
constexpr std::array<std::string_view, 23> k_free{"name",
                                                  "version",
                                                  "report",
                                                  "slurm",
                                                  "device",
                                                  "parallel.bucket_mib",
                                                  "parallel.copy_every",
                                                  "parallel.shard",
                                                  "parallel.timeout",
                                                  "data.path",
                                                  "data.sha256",
                                                  "data.class_names",
                                                  "data.prefetch",
                                                  "training.epochs",
                                                  "training.max_steps",
                                                  "training.validation_batch_size",
                                                  "training.checkpoint_every",
                                                  "training.keep",
                                                  "training.keep_best",
                                                  "training.target",
                                                  "training.stop_at_target",
                                                  "training.time_limit",
                                                  "training.stop_before_time_limit"};

/// Settings that the stored state of a run depends on.
constexpr std::array<std::string_view, 5> k_fixed{
    "seed", "model", "data", "metrics", "training.batch_size"};

/// The value in one line.
std::string whole_flow(const Node* node) {
  if (node == nullptr) return "(none)";
  std::string text;
  switch (node->kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar:
      return node->text;
    case Node::Kind::sequence:
      for (const Node& item : node->items) text += (text.empty() ? "" : ", ") + whole_flow(&item);
      return "[" + text + "]";
    case Node::Kind::map:
      for (const Node::Entry& entry : node->entries) {
        text += (text.empty() ? "" : ", ") + entry.key + ": " + whole_flow(&entry.value);
      }
      return "{" + text + "}";
  }
  return text;
}

/// The same, truncated to the length of a message.
std::string flow(const Node* node) {
  constexpr std::size_t k_longest = 80;
  std::string text = whole_flow(node);
  if (text.size() > k_longest) text = text.substr(0, k_longest - 3) + "...";
  return text;
}

bool is_list_of_maps(const Node& list) {
  return std::ranges::all_of(list.items,
                             [](const Node& item) { return item.kind == Node::Kind::map; });
}

/// Keys whose values are names, even where they look like numbers.
bool holds_text(std::string_view key) { return key == "name" || key == "from"; }

/// Whether two values are equal: numbers by their value, so that 1e-3 equals 0.001 and 1/4 equals
/// 0.25.
bool equal(const Node& a, const Node& b, bool text) {
  if (same(a, b)) return true;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Node::Kind::null:
      return true;
    case Node::Kind::scalar: {
      if (text) return false;
      const std::optional<double> x = to_number(a).value, y = to_number(b).value;
      return x && y && *x == *y;
    }
    case Node::Kind::sequence:
      return std::equal(a.items.begin(),
                        a.items.end(),
                        b.items.begin(),
                        b.items.end(),
                        [text](const Node& x, const Node& y) { return equal(x, y, text); });
    case Node::Kind::map:
      return a.entries.size() == b.entries.size() &&
             std::ranges::all_of(a.entries, [&b](const Node::Entry& entry) {
               const Node* other = b.find(entry.key);
               return other != nullptr && equal(entry.value, *other, holds_text(entry.key));
             });
  }
  return false;
}

/// The last key of a path.
std::string_view last_key(std::string_view path) { return path.substr(path.rfind('.') + 1); }

void compare(const Node* before,
             const Node* after,
             const std::string& path,
             std::vector<Difference>& found) {
  if (before != nullptr && after != nullptr) {
    if (equal(*before, *after, holds_text(last_key(path)))) return;
    if (before->kind == Node::Kind::map && after->kind == Node::Kind::map) {
      const auto below = [&](const std::string& key) {
        return path.empty() ? key : path + "." + key;
      };
      for (const Node::Entry& entry : before->entries) {
        compare(&entry.value, after->find(entry.key), below(entry.key), found);
      }
      for (const Node::Entry& entry : after->entries) {
        if (before->find(entry.key) == nullptr) {
          compare(nullptr, &entry.value, below(entry.key), found);
        }
      }
      return;
    }
    const bool lists = before->kind == Node::Kind::sequence && after->kind == Node::Kind::sequence;
    if (lists && is_list_of_maps(*before) && is_list_of_maps(*after)) {
      for (std::size_t i = 0; i < std::max(before->items.size(), after->items.size()); ++i) {
        const auto item = [i](const Node& list) {
          return i < list.items.size() ? &list.items[i] : nullptr;
        };
        compare(item(*before), item(*after), fmt::format("{}[{}]", path, i), found);
      }
      return;
    }
  }
  found.push_back({path, flow(before), flow(after)});
}

}  // namespace

bool within(std::string_view path, std::string_view section) {
  if (!path.starts_with(section)) return false;
  return path.size() == section.size() || path[section.size()] == '.' ||
         path[section.size()] == '[';
}

std::vector<Difference> differences(const RunSpec& before, const RunSpec& after) {
  const Node a = to_node(before), b = to_node(after);
  std::vector<Difference> found;
  compare(&a, &b, "", found);
  return found;
}

std::vector<Difference> check_resume(const RunSpec& before,
                                     const RunSpec& after,
                                     std::span<const std::string> allowed) {
  Diagnostics diagnostics;
  std::vector<Difference> kept;
  std::vector<std::string> used;
  for (const Difference& difference : differences(before, after)) {
    const auto holds = [&](std::string_view section) { return within(difference.path, section); };
    if (std::ranges::any_of(k_free, holds)) continue;
    const auto permit = std::ranges::find_if(allowed, holds);
    if (permit != allowed.end()) used.push_back(*permit);
    const bool fixed = std::ranges::any_of(k_fixed, holds);
    if (permit != allowed.end() && !fixed) {
      kept.push_back(difference);
      continue;
    }
    diagnostics.error(
        after.where(difference.path),
        fmt::format("the run began with {}, now it is {}", difference.before, difference.after),
        fixed ? "its checkpoints mean nothing under another value: begin a new run"
              : fmt::format("take the first value, begin a new run, or change it from here on with "
                            "--override-resume {}",
                            difference.path));
  }
  for (const std::string& permit : allowed) {
    if (contains(used, permit)) continue;
    diagnostics.error({"--override-resume", 0, 0, permit},
                      "does not differ from the run's own value");
  }
  diagnostics.throw_if_any();
  return kept;
}

}  // namespace halfstep::config
