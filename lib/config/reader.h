#pragma once
// Reads a Node into a struct by its fields. Every problem is collected; nothing throws.

#include <memory>

#include "config/fields.h"

namespace halfstep::config {

class Reader final : public Fields {
 public:
  /// Errors: reported to `diagnostics` when `node` is neither a map nor null.
  Reader(const Node& node,
         Diagnostics& diagnostics,
         std::span<const std::string_view> ignored = {});
  ~Reader() override;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

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

  /// Reports the keys of the outermost map that no field declares.
  void finish();

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
  struct Level;

  /// The node of a key of the innermost map, or nullptr; marks the key as known.
  const Node* take(std::string_view name, const About& about);
  template <class T>
  void read_field(std::string_view name, T& value, const About& about);
  template <class T>
  void read_optional(std::string_view name, std::optional<T>& value, const About& about);

  Diagnostics& diagnostics_;
  std::vector<Level> levels_;
};

template <class S>
void read(const Node& node,
          S& value,
          Diagnostics& diagnostics,
          std::span<const std::string_view> ignored) {
  Reader reader(node, diagnostics, ignored);
  value.fields(reader);
  reader.finish();
}

}  // namespace halfstep::config
