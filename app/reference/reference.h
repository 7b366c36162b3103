#pragma once
// The reference: topics and their entries, collected from the registries and found by the names
// that users write.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/describe.h"

namespace CLI {
class App;
}

namespace halfstep::app {

struct EntryKind {
  std::string_view name{};                 ///< "layer"
  std::string_view title = name;           ///< of its entries on a page that has several kinds
  std::string_view argument = "argument";  ///< the name of its parts on its page
  std::string_view part = "argument";      ///< the kind of a part found by itself
  bool operator==(const EntryKind&) const = default;
};
namespace kinds {
inline constexpr EntryKind k_layer{"layer", "Layers"}, k_activation{"activation", "Activations"},
    k_regularizer{"regularizer", "Regularizers"}, k_loss{"loss"}, k_optimizer{"optimizer"},
    k_schedule{"schedule"}, k_metric{"metric"}, k_initializer{"initializer"},
    k_data_format{"data format", "Formats"}, k_data_set{"data set", "Known data sets"},
    k_policy{"policy"}, k_warning{"warning"}, k_op{"op"}, k_command{"command"},
    k_exit_code{"exit code"}, k_section{"section", "Keys", "key", "key of a config"},
    k_report{"report", "Reports", "field", "field of a report"};
}  // namespace kinds

/// One line about an entry: its shapes, its dtypes, an example.
struct Fact {
  std::string label;
  std::string text;
};

/// A layer, loss, optimizer, schedule, metric, initializer, data set, section of a config, ...
struct Entry {
  EntryKind kind{};
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

/// All topics with their entries, in the order of the list; the commands are those of `program`.
std::vector<Topic> reference_topics(const CLI::App& program);

/// The type and the values of an argument: "integer, at least 1", "one of none, auto",
/// "initializer", "number or schedule".
std::string type_text(const config::FieldDoc& field);

/// The default, "required" where there is none.
std::string default_text(const config::FieldDoc& field);

/// The entries ("conv2d", "optimizer.adam"), keys of a config ("training.epochs"), arguments
/// ("conv2d.filters", "optimizer.beta_1") and fields of reports ("report.step_time.median") with
/// the name `word`. Without any, the keys and arguments whose last component is `word` or that take
/// it as a value. List indices are ignored ("model.layers[0].units"). Empty: no match.
std::vector<Entry> find_entries(const std::vector<Topic>& topics, std::string_view word);

/// All full names that find_entries accepts.
std::vector<std::string> reference_names(const std::vector<Topic>& topics);

// Parts of reference_topics().

/// Replaces the type of registry fields by the registry's name and values. The fields below a
/// regularizer are omitted, because it has an entry of its own.
std::vector<config::FieldDoc> shown(std::vector<config::FieldDoc> fields);

/// The same for the fields that `visit` declares.
std::vector<config::FieldDoc> fields_of(const std::function<void(config::Fields&)>& visit);

/// The guide to using your own data, in Markdown.
std::string data_guide();

/// The parts of data_guide() on tables and on texts.
std::string table_guide();
std::string text_guide();

Topic data_topic();
Topic config_topic();
Topic policies_topic();
Topic warnings_topic();
Topic ops_topic();
Topic reports_topic();
Topic commands_topic(const CLI::App& program);
Topic exit_codes_topic();

}  // namespace halfstep::app
