#include "study/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/parse_number.h"
#include "study/gate_quantity.h"

namespace halfstep::study {
namespace {

using report::GateBlock;

constexpr std::string_view k_flag = "--fail-if";

[[noreturn]] void fail_gate(const std::string& message, std::string hint = {}) {
  throw UserError(ErrorKind::config, {std::string(k_flag), 0, 0, ""}, message, std::move(hint));
}

struct Comparator {
  std::string_view text;
  Relation holds;
};

/// Longer operators first, so that `<=` is not parsed as `<`.
constexpr std::array k_comparators{
    Comparator{"<=", [](double value, double limit) { return value <= limit; }},
    Comparator{">=", [](double value, double limit) { return value >= limit; }},
    Comparator{"==", [](double value, double limit) { return value == limit; }},
    Comparator{"!=", [](double value, double limit) { return value != limit; }},
    Comparator{"<", [](double value, double limit) { return value < limit; }},
    Comparator{">", [](double value, double limit) { return value > limit; }}};

/// A number scaled by its unit; nothing when the text is no number.
std::optional<double> read_number(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 3> k_units{
      {{"pp", 100.0}, {"ms", 1.0}, {"x", 1.0}}};
  double divisor = 1;
  for (const auto& [suffix, factor] : k_units) {
    if (!text.ends_with(suffix)) continue;
    text.remove_suffix(suffix.size());
    divisor = factor;
    break;
  }
  const std::optional<double> value = parse_finite(text);
  return value ? std::optional(*value / divisor) : std::nullopt;
}

bool is_token_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_.:+-/").find(c) != std::string_view::npos;
}

/// Parses an expression from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool at_end() {
    skip_spaces();
    return at_ == text_.size();
  }

  bool take(std::string_view symbol) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    at_ += symbol.size();
    return true;
  }

  /// An identifier, "" when there is none.
  std::string_view token() {
    skip_spaces();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_token_char(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  bool take_token(std::string_view wanted) {
    const std::size_t before = at_;
    if (token() == wanted) return true;
    at_ = before;
    return false;
  }

  std::size_t position() {
    skip_spaces();
    return at_;
  }
  std::string_view from(std::size_t begin) const { return text_.substr(begin, at_ - begin); }

  [[noreturn]] void expected(std::string_view what) {
    skip_spaces();
    fail_gate(at_ < text_.size()
                  ? fmt::format("'{}': expected {} at '{}'", text_, what, text_.substr(at_))
                  : fmt::format("'{}': expected {} at the end", text_, what),
              "write POLICY.QUANTITY < NUMBER, joined by || or &&");
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Term read_term(Reader& reader) {
  const std::size_t begin = reader.position();
  Term term;
  term.quantity = reader.token();
  if (term.quantity.empty()) reader.expected("a quantity");
  const auto* comparator =
      std::ranges::find_if(k_comparators, [&](const Comparator& c) { return reader.take(c.text); });
  if (comparator == k_comparators.end()) reader.expected("<, <=, >, >=, == or !=");
  term.holds = comparator->holds;

  const std::string_view limit = reader.token();
  term.limit_is_flag = limit == "true" || limit == "false";
  if (term.limit_is_flag) {
    term.limit = limit == "true" ? 1 : 0;
  } else if (const std::optional<double> number = read_number(limit)) {
    term.limit = *number;
  } else if (limit.empty()) {
    reader.expected("a number, true or false");
  } else {
    fail_gate(fmt::format("'{}' is not a number", limit), "such as 1.2, -0.3pp, 5ms, true");
  }
  term.text = reader.from(begin);
  return term;
}

/// Three-valued logic, ordered so that "and" is the minimum and "or" the maximum.
enum class Truth { no, unknown, yes };

Truth truth(const std::optional<bool>& holds) {
  return !holds ? Truth::unknown : *holds ? Truth::yes : Truth::no;
}

}  // namespace

Gate parse_gate(const std::string& expression) {
  Gate gate{expression, {{}}};
  Reader reader(expression);
  for (;;) {
    gate.any.back().push_back(read_term(reader));
    if (reader.at_end()) return gate;
    if (reader.take("&&") || reader.take_token("and")) continue;
    if (!reader.take("||") && !reader.take_token("or")) reader.expected("|| or &&");
    gate.any.emplace_back();
  }
}

void check_gate(const Gate& gate, const ComparisonNames& names) {
  for (const std::vector<Term>& all : gate.any) {
    for (const Term& term : all) {
      const Quantity quantity = resolve_quantity(term.quantity, names);
      if (term.limit_is_flag == quantity.field->flag) continue;
      fail_gate(fmt::format("'{}' compares {} with {}",
                            term.text,
                            quantity.field->flag ? "a yes or no" : "a number",
                            term.limit_is_flag ? "true or false" : "a number"));
    }
  }
}

std::vector<Gate> parse_gates(const std::vector<std::string>& expressions) {
  Diagnostics diagnostics;
  std::vector<Gate> gates;
  for (const std::string& expression : expressions) {
    collect_problems(diagnostics, [&] { gates.push_back(parse_gate(expression)); });
  }
  diagnostics.throw_if_any();
  return gates;
}

void check_gates(const std::vector<Gate>& gates, const ComparisonNames& names) {
  Diagnostics diagnostics;
  for (const Gate& gate : gates) {
    collect_problems(diagnostics, [&] { check_gate(gate, names); });
  }
  diagnostics.throw_if_any();
}

GateBlock evaluate_gate(const Gate& gate,
                        const ComparisonNames& names,
                        const report::CompareReport& comparison) {
  GateBlock result{gate.expression, std::nullopt, true, {}};
  Truth any = Truth::no;
  for (const std::vector<Term>& terms : gate.any) {
    Truth all = Truth::yes;
    for (const Term& term : terms) {
      const Quantity quantity = resolve_quantity(term.quantity, names);
      const std::optional<double> value = value_of(quantity, comparison);
      report::GateTermBlock shown{term.text, value, std::nullopt};
      if (value) shown.holds = term.holds(*value, term.limit);
      all = std::min(all, truth(shown.holds));
      result.terms.push_back(std::move(shown));
    }
    any = std::max(any, all);
  }
  if (any != Truth::unknown) result.holds = any == Truth::yes;
  result.failed = any != Truth::no;
  return result;
}

double parse_margin(const std::string& text) {
  const bool plain = !text.ends_with("ms") && !text.ends_with("x");
  const std::optional<double> value = plain ? read_number(text) : std::nullopt;
  if (value && *value > 0 && *value < 1) return *value;
  throw UserError(ErrorKind::config,
                  {"--margin", 0, 0, ""},
                  value ? fmt::format("must be above 0 and below 1 (100pp), got '{}'", text)
                        : fmt::format("'{}' is not a margin", text),
                  "such as 0.2pp or 0.002");
}

}  // namespace halfstep::study
