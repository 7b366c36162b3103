#pragma once
// Regular expressions that users give.

#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace halfstep {

/// A regular expression in RE2's syntax (no look-around, no back-references). Time and memory are
/// linear in the text, whatever the expression.
class Pattern {
 public:
  explicit Pattern(const std::string& expression);

  /// Why the expression is not valid; "" for one that is.
  const std::string& problem() const;
  /// Whether the whole of `text` matches; false for an expression that is not valid. Thread-safe.
  bool matches(std::string_view text) const;

 private:
  std::shared_ptr<const re2::RE2> expression_;
};

}  // namespace halfstep
