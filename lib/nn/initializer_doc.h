#pragma once

#include <string_view>

namespace halfstep::nn {

/// What an initializer draws, in a sentence; "" for a name that initializer_names() does not have.
std::string_view initializer_doc(std::string_view name);

}  // namespace halfstep::nn
