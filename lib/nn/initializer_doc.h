#pragma once

#include <string_view>

namespace halfstep::nn {

/// The distribution of an initializer in a sentence; "" for a name that initializer_names() does
/// not have.
std::string_view initializer_doc(std::string_view name);

}  // namespace halfstep::nn
