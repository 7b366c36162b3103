#include "core/pattern.h"

#include <re2/re2.h>

namespace halfstep {
namespace {

re2::RE2::Options options() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  return options;
}

}  // namespace

Pattern::Pattern(const std::string& expression)
    : expression_(std::make_shared<const re2::RE2>(expression, options())) {}

const std::string& Pattern::problem() const { return expression_->error(); }

bool Pattern::matches(std::string_view text) const {
  return re2::RE2::FullMatch({text.data(), text.size()}, *expression_);
}

}  // namespace halfstep
