#pragma once
// Reads the value of one field from one node; errors go to the diagnostics.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/about.h"
#include "config/node.h"
#include "core/dtype.h"

namespace halfstep::config {

/// Each returns whether `value` was read; on an error it stays as it was.
bool read_value(const Node& node, bool& value, const About& about, Diagnostics& out);
bool read_value(const Node& node, std::int64_t& value, const About& about, Diagnostics& out);
bool read_value(const Node& node, double& value, const About& about, Diagnostics& out);
bool read_value(const Node& node, std::string& value, const About& about, Diagnostics& out);
bool read_value(const Node& node, DType& value, const About& about, Diagnostics& out);
bool read_value(const Node& node, Pair& value, const About& about, Diagnostics& out);
bool read_value(const Node& node, std::vector<std::int64_t>& v, const About& a, Diagnostics& out);
bool read_value(const Node& node, std::vector<double>& value, const About& a, Diagnostics& out);
bool read_value(const Node& node, std::vector<std::string>& v, const About& a, Diagnostics& out);
bool read_value(const Node& node, std::vector<NamedExtents>& v, const About& a, Diagnostics& out);

/// The index of the name at `node` within `words`.
std::optional<std::size_t> read_word(const Node& node,
                                     std::span<const std::string_view> words,
                                     Diagnostics& out);

/// A name, or a map with the key `type`. Any name will do when `types` is empty.
std::optional<Typed> read_typed(const Node& node,
                                std::span<const std::string_view> types,
                                Diagnostics& out);

}  // namespace halfstep::config
