#include "config/interpolate.h"

#include <fmt/format.h>

#include "core/printable.h"

namespace halfstep::config {
namespace {

constexpr std::string_view k_open = "${";
constexpr std::string_view k_env = "env:";
constexpr std::string_view k_default = ":-";
constexpr std::size_t k_longest_expression_shown = 60;

bool is_name(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (text.empty() || !letter(text[0])) return false;
  for (const char c : text) {
    if (!letter(c) && !(c >= '0' && c <= '9')) return false;
  }
  return true;
}

/// The value of `${inside}`, or nothing and an error.
std::optional<std::string> expand(std::string_view inside,
                                  const Lookup& environment,
                                  const Where& where,
                                  Diagnostics& diagnostics) {
  const bool is_env = inside.starts_with(k_env);
  const std::string_view variable = is_env ? inside.substr(k_env.size()) : inside;
  const std::size_t split = variable.find(k_default);
  const std::string_view name = variable.substr(0, split);
  if (!is_env || !is_name(name)) {
    const std::string hint = is_name(name) ? fmt::format("did you mean '${{env:{}}}'?", variable)
                                           : "write ${env:NAME} or ${env:NAME:-default}";
    diagnostics.error(
        where,
        fmt::format("cannot interpolate '${{{}}}'", truncated(inside, k_longest_expression_shown)),
        hint);
    return std::nullopt;
  }
  std::optional<std::string> value = environment ? environment(name) : std::nullopt;
  if (value) return value;
  if (split != std::string_view::npos) {
    return std::string(variable.substr(split + k_default.size()));
  }
  diagnostics.error(where,
                    fmt::format("the environment variable {} is not set", name),
                    fmt::format("${{env:{}:-default}} gives it a default", name));
  return std::nullopt;
}

}  // namespace

std::string interpolate(std::string_view text,
                        const Lookup& environment,
                        std::size_t max_bytes,
                        const Where& where,
                        Diagnostics& diagnostics) {
  std::string result;
  while (true) {
    if (result.size() + text.size() > max_bytes) {
      diagnostics.error(where, "is too long once the environment's variables are put in");
      return {};
    }
    const std::size_t open = text.find(k_open);
    if (open == std::string_view::npos) return result.append(text);
    if (open > 0 && text[open - 1] == '$') {
      result.append(text.substr(0, open - 1)).append(k_open);
      text.remove_prefix(open + k_open.size());
      continue;
    }
    result.append(text.substr(0, open));
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) {
      diagnostics.error(where,
                        fmt::format("'{}' has no closing brace",
                                    truncated(text.substr(open), k_longest_expression_shown)),
                        "'$${' is a plain '${'");
      return result.append(text.substr(open));
    }
    const std::string_view inside = text.substr(open + k_open.size(), close - open - k_open.size());
    result.append(expand(inside, environment, where, diagnostics).value_or(std::string()));
    text.remove_prefix(close + 1);
  }
}

std::string escape_interpolation(std::string_view text) {
  std::string result;
  for (std::size_t open = text.find(k_open); open != std::string_view::npos;
       open = text.find(k_open)) {
    result.append(text.substr(0, open)).append("$").append(k_open);
    text.remove_prefix(open + k_open.size());
  }
  return result.append(text);
}

}  // namespace halfstep::config
