#include "graph/op_def.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "core/error.h"
#include "core/ranges.h"
#include "graph/graph.h"
#include "graph/op_handles.h"

namespace halfstep::graph {
namespace {

constexpr DTypeSet k_real{DType::float32,
                          DType::float64,
                          DType::int32,
                          DType::uint8,
                          DType::int16,
                          DType::int8,
                          DType::int64,
                          DType::bfloat16,
                          DType::uint16,
                          DType::float16,
                          DType::uint32,
                          DType::uint64};
constexpr DTypeSet k_number =
    k_real |
    DTypeSet{DType::complex64, DType::complex128, DType::qint8, DType::quint8, DType::qint32};
constexpr DTypeSet k_float{DType::bfloat16, DType::float16, DType::float32, DType::float64};
constexpr DTypeSet k_half_float{DType::bfloat16, DType::float16, DType::float32};

DTypeSet every_type() {
  DTypeSet set;
  for (DType d : all_dtypes()) set.insert(d);
  return set;
}

/// Scans a signature left to right.
class Scanner {
 public:
  Scanner(std::string_view text, std::string_view op) : text_(text), op_(op) {}

  bool done() {
    skip();
    return at_ == text_.size();
  }
  bool take(std::string_view token) {
    skip();
    if (text_.substr(at_).substr(0, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    require(take(token), "{}: expected '{}' at '{}'", op_, token, text_.substr(at_));
  }
  std::string token() {
    skip();
    const std::size_t start = at_;
    while (at_ < text_.size() && is_token_char(text_[at_])) ++at_;
    require(at_ > start, "{}: expected a name at '{}'", op_, text_.substr(start));
    return std::string(text_.substr(start, at_ - start));
  }
  std::string quoted() {
    const char quote = take("'") ? '\'' : '"';
    if (quote == '"') expect("\"");
    const std::size_t end = text_.find(quote, at_);
    require(end != std::string_view::npos, "{}: open string", op_);
    std::string result(text_.substr(at_, end - at_));
    at_ = end + 1;
    return result;
  }
  template <class T>
  T number() {
    skip();
    T value{};
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    require(error == std::errc(), "{}: expected a number at '{}'", op_, text_.substr(at_));
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  template <class T>
  std::vector<T> numbers() {
    std::vector<T> values;
    expect("[");
    while (!take("]")) {
      values.push_back(number<T>());
      take(",");
    }
    return values;
  }
  std::string_view op() const { return op_; }

 private:
  static bool is_token_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string_view text_;
  std::string_view op_;
  std::size_t at_ = 0;
};

DType dtype_token(Scanner& in) {
  const std::string token = in.token();
  const std::optional<DType> dtype = dtype_named(token);
  require(dtype.has_value(), "{}: '{}' is not a dtype", in.op(), token);
  return *dtype;
}

/// `x: T`, `x: float`, `xs: N*T`, `x: Ref(T)`, `x?: T`.
Port port(Scanner& in, const OpDef& op) {
  Port p;
  p.name = in.token();
  p.optional = in.take("?");
  in.expect(":");
  std::string type = in.token();
  if (type == "Ref") {
    p.ref = true;
    in.expect("(");
    type = in.token();
    in.expect(")");
  } else if (in.take("*")) {
    p.count_attr = type;
    type = in.token();
  }
  if (op.type_attr(type) != nullptr) {
    p.type_attr = type;
  } else {
    p.fixed = dtype_named(type);
    require(p.fixed.has_value(), "{}: port '{}' has no type '{}'", in.op(), p.name, type);
  }
  return p;
}

DTypeSet type_set(Scanner& in) {
  if (!in.take("{")) {
    static const std::map<std::string, DTypeSet, std::less<>> k_named{
        {"type", every_type()},
        {"numbertype", k_number},
        {"realnumbertype", k_real},
        {"floattype", k_float},
        {"halffloat", k_half_float},
    };
    const std::string token = in.token();
    const auto it = k_named.find(token);
    require(it != k_named.end(), "{}: unknown type set '{}'", in.op(), token);
    return it->second;
  }
  DTypeSet set;
  while (!in.take("}")) {
    set.insert(dtype_token(in));
    in.take(",");
  }
  return set;
}

void plain_attr(Scanner& in, const std::string& name, OpDef& op) {
  AttrDef attr;
  attr.name = name;
  if (in.take("list(int)")) {
    attr.kind = AttrKind::integers;
    if (in.take("=")) attr.default_value = in.numbers<std::int64_t>();
  } else if (in.take("list(float)")) {
    attr.kind = AttrKind::reals;
    if (in.take("=")) attr.default_value = in.numbers<double>();
  } else if (in.take("int")) {
    attr.kind = AttrKind::integer;
    if (in.take("=")) attr.default_value = in.number<std::int64_t>();
  } else if (in.take("float")) {
    attr.kind = AttrKind::real;
    if (in.take("=")) attr.default_value = in.number<double>();
  } else if (in.take("bool")) {
    attr.kind = AttrKind::boolean;
    if (in.take("=")) attr.default_value = in.token() == "true";
  } else if (in.take("string")) {
    attr.kind = AttrKind::text;
    if (in.take("=")) attr.default_value = in.quoted();
  } else if (in.take("elementwise")) {
    attr.kind = AttrKind::elementwise;
  } else {
    in.expect("shape");
    attr.kind = AttrKind::shape;
  }
  op.attrs.push_back(std::move(attr));
}

/// True when a type set follows; consumes nothing.
bool is_type_set(Scanner in) {
  if (in.take("{")) return true;
  static constexpr std::array<std::string_view, 5> k_sets{
      "type", "numbertype", "realnumbertype", "floattype", "halffloat"};
  const std::string token = in.token();
  return contains(k_sets, token);
}

void read_attrs(Scanner& in, OpDef& op) {
  while (!in.done()) {
    const std::string name = in.token();
    in.expect(":");
    if (in.take("list(type)")) {
      op.types.push_back({name, every_type(), std::nullopt, true});
    } else if (in.take("list({")) {
      TypeAttr type{name, {}, std::nullopt, true};
      while (!in.take("})")) {
        type.allowed.insert(dtype_token(in));
        in.take(",");
      }
      op.types.push_back(std::move(type));
    } else if (is_type_set(in)) {
      TypeAttr type{name, type_set(in), std::nullopt, false};
      if (in.take("=")) type.default_dtype = dtype_token(in);
      op.types.push_back(std::move(type));
    } else {
      plain_attr(in, name, op);
    }
    in.take(",");
  }
}

}  // namespace

const TypeAttr* OpDef::type_attr(std::string_view attr) const {
  return find_or_null(types, attr, &TypeAttr::name);
}

const AttrDef* OpDef::attr(std::string_view attr) const {
  return find_or_null(attrs, attr, &AttrDef::name);
}

bool OpDef::is_count(std::string_view attr) const {
  const auto counts = [&](const Port& port) { return port.count_attr == attr; };
  return std::ranges::any_of(inputs, counts) || std::ranges::any_of(outputs, counts);
}

OpDef define(std::string_view name,
             std::string_view ports,
             std::string_view attrs,
             OpTraits traits) {
  OpDef op;
  op.name = name;
  static_cast<OpTraits&>(op) = traits;
  Scanner attr_text(attrs, name);
  read_attrs(attr_text, op);
  Scanner port_text(ports, name);
  bool outputs = false;
  while (!port_text.done()) {
    if (port_text.take("->")) {
      outputs = true;
      continue;
    }
    (outputs ? op.outputs : op.inputs).push_back(port(port_text, op));
    port_text.take(",");
  }
  return op;
}

OpTable::OpTable(std::vector<OpDef> ops) : ops_(std::move(ops)) {
  std::ranges::sort(ops_, {}, &OpDef::name);
  for (std::size_t i = 1; i < ops_.size(); ++i) {
    require(ops_[i - 1].name != ops_[i].name, "op '{}' is defined twice", ops_[i].name);
  }
}

const OpDef* OpTable::find(std::string_view name) const {
  const auto it =
      std::lower_bound(ops_.begin(), ops_.end(), name, [](const OpDef& op, std::string_view n) {
        return op.name < n;
      });
  return it != ops_.end() && it->name == name ? &*it : nullptr;
}

std::optional<std::vector<std::int64_t>> OpInput::constant() const {
  if (producer == nullptr || !producer->is(ops::k_const)) return std::nullopt;
  const AttrValue* found = producer->attrs.find("value");
  const auto* integers = found != nullptr ? std::get_if<std::vector<std::int64_t>>(found) : nullptr;
  if (integers == nullptr) return std::nullopt;
  // A Const of one stored element fills its whole shape.
  const auto elements = static_cast<std::size_t>(type.shape.elements());
  if (integers->size() == 1) return std::vector<std::int64_t>(elements, integers->front());
  return *integers;
}

std::optional<double> constant_of(const Node& node) {
  const AttrValue* value = node.is(ops::k_const) ? node.attrs.find("value") : nullptr;
  if (value == nullptr) return std::nullopt;
  if (const auto* one = std::get_if<double>(value)) return *one;
  if (const auto* one = std::get_if<std::int64_t>(value)) return static_cast<double>(*one);
  if (const auto* all = std::get_if<std::vector<double>>(value); all && all->size() == 1) {
    return all->front();
  }
  if (const auto* all = std::get_if<std::vector<std::int64_t>>(value); all && all->size() == 1) {
    return static_cast<double>(all->front());
  }
  return std::nullopt;
}

std::vector<OpInput> inputs_of(const Graph& graph, const Node& node) {
  return mapped<OpInput>(node.inputs, [&](const Value& value) { return graph.input(value); });
}

const Node& InferContext::producer(std::size_t i) const {
  if (in[i].producer == nullptr) {
    throw ShapeError(fmt::format("input {} of {} is not known", i, node.op));
  }
  return *in[i].producer;
}

std::vector<std::int64_t> InferContext::constant(std::size_t i) const {
  std::optional<std::vector<std::int64_t>> integers = in[i].constant();
  if (!integers) throw ShapeError(fmt::format("input {} of {} must be a constant", i, node.op));
  return *std::move(integers);
}

Value GradientContext::input(std::size_t i) const { return node.inputs[i]; }

}  // namespace halfstep::graph
