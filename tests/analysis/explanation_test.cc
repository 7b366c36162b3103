// Explanations of training steps: their shares, their hints, and two of them compared.

#include "analysis/explanation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <ostream>

#include "config/warning_codes.h"
#include "train/fixture.h"

namespace halfstep::analysis {
namespace {

Explanation explain(const char* policy) {
  train::TinyRun tiny;
  tiny.precision = policy;
  train::Run run(tiny.spec());
  return analysis::explain(run.session());
}

TEST_CASE("explanation: shares are those of the ops, and 16 bits have a reason") {
  const Explanation e = explain("{policy: mixed_bfloat16}");
  double flops = 0;
  for (const ExplainedOp& op : e.ops) {
    flops += op.info.flops;
    CHECK_FALSE(short_reason(e, op).empty());
    CHECK(e.find(op.info.name) == &op);
  }
  CHECK(e.flops == flops);
  CHECK(e.half_flops_share == 1);
  CHECK(e.casts > 0);
  CHECK(explain("{policy: float32}").half_flops_share == 0);
}

TEST_CASE("explanation: a comparison has the ops of both sides whose dtypes differ") {
  const Explanation single = explain("{policy: float32}"),
                    half = explain("{policy: mixed_float16}");
  const Comparison none = compare(single, single);
  CHECK(none.differing.empty());
  CHECK(none.equal == single.ops.size() - static_cast<std::size_t>(std::ranges::count(
                                              single.ops, true, &ExplainedOp::cast)));
  const Comparison changed = compare(single, half);
  CHECK(changed.equal > 0);
  CHECK_FALSE(changed.differing.empty());
  for (const auto& [before, after] : changed.differing) {
    CHECK(before->info.name == after->info.name);
    CHECK_FALSE(after->cast);
  }
}

TEST_CASE(
    "explanation: hints name a layer where they are about one, and the unit that is missing") {
  train::TinyRun tiny;
  tiny.precision = "{policy: mixed_float16}";
  train::Run run(tiny.spec());
  Explanation e = analysis::explain(run.session());
  e.arch = "avx2";
  const std::vector<config::Warning> found = hints(run.session(), e);
  const auto with = [&](std::string_view code) {
    return std::ranges::find(found, code, &config::Warning::code);
  };
  REQUIRE(with(config::k_no_matrix_unit) != found.end());
  CHECK(with(config::k_no_matrix_unit)->message.starts_with("avx2 multiplies no float16: "));
  CHECK(with(config::k_padded_extent) == found.end());
  e.arch = "sm_70";
  const std::vector<config::Warning> padded = hints(run.session(), e);
  const auto extent = std::ranges::find(padded, config::k_padded_extent, &config::Warning::code);
  REQUIRE(extent != padded.end());
  CHECK_FALSE(extent->where.path.empty());
}

}  // namespace
}  // namespace halfstep::analysis
