#include "precision/tf_environment.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "core/printable.h"

namespace halfstep::precision {
namespace {

/// Names of the list variables, by List; the clear list has no older name.
constexpr std::array<std::string_view, 4> k_names{
    "ALLOWLIST", "INFERLIST", "DENYLIST", "CLEARLIST"};
constexpr std::array<std::string_view, 4> k_older_names{"WHITELIST", "GRAYLIST", "BLACKLIST", ""};

class Reader {
 public:
  Reader(const Variables& variables, std::vector<Problem>& warnings)
      : variables_(variables), warnings_(warnings) {}

  std::optional<std::string> text(std::string_view suffix) const {
    return variables_(fmt::format("{}{}", k_variable_prefix, suffix));
  }

  /// TensorFlow's booleans: 0, 1, true, false in any case.
  void boolean(std::string_view suffix, bool& value) const {
    const std::optional<std::string> given = text(suffix);
    if (!given || given->empty()) return;
    const std::string lower = lower_case(*given);
    if (lower == "1" || lower == "true") {
      value = true;
    } else if (lower == "0" || lower == "false") {
      value = false;
    } else {
      warn(suffix, fmt::format("'{}' is none of 0, 1, true, false", *given));
    }
  }

  ListEdits edits(const std::array<std::string_view, 4>& names) const {
    ListEdits edits;
    edits.lenient = true;
    for (std::size_t list = 0; list < names.size(); ++list) {
      if (names[list].empty()) continue;
      edits.add[list] = items(fmt::format("{}_ADD", names[list]));
      edits.remove[list] = items(fmt::format("{}_REMOVE", names[list]));
    }
    return edits;
  }

  void warn(std::string_view suffix, std::string message, std::string hint = {}) const {
    warnings_.push_back({where(suffix), std::move(message), std::move(hint)});
  }

 private:
  static Where where(std::string_view suffix) {
    Where where;
    where.path = fmt::format("{}{}", k_variable_prefix, suffix);
    return where;
  }

  std::vector<ListEdits::Item> items(std::string_view suffix) const {
    std::vector<ListEdits::Item> result;
    const std::string given = text(suffix).value_or("");
    std::string_view rest = given;
    while (!rest.empty()) {
      const std::size_t end = rest.find(',');
      const std::string_view op = rest.substr(0, end);
      if (!op.empty()) result.push_back({std::string(op), where(suffix)});
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    return result;
  }

  const Variables& variables_;
  std::vector<Problem>& warnings_;
};

}  // namespace

std::vector<Problem> apply_tensorflow_variables(const Variables& variables,
                                                RewriteOptions& options) {
  std::vector<Problem> warnings;
  const Reader reader(variables, warnings);
  if (const std::optional<std::string> text = reader.text("LEVEL")) {
    if (const std::optional<Level> level = level_named(*text)) {
      options.level = *level;
    } else {
      reader.warn("LEVEL",
                  fmt::format("unknown level '{}' is ignored", *text),
                  did_you_mean(*text, level_names()));
    }
  }
  for (const auto& names : {k_names, k_older_names}) {
    ListEdits edits = reader.edits(names);
    if (!edits.empty()) options.edits.push_back(std::move(edits));
  }
  reader.boolean("IGNORE_PERFORMANCE", options.ignore_performance);
  reader.boolean("EMULATE_FP16", options.emulate);
  bool simulate = false;
  reader.boolean("SIMULATE_GPU", simulate);
  if (simulate && options.device.arch.empty()) options.device = DeviceInfo{};
  return warnings;
}

}  // namespace halfstep::precision
