#pragma once
// Hints for misspelled names.

#include <string>
#include <string_view>
#include <vector>

namespace halfstep {

/// The hint for a name that is not among `known`: the nearest one, then all of them where they are
/// few ("did you mean 'adam'? one of adagrad, adam, sgd"), else `see`, the command that lists them.
std::string choices(std::string_view given,
                    const std::vector<std::string>& known,
                    std::string_view see = {});

}  // namespace halfstep
