#include "study/policy_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/merge.h"
#include "core/error.h"
#include "core/ranges.h"

namespace halfstep::study {
namespace {

struct Word {
  std::string_view name;
  PolicySettings settings;
};

std::vector<Word> known_words() {
  std::vector<Word> words;
  for (const std::string_view policy : config::k_policy_names) {
    words.push_back({policy, {policy, "none"}});
  }
  words.push_back({"rewrite", {"float32", "auto"}});
  words.push_back({"rewrite:bfloat16", {"float32", "auto", "bfloat16"}});
  words.push_back({"rewrite:float16", {"float32", "auto", "float16"}});
  return words;
}

std::string trimmed(std::string_view word) {
  const std::size_t begin = word.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return "";
  return std::string(word.substr(begin, word.find_last_not_of(" \t") - begin + 1));
}

[[noreturn]] void fail(const std::string& flag, std::string message, std::string hint = {}) {
  throw UserError(ErrorKind::config, {flag, 0, 0, ""}, std::move(message), std::move(hint));
}

}  // namespace

std::vector<std::string> policy_words(std::string_view list, const std::string& flag) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string word = trimmed(list.substr(begin, end - begin));
    if (word.empty()) fail(flag, fmt::format("an empty name in '{}'", list));
    if (contains(words, word)) fail(flag, fmt::format("'{}' stands twice", word));
    words.push_back(word);
    begin = end + 1;
  }
  return words;
}

std::optional<PolicySettings> policy_settings(std::string_view word) {
  const std::vector<Word> words = known_words();
  const auto known = std::ranges::find(words, word, &Word::name);
  if (known == words.end()) return std::nullopt;
  return known->settings;
}

Variant make_variant(const config::RunSpec& base,
                     const std::string& word,
                     const std::string& flag) {
  const std::optional<PolicySettings> known = policy_settings(word);
  if (!known) {
    const auto names = mapped<std::string>(known_words(), &Word::name);
    const std::string nearest = did_you_mean(word, names);
    fail(flag,
         fmt::format("unknown policy '{}'", word),
         nearest.empty() ? fmt::format("known: {}", fmt::join(names, ", ")) : nearest);
  }
  Diagnostics diagnostics;
  config::Node node = base.source;
  const auto set = [&](std::string_view key, std::string_view value) {
    config::apply(node,
                  {config::Override::Kind::set,
                   fmt::format("precision.{}", key),
                   std::string(value),
                   fmt::format("{} {}", flag, word)},
                  diagnostics);
  };
  set("policy", known->policy);
  set("rewrite", known->rewrite);
  if (!known->target.empty()) set("target", known->target);
  if (known->rewrite == "none" && base.precision.rewrite == config::Rewrite::automatic) {
    // They are those of the base's rewrite, and no mistake beside another policy.
    std::erase_if(node.find("precision")->entries, [](const config::Node::Entry& entry) {
      return contains(std::array{"target", "level", "lists", "rewrite_rules"}, entry.key);
    });
  }
  Variant variant{word, config::parse_run_spec(node, diagnostics)};
  diagnostics.throw_if_any();
  variant.spec.precision.tensorflow_variables = base.precision.tensorflow_variables;
  return variant;
}

}  // namespace halfstep::study
