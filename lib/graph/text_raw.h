#pragma once
// The syntax of the text form, before names and types are looked up. Internal to the text form.

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace halfstep::graph {

/// How the text form names the values of Initializer::Kind.
inline constexpr std::array<std::string_view, 5> k_initializer_kinds{
    "constant", "uniform", "normal", "truncated_normal", "orthogonal"};

/// A value as written. A list keeps its items and its source text.
struct RawValue {
  enum class Kind { word, text, number, list };
  Kind kind = Kind::word;
  std::string text;
  std::vector<RawValue> items;
  Where where;
};

struct RawAttr {
  std::string name;
  RawValue value;
  Where where;
};

/// `n`, `n:1` or `^n`.
struct RawReference {
  std::string name;
  int port = 0;
  bool control = false;
  Where where;
};

struct RawNode {
  std::string name;
  std::string op;
  std::vector<RawReference> inputs;
  std::vector<RawAttr> attrs;
  std::string device;
  Where where;
};

/// A name with its location.
struct RawName {
  std::string name;
  Where where;
};

struct RawKernel {
  RawName op;
  RawName dtype;
};

struct RawVariable {
  RawName name;
  std::vector<RawAttr> attrs;
};

struct RawResult {
  RawName name;
  RawReference value;
};

struct RawGraph {
  std::vector<RawNode> nodes;
  std::vector<RawName> preserved;
  std::vector<RawKernel> no_kernel;
  std::vector<RawName> functions;
  std::vector<RawVariable> variables;
  std::vector<RawResult> results;
};

/// Parsing stops after this many problems.
inline constexpr std::size_t k_max_problems = 1000;

/// Parses every line; a line with an error is reported and skipped. After k_max_problems errors, or
/// two million names and values, the rest is skipped with an error.
RawGraph read_raw(std::string_view text, std::string_view file_name, Diagnostics& diagnostics);

/// True when the text form needs no quotes around a name.
bool is_bare_name(std::string_view name);

}  // namespace halfstep::graph
