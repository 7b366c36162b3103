#include "precision/tf_environment.h"

#include <doctest/doctest.h>

#include <map>
#include <ostream>

namespace halfstep::precision {
namespace {

std::vector<Problem> apply(const std::map<std::string, std::string>& values,
                           RewriteOptions& options) {
  return apply_tensorflow_variables(
      [&](const std::string& name) -> std::optional<std::string> {
        constexpr std::string_view k_prefix = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_";
        REQUIRE(name.starts_with(k_prefix));
        const auto it = values.find(name.substr(k_prefix.size()));
        return it == values.end() ? std::nullopt : std::optional(it->second);
      },
      options);
}

}  // namespace

TEST_CASE("tf environment: nothing set changes nothing") {
  RewriteOptions options;
  CHECK(apply({}, options).empty());
  CHECK(options.level == Level::standard);
  CHECK(options.edits.empty());
  CHECK(options.emulate);
  CHECK_FALSE(options.ignore_performance);
}

TEST_CASE("tf environment: the level in any case; unknown text is the standard level") {
  RewriteOptions options;
  CHECK(apply({{"LEVEL", "Tensor_Cores_Only"}}, options).empty());
  CHECK(options.level == Level::tensor_cores_only);
  RewriteOptions unknown;
  const auto warnings = apply({{"LEVEL", "treat_infer_as_denied"}}, unknown);
  CHECK(unknown.level == Level::standard);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].hint == "did you mean 'treat_infer_as_deny'?");
  CHECK(warnings[0].where.path == "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_LEVEL");
}

TEST_CASE("tf environment: older list names apply after the newer ones") {
  RewriteOptions options;
  CHECK(apply({{"ALLOWLIST_ADD", "Cumsum,Cumprod"},
               {"INFERLIST_REMOVE", "AddV2"},
               {"WHITELIST_REMOVE", "Cumsum"},
               {"GRAYLIST_ADD", "AddV2"},
               {"BLACKLIST_ADD", ""},
               {"CLEARLIST_ADD", ",Roll,"}},
              options)
            .empty());
  REQUIRE(options.edits.size() == 2);
  CHECK(options.edits[0].lenient);
  const OpLists lists = make_lists(Mode::cuda, {}, Level::standard, options.edits);
  CHECK_FALSE(lists.of("Cumsum").has_value());
  CHECK(lists.of("Cumprod") == List::allow);
  CHECK(lists.of("AddV2") == List::infer);
  CHECK(lists.of("Roll") == List::clear);
  CHECK_FALSE(lists.of("").has_value());
}

TEST_CASE("tf environment: switches") {
  RewriteOptions options;
  options.device.arch = "";
  CHECK(apply({{"IGNORE_PERFORMANCE", "1"}, {"EMULATE_FP16", "False"}, {"SIMULATE_GPU", "true"}},
              options)
            .empty());
  CHECK(options.ignore_performance);
  CHECK_FALSE(options.emulate);
  CHECK(options.device.arch == "sm_80");
  CHECK(apply({{"IGNORE_PERFORMANCE", "maybe"}}, options).size() == 1);
  CHECK(options.ignore_performance);
}

}  // namespace halfstep::precision
