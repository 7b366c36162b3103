#pragma once

#include <span>
#include <string_view>

namespace halfstep::app {

/// A config to start from.
struct Template {
  std::string_view name;
  std::string_view text;
};

std::span<const Template> config_templates();

}  // namespace halfstep::app
