#include "graph/elementwise_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/parse_number.h"
#include "graph/op_def.h"

namespace halfstep::graph {
namespace {

/// Parses a body word by word.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  ElementwiseBody read() {
    do {
      body_.steps.push_back(step());
    } while (word_ == ";");
    if (word_ != "->") wrong();
    while (next()) {
      const int result = operand();
      if (result >= 0) wrong();
      body_.results.push_back(-1 - result);
    }
    if (body_.results.empty()) wrong();
    for (ElementwiseStep& step : body_.steps) {
      for (int& operand : step.operands) {
        if (operand < 0) operand = static_cast<int>(body_.inputs) - 1 - operand;
      }
    }
    return std::move(body_);
  }

 private:
  bool next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    const std::size_t end = std::min(text_.find(' ', at_), text_.size());
    word_ = text_.substr(at_, end - at_);
    at_ = end;
    return !word_.empty();
  }

  [[noreturn]] void wrong() const {
    throw ShapeError(word_.empty() ? fmt::format("'{}' is incomplete", text_)
                                   : fmt::format("'{}' is wrong at '{}'", text_, word_));
  }

  template <class T>
  T number(std::size_t from) const {
    const std::optional<T> value = parse_number<T>(word_.substr(from));
    if (!value) wrong();
    return *value;
  }

  /// The index of an input, "x2", or -1 - the index of an earlier op, "t0": the number of inputs is
  /// known only at the end.
  int operand() {
    const bool input = word_.front() == 'x';
    if (!input && word_.front() != 't') wrong();
    const auto at = number<std::size_t>(1);
    if (at >= (input ? k_max_elementwise_inputs : body_.steps.size())) wrong();
    if (input) body_.inputs = std::max(body_.inputs, at + 1);
    return input ? static_cast<int>(at) : -1 - static_cast<int>(at);
  }

  ElementwiseStep step() {
    ElementwiseStep step;
    if (!next()) wrong();
    step.op = word_;
    while (next() && word_ != ":") {
      if (const std::size_t equal = word_.find('='); equal == std::string_view::npos) {
        step.operands.push_back(operand());
      } else if (const std::string_view key = word_.substr(0, equal); key == "alpha") {
        step.alpha = number<double>(equal + 1);
      } else if (key == "seed") {
        step.seed = number<std::int64_t>(equal + 1);
      } else if (key == "stream") {
        step.stream = number<std::int64_t>(equal + 1);
      } else if (key == "first") {
        step.first = number<std::int64_t>(equal + 1);
      } else {
        wrong();
      }
    }
    if (!next()) wrong();
    const std::optional<DType> dtype = dtype_named(word_);
    if (!dtype) wrong();
    step.dtype = *dtype;
    next();
    return step;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string_view word_;
  ElementwiseBody body_;
};

}  // namespace

std::string to_string(const ElementwiseBody& body) {
  const auto named = [&](int operand) {
    const int step = operand - static_cast<int>(body.inputs);
    return step < 0 ? fmt::format("x{}", operand) : fmt::format("t{}", step);
  };
  std::string text;
  for (const ElementwiseStep& step : body.steps) {
    text += fmt::format("{}{}", text.empty() ? "" : " ; ", step.op);
    for (const int operand : step.operands) text += " " + named(operand);
    if (step.alpha != 0) text += fmt::format(" alpha={}", step.alpha);
    if (step.seed != 0) text += fmt::format(" seed={}", step.seed);
    if (step.stream != 0) text += fmt::format(" stream={}", step.stream);
    if (step.first != 0) text += fmt::format(" first={}", step.first);
    text += fmt::format(" : {}", name(step.dtype));
  }
  text += " ->";
  for (const int result : body.results) text += fmt::format(" t{}", result);
  return text;
}

ElementwiseBody elementwise_body(std::string_view text) { return Reader(text).read(); }

}  // namespace halfstep::graph
