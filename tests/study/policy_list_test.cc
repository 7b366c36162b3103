#include "study/policy_list.h"

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "fixture.h"

namespace halfstep::study {
namespace {

TEST_CASE("policies: words become configs") {
  struct Case {
    std::string word;
    std::string_view policy;
    config::Rewrite rewrite;
    std::optional<DType> target;
  };
  const std::vector<Case> cases{
      {"float32", "float32", config::Rewrite::none, std::nullopt},
      {"mixed_float16", "mixed_float16", config::Rewrite::none, std::nullopt},
      {"rewrite", "float32", config::Rewrite::automatic, std::nullopt},
      {"rewrite:bfloat16", "float32", config::Rewrite::automatic, DType::bfloat16},
      {"rewrite:float16", "float32", config::Rewrite::automatic, DType::float16},
  };
  for (const Case& c : cases) {
    CAPTURE(c.word);
    const Variant variant = tiny_variant(c.word);
    CHECK(variant.name == c.word);
    CHECK(variant.spec.precision.policy == c.policy);
    CHECK(variant.spec.precision.rewrite == c.rewrite);
    CHECK(variant.spec.precision.target == c.target);
    CHECK(variant.spec.training.batch_size == 24);
  }
}

TEST_CASE("policies: spaces around words are of no account") {
  CHECK(split_policies(" float32, mixed_float16\t,x", "--policies") ==
        std::vector<std::string>{"float32", "mixed_float16", "x"});
  CHECK_THROWS_AS(split_policies("float32, ,x", "--policies"), UserError);
}

TEST_CASE("policies: unknown, empty and repeated words are named") {
  const auto said = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const UserError& error) {
      CHECK(error.kind() == ErrorKind::config);
      return error.what();
    }
    return "";
  };
  const auto variant = [](const std::string& word) { return [word] { tiny_variant(word); }; };
  CHECK(said(variant("mixed_flot16")).find("did you mean 'mixed_float16'") != std::string::npos);
  CHECK(said(variant("rewrite:float8")).find("unknown policy") != std::string::npos);
  CHECK(said([] { split_policies("float32,,x", "--policies"); }).find("empty") !=
        std::string::npos);
  CHECK(said([] { split_policies("", "--policies"); }).find("empty") != std::string::npos);
  CHECK(said([] { split_policies("a,b,a", "--policies"); }).find("twice") != std::string::npos);
  CHECK(split_policies("a,b:c", "--policies") == std::vector<std::string>{"a", "b:c"});
}

}  // namespace
}  // namespace halfstep::study
