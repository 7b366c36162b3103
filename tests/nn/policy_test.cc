#include "precision/policy.h"

#include <doctest/doctest.h>

#include <ostream>

namespace halfstep::precision {
namespace {

std::string message_of(auto&& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.problems().at(0).message;
  }
  return "no error";
}

TEST_CASE("policy: names give compute and variable dtypes") {
  struct Case {
    std::string_view name;
    DType compute;
    DType variable;
  };
  constexpr Case k_cases[] = {
      {"float32", DType::float32, DType::float32},
      {"mixed_float16", DType::float16, DType::float32},
      {"mixed_bfloat16", DType::bfloat16, DType::float32},
      {"float16", DType::float16, DType::float16},
      {"bfloat16", DType::bfloat16, DType::bfloat16},
  };
  CHECK(all_policies().size() == std::size(k_cases));
  for (const Case& c : k_cases) {
    CAPTURE(c.name);
    const Policy* policy = policy_named(c.name);
    REQUIRE(policy != nullptr);
    CHECK(policy->name == c.name);
    CHECK(policy->compute == c.compute);
    CHECK(policy->variable == c.variable);
  }
  CHECK(policy_named("mixed_float32") == nullptr);
}

PolicyMap map_of(std::vector<Override> overrides) {
  return {*policy_named("mixed_float16"), std::move(overrides)};
}

TEST_CASE("policy map: an exact name wins, else one full match, else the default") {
  const PolicyMap map = map_of({{"re:^n[0-9]+$", "float32", {}},
                                {"n7", "mixed_bfloat16", {}},
                                {"re:conv.*", "bfloat16", {}}});
  struct Case {
    std::string_view layer;
    std::string_view policy;
    std::string_view reason;
  };
  constexpr Case k_cases[] = {
      {"n1", "float32", "override 're:^n[0-9]+$'"},
      {"n12", "float32", "override 're:^n[0-9]+$'"},
      {"n7", "mixed_bfloat16", "override 'n7'"},
      {"conv", "bfloat16", "override 're:conv.*'"},
      {"conv2d_1", "bfloat16", "override 're:conv.*'"},
      {"my_conv", "mixed_float16", "policy mixed_float16"},
      {"n1x", "mixed_float16", "policy mixed_float16"},
      {"n", "mixed_float16", "policy mixed_float16"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.layer);
    const ResolvedPolicy resolved = map.resolve(c.layer);
    CHECK(resolved.policy.name == c.policy);
    CHECK(resolved.reason == c.reason);
  }
}

TEST_CASE("policy map: a plain name is no prefix and no expression") {
  const PolicyMap map = map_of({{"n.", "float32", {}}});
  CHECK(map.resolve("n1").policy.name == "mixed_float16");
  CHECK(map.resolve("n.").policy.name == "float32");
}

TEST_CASE(
    "policy map: two expressions that match one layer are an error, unless its name decides") {
  const PolicyMap map =
      map_of({{"re:a.*", "float32", {}}, {"re:.*b", "float32", {}}, {"acb", "mixed_bfloat16", {}}});
  CHECK(message_of([&] { map.resolve("ab"); }) ==
        "layer 'ab' is matched by both 're:a.*' and 're:.*b'");
  CHECK(map.resolve("acb").policy.name == "mixed_bfloat16");
  CHECK(map.resolve("ax").policy.name == "float32");
}

TEST_CASE("policy map: no expression and no layer name is too long to be matched") {
  const PolicyMap map = map_of({{"re:(a|b)*", "float32", {}}, {"re:(a+)+!", "bfloat16", {}}});
  const std::string name(200'000, 'a');
  CHECK(map.resolve(name).policy.name == "float32");
  CHECK(map.resolve(name + "!").policy.name == "bfloat16");
  CHECK(map.resolve(name + "?").policy.name == "mixed_float16");
}

TEST_CASE("policy map: what cannot be meant is refused with its place") {
  CHECK(message_of([] { map_of({{"a", "float8", {}}}); }) == "unknown policy 'float8'");
  CHECK(message_of([] {
          map_of({{"a", "float32", {}}, {"a", "bfloat16", {}}});
        }) == "'a' is overridden twice");
  CHECK(message_of([] {
          map_of({{"re:(", "float32", {}}});
        }).starts_with("'re:(' is not a regular expression: "));
}

}  // namespace
}  // namespace halfstep::precision
