#include "config/scalar.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "core/parse_number.h"
#include "core/printable.h"

namespace halfstep::config {
namespace {

constexpr std::size_t k_longest_value_shown = 60;

/// A number as written: sign, digits before and after the point, exponent.
struct Decimal {
  bool negative = false;
  std::string digits;         ///< without the point
  std::int64_t exponent = 0;  ///< of ten; the value is digits * 10^exponent
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view take_digits(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

/// The grammar of numbers: [+-] digits [. digits] [e [+-] digits], no leading zeros.
std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal number;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    number.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const std::string_view whole = take_digits(text);
  if (whole.size() > 1 && whole[0] == '0') return std::nullopt;
  std::string_view fraction;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    fraction = take_digits(text);
  }
  if (whole.empty() && fraction.empty()) return std::nullopt;
  if (!text.empty() && (text[0] == 'e' || text[0] == 'E')) {
    text.remove_prefix(1);
    bool down = false;
    if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
      down = text[0] == '-';
      text.remove_prefix(1);
    }
    const std::string_view digits = take_digits(text);
    // An exponent with more digits is beyond the range of double, whatever its sign.
    if (digits.empty() || digits.size() > 9) return std::nullopt;
    number.exponent = *parse_number<std::int64_t>(digits) * (down ? -1 : 1);
  }
  if (!text.empty()) return std::nullopt;
  number.digits = std::string(whole) + std::string(fraction);
  number.exponent -= static_cast<std::int64_t>(fraction.size());
  return number;
}

std::string wanted(std::string_view what, const Node& node) {
  return fmt::format("must be {}, got {}", what, describe(node));
}

}  // namespace

Parsed<std::int64_t> to_integer(const Node& node) {
  constexpr std::string_view k_what = "a whole number";
  if (node.kind != Node::Kind::scalar || node.quoted) return {{}, wanted(k_what, node)};
  const std::optional<Decimal> number = parse_decimal(node.text);
  if (!number) return {{}, wanted(k_what, node)};
  std::string digits = number->digits;
  std::int64_t exponent = number->exponent;
  while (exponent < 0 && !digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  const std::size_t first = digits.find_first_not_of('0');
  digits = first == std::string::npos ? "" : digits.substr(first);
  if (digits.empty()) return {0, {}};
  if (exponent < 0) return {{}, wanted(k_what, node)};
  const std::string too_large = wanted("a whole number of at most 64 bits", node);
  if (exponent > 19) return {{}, too_large};
  digits.append(static_cast<std::size_t>(exponent), '0');
  if (number->negative) digits.insert(digits.begin(), '-');
  if (const auto value = parse_number<std::int64_t>(digits)) return {value, {}};
  return {{}, too_large};
}

Parsed<double> to_number(const Node& node) {
  constexpr std::string_view k_what = "a number";
  if (node.kind != Node::Kind::scalar || node.quoted) return {{}, wanted(k_what, node)};
  const std::string_view text = node.text;
  const std::size_t slash = text.find('/');
  const std::string_view above = text.substr(0, slash);
  const std::string_view below = slash == std::string_view::npos ? "1" : text.substr(slash + 1);
  if (!parse_decimal(above) || !parse_decimal(below)) return {{}, wanted(k_what, node)};
  const std::optional<double> a = parse_finite(above);
  const std::optional<double> b = parse_finite(below);
  if (!a || !b) return {{}, wanted("a number that 64 bits can hold", node)};
  if (*b == 0) return {{}, wanted("a number, not a division by zero", node)};
  const double value = *a / *b;
  if (!std::isfinite(value)) return {{}, wanted("a number that 64 bits can hold", node)};
  return {value, {}};
}

Parsed<bool> to_bool(const Node& node) {
  const bool plain = node.kind == Node::Kind::scalar && !node.quoted;
  if (plain && node.text == "true") return {true, {}};
  if (plain && node.text == "false") return {false, {}};
  return {{}, wanted("true or false", node)};
}

Parsed<std::string> to_text(const Node& node) {
  if (node.kind == Node::Kind::scalar) return {node.text, {}};
  return {{}, wanted("text", node)};
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::map:
      return "a map";
    case Node::Kind::scalar:
      break;
  }
  const std::string text = truncated(node.text, k_longest_value_shown);
  if (node.quoted) return fmt::format("the string \"{}\"", text);
  return parse_decimal(node.text) ? text : fmt::format("'{}'", text);
}

std::string shortest(double value) {
  constexpr std::size_t k_long = 12;
  constexpr double k_largest_divisor = 65536;
  if (value == std::floor(value) && std::abs(value) < 1e15) {
    const bool minus_zero = value == 0 && std::signbit(value);
    return minus_zero ? "-0" : fmt::format("{}", static_cast<std::int64_t>(value));
  }
  std::string text = fmt::format("{}", value);
  const double divisor = std::round(1 / value);
  if (text.size() > k_long && std::abs(divisor) <= k_largest_divisor && 1 / divisor == value) {
    return divisor > 0 ? fmt::format("1/{}", divisor) : fmt::format("-1/{}", -divisor);
  }
  // 1e-07 -> 1e-7, 1e+20 -> 1e20
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return text;
  const bool down = text[e + 1] == '-';
  const std::size_t digits = text.find_first_not_of("+-0", e + 1);
  return text.substr(0, e + 1) + (down ? "-" : "") + text.substr(digits);
}

}  // namespace halfstep::config
