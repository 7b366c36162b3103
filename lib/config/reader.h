#pragma once
// Reads a Node into a struct by its fields. Every problem is collected; nothing throws.

#include <functional>

#include "config/fields.h"

namespace halfstep::config {

class Reader final : public Fields {
 public:
  /// The path of a section that has a key, for the hint about an unknown key; "": no section has
  /// it.
  using Elsewhere = std::function<std::string(std::string_view key)>;

  /// Errors: reported to `diagnostics` when `node` is neither a map nor null.
  Reader(const Node& node,
         Diagnostics& diagnostics,
         std::span<const std::string_view> ignored = {},
         Elsewhere elsewhere = {});
  ~Reader() override;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void visit(std::string_view name, FieldRef field, const FieldOptions& options) override;
  /// Reports the keys of the outermost map that no field declares.
  void finish();

 protected:
  bool begin_section(std::string_view name,
                     std::optional<bool> present,
                     const FieldOptions& options) override;
  void end_section() override;
  std::size_t begin_list(std::string_view name,
                         std::size_t size,
                         const FieldOptions& options) override;
  void begin_element(std::size_t index) override;
  void end_list() override;

 private:
  struct Level;

  /// The node of a key of the innermost map, or nullptr; marks the key as known.
  const Node* take(std::string_view name, const FieldOptions& options);

  void report_unknown(const Level& level);

  Diagnostics& diagnostics_;
  Elsewhere elsewhere_;
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
