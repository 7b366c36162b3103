// Elementwise ops fused into one pass over memory. Lowering creates them, after all dtypes are
// decided.
//   FusedElementwise   results of `body` over `shape`, each a tensor of that shape; args are
//                      broadcast to it by NumPy's rules. Every op is computed in float32 and
//                      rounded to its dtype, bit for bit as the separate ops would be.

#include "graph/ops/elementwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/ranges.h"
#include "graph/graph.h"
#include "graph/op_handles.h"
#include "graph/ops/ops.h"

namespace halfstep::graph::ops {
namespace {

/// Parses a body word by word.
class Reader {
 public:
  Reader(const std::string& text, std::size_t inputs) : text_(text), inputs_(inputs) {}

  ElementwiseBody read() {
    ElementwiseBody body;
    do {
      body.steps.push_back(step(body.steps.size()));
    } while (word_ == ";");
    if (word_ != "->") wrong();
    while (next()) {
      const int at = operand(body.steps.size()) - static_cast<int>(inputs_);
      if (at < 0) wrong();
      body.results.push_back(at);
    }
    if (body.results.empty()) wrong();
    return body;
  }

 private:
  bool next() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    const std::size_t end = std::min(text_.find(' ', at_), text_.size());
    word_ = std::string_view(text_).substr(at_, end - at_);
    at_ = end;
    return !word_.empty();
  }

  [[noreturn]] void wrong() const {
    throw ShapeError(fmt::format("body '{}' is wrong at '{}'", text_, word_));
  }

  template <class T>
  T number(std::size_t from) const {
    T value{};
    const char* last = word_.data() + word_.size();
    const auto [end, error] = std::from_chars(word_.data() + from, last, value);
    if (error != std::errc() || end != last) wrong();
    return value;
  }

  /// The operand index of "x2" or "t0", checked against the number of inputs and of earlier ops.
  int operand(std::size_t steps) const {
    const bool input = word_.front() == 'x';
    if (!input && word_.front() != 't') wrong();
    const auto at = number<std::size_t>(1);
    if (at >= (input ? inputs_ : steps)) wrong();
    return static_cast<int>(input ? at : at + inputs_);
  }

  ElementwiseStep step(std::size_t before) {
    ElementwiseStep step;
    if (!next()) wrong();
    step.op = word_;
    const std::size_t operands = elementwise_operands(step.op);
    if (operands == 0) wrong();
    while (next() && word_ != ":") {
      if (const std::size_t equal = word_.find('='); equal == std::string_view::npos) {
        step.operands.push_back(operand(before));
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
    if (step.operands.size() != operands || !next()) wrong();
    const std::optional<DType> dtype = dtype_named(word_);
    if (!dtype) wrong();
    step.dtype = *dtype;
    next();
    return step;
  }

  const std::string& text_;
  std::size_t inputs_;
  std::size_t at_ = 0;
  std::string_view word_;
};

/// Whether an op returns bool for numeric operands.
bool is_predicate(std::string_view op) {
  return op_table().find(op)->outputs[0].fixed == DType::boolean;
}

/// Checks that the operands and the result of each op have dtypes of its signature.
void check_dtypes(const InferContext& c, const ElementwiseBody& body) {
  std::vector<DType> dtypes;
  for (std::size_t i = 0; i < c.inputs(); ++i) dtypes.push_back(c.input(i).dtype);
  for (const ElementwiseStep& step : body.steps) {
    std::vector<DType> x;
    for (const int operand : step.operands) x.push_back(dtypes[static_cast<std::size_t>(operand)]);
    bool fits = true;
    if (step.op == k_random_uniform_from_ordinal) {
      fits = x[0] == DType::int64 && step.dtype == DType::float32;
    } else if (step.op != k_cast) {
      const bool selects = x.size() == 3 && step.op.starts_with("Select");
      const DType wanted = is_predicate(step.op) ? x[0] : step.dtype;
      fits = !is_predicate(step.op) || step.dtype == DType::boolean;
      fits = fits && (!selects || x[0] == DType::boolean);
      fits = fits && std::all_of(x.begin() + (selects ? 1 : 0), x.end(), [&](DType dtype) {
               return dtype == wanted;
             });
    }
    if (!fits) {
      throw ShapeError(
          fmt::format("{} to {} does not fit its operands", step.op, name(step.dtype)));
    }
    dtypes.push_back(step.dtype);
  }
}

std::vector<Shape> infer_elementwise(const InferContext& c) {
  const Shape& shape = c.node.attrs.get<Shape>("shape");
  const ElementwiseBody body = elementwise_body(c.node.attrs.get<std::string>("body"), c.inputs());
  check_dtypes(c, body);
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    const Shape& x = c.input(i).shape;
    bool fits = x.rank() <= shape.rank();
    for (std::size_t back = 1; fits && back <= x.rank(); ++back) {
      const std::int64_t extent = x[x.rank() - back];
      fits = extent == 1 || extent == shape[shape.rank() - back];
    }
    if (!fits) {
      throw ShapeError(fmt::format(
          "input {} of shape {} does not stretch to {}", i, to_string(x), to_string(shape)));
    }
  }
  const auto dtypes = mapped<DType>(
      body.results, [&](int result) { return body.steps[static_cast<std::size_t>(result)].dtype; });
  if (dtypes != c.node.attrs.get<std::vector<DType>>("Tresults")) {
    throw ShapeError("Tresults are not the dtypes of the body's results");
  }
  return std::vector<Shape>(dtypes.size(), shape);
}

}  // namespace

std::size_t elementwise_operands(std::string_view op) {
  const OpDef* def = op_table().find(op);
  return def != nullptr ? def->elementwise : 0;
}

std::string to_string(const ElementwiseBody& body, std::size_t inputs) {
  const auto named = [&](int operand) {
    const int step = operand - static_cast<int>(inputs);
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

ElementwiseBody elementwise_body(const std::string& text, std::size_t inputs) {
  return Reader(text, inputs).read();
}

std::vector<OpDef> elementwise_ops() {
  return {define("FusedElementwise",
                 "args: Targs -> results: Tresults",
                 "Targs: list(type), Tresults: list(type), shape: shape, body: string",
                 {.infer = infer_elementwise, .stage = Stage::lowered})};
}

}  // namespace halfstep::graph::ops
