#pragma once
// The reference: topics and their entries, collected from the registries.

#include <string>
#include <string_view>
#include <vector>

#include "config/describe.h"

namespace halfstep::app {

/// One line about an entry: its shapes, its dtypes, an example.
struct Fact {
  std::string label;
  std::string text;
};

/// A layer, loss, optimizer, schedule, metric, initializer, data set, section of a config, ...
struct Entry {
  std::string kind{};  ///< "layer"
  std::string name{};  ///< "conv2d", "training", "training.batch_size"
  std::string doc{};   ///< whole sentences
  std::vector<Fact> facts{};
  std::vector<config::FieldDoc> arguments{};         ///< its own
  std::vector<config::FieldDoc> common_arguments{};  ///< those of all entries of its kind
  /// Optional prefixes of its name and its arguments' paths: "optimizer", "model.layers".
  std::vector<std::string> prefixes{};
  bool brief = false;  ///< a line of a table suffices on a page
};

struct Topic {
  std::string_view name{};   ///< "layers"; a page of docs/ has the same name
  std::string_view title{};  ///< of the page
  std::string_view doc{};    ///< one line, for the list of topics
  std::string text{};        ///< an introduction in Markdown
  std::vector<Entry> entries{};
};

/// All topics with their entries, in the order of the list.
std::vector<Topic> reference_topics();

/// The type and the values of an argument: "integer, at least 1", "one of none, auto",
/// "initializer", "number or schedule".
std::string type_text(const config::FieldDoc& field);

/// The default, "required" where there is none.
std::string default_text(const config::FieldDoc& field);

}  // namespace halfstep::app
