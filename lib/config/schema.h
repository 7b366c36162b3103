#pragma once
// JSON Schema (draft-07) of a struct, from its fields.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"

namespace halfstep::config {

/// The types that other modules own. `kind` is the name of a field: of a Typed one, or of a node
/// (`layers`: a list of typed maps; `nodes`: a map of them; others: a number, or a typed map).
struct SchemaTypes {
  /// The name that kinds with the same types share in the schema, where they are described once:
  /// `initializer` of `kernel_initializer`. Unset: each kind is described by itself.
  std::function<std::string(std::string_view kind)> family;
  /// The known types of a kind; none: the schema accepts anything there.
  std::function<std::vector<std::string>(std::string_view kind)> names;
  /// Visits the fields of one type, with its usual values.
  std::function<void(std::string_view kind, std::string_view type, Fields& fields)> fields;
};

class SchemaWriter final : public Fields {
 public:
  explicit SchemaWriter(const SchemaTypes& types);
  ~SchemaWriter() override;
  SchemaWriter(const SchemaWriter&) = delete;
  SchemaWriter& operator=(const SchemaWriter&) = delete;

  void field(std::string_view name, bool& value, const About& about) override;
  void field(std::string_view name, std::int64_t& value, const About& about) override;
  void field(std::string_view name, double& value, const About& about) override;
  void field(std::string_view name, std::string& value, const About& about) override;
  void field(std::string_view name, DType& value, const About& about) override;
  void field(std::string_view name, Pair& value, const About& about) override;
  void field(std::string_view name, std::vector<std::int64_t>& value, const About& a) override;
  void field(std::string_view name, std::vector<double>& value, const About& about) override;
  void field(std::string_view name, std::vector<std::string>& value, const About& a) override;
  void field(std::string_view name, std::vector<NamedExtents>& value, const About& a) override;
  void field(std::string_view name, std::optional<bool>& value, const About& a) override;
  void field(std::string_view name, std::optional<std::int64_t>& v, const About& a) override;
  void field(std::string_view name, std::optional<double>& value, const About& a) override;
  void field(std::string_view name, std::optional<std::string>& value, const About& a) override;
  void field(std::string_view name,
             Typed& value,
             std::span<const std::string_view> types,
             const About& about) override;
  void field(std::string_view name,
             std::optional<Typed>& value,
             std::span<const std::string_view> types,
             const About& about) override;
  void node(std::string_view name, Node& value, const About& about) override;

  /// The schema as indented JSON text.
  std::string finish(std::string_view title);

 protected:
  void word(std::string_view name,
            std::size_t& index,
            std::span<const std::string_view> names,
            const About& about) override;
  void optional_word(std::string_view name,
                     std::optional<std::size_t>& index,
                     std::span<const std::string_view> names,
                     const About& about) override;
  bool begin_section(std::string_view name, const About& about) override;
  bool begin_optional_section(std::string_view name, bool present, const About& about) override;
  void end_section() override;
  std::size_t begin_list(std::string_view name, std::size_t size, const About& about) override;
  void begin_element(std::size_t index) override;
  void end_list() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The schema of a whole struct, with its present values as defaults.
template <class S>
std::string schema_of(S value, std::string_view title, const SchemaTypes& types = {}) {
  SchemaWriter writer(types);
  value.fields(writer);
  return writer.finish(title);
}

}  // namespace halfstep::config
