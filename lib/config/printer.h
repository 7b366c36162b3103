#pragma once
// Converts a struct back into a Node, by its fields; reading the Node gives an equal struct.

#include <cstddef>
#include <vector>

#include "config/fields.h"

namespace halfstep::config {

class Printer final : public Fields {
 public:
  /// Values equal to those in `defaults` (a printed fresh struct) are left out unless required.
  explicit Printer(const Node* defaults = nullptr);

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
  /// A null node is left out.
  void node(std::string_view name, Node& value, const About& about) override;

  Node finish();

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
  struct Level {
    Node node;
    const Node* defaults = nullptr;
    std::string key;  ///< in the parent
    About about;
    bool in_list = false;
    bool absent = false;
  };

  void add(std::string_view name, Node value, const About& about);
  void open(std::string_view name, Node::Kind kind, const About& about);

  std::vector<Level> levels_;
};

/// Whether two nodes hold the same values; positions are ignored.
bool same(const Node& a, const Node& b);

/// The struct as a Node; with `defaults`, only the values that differ from them.
template <class S>
Node to_node(S value, const Node* defaults = nullptr) {
  Printer printer(defaults);
  value.fields(printer);
  return printer.finish();
}

}  // namespace halfstep::config
