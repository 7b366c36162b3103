#include "study/tune.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <ostream>
#include <set>

#include "core/error.h"
#include "core/parallel.h"

namespace halfstep::study {
namespace {

using backend::Workload;

/// On one thread of this processor; nothing where tune() refuses to work.
std::optional<TuneResult> tune_here(const TuneOptions& options) {
  const int threads = thread_count();
  std::optional<TuneResult> result;
  try {
    result = tune(backend::cpu_backend(1), options);
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::unavailable);
  }
  set_thread_count(threads);
  return result;
}

TuneOptions small_workloads() {
  TuneOptions options;
  options.rounds = 1;
  options.workloads.clear();
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const std::int64_t products = dtype == DType::float16 ? 3 : 1;
    options.workloads.push_back({Workload::Kind::matmul, dtype, products, {16, 32, 1, 1, 1}});
    options.workloads.push_back({Workload::Kind::pack, dtype, products, {1, 32, 1, 1, 1}});
    for (const auto kind : {Workload::Kind::conv_forward,
                            Workload::Kind::conv_backward_data,
                            Workload::Kind::conv_backward_filter}) {
      options.workloads.push_back({kind, dtype, products, {16, 1, 8, 9, 4}});
    }
  }
  return options;
}

}  // namespace

TEST_CASE("tune: every op and dtype gets times, and the table reads back") {
  const std::optional<TuneResult> result = tune_here(small_workloads());
  if (!result) return;
  CHECK_FALSE(result->stopped);
  CHECK(result->peak_gflops > 0);
  CHECK(result->disturbed <= result->samples.size());
  std::set<std::string> seen;
  for (const backend::CostModel::Sample& sample : result->samples) {
    CHECK(std::isfinite(sample.seconds));
    CHECK(sample.seconds > 0);
    seen.insert(fmt::format("{} {}", name(sample.workload.kind), name(sample.workload.dtype)));
  }
  for (const char* kind :
       {"matmul", "conv_forward", "conv_backward_data", "conv_backward_filter"}) {
    for (const char* dtype : {"float32", "bfloat16", "float16"}) {
      CHECK(seen.contains(fmt::format("{} {}", kind, dtype)));
    }
  }
  const backend::CostModel model("test", result->samples);
  CHECK(backend::CostModel::parse(model.text(), "test").text() == model.text());
}

TEST_CASE("tune: it stops when asked, before the next workload") {
  TuneOptions options = small_workloads();
  std::size_t begun = 0;
  options.progress = [&](std::size_t, std::size_t) { ++begun; };
  options.stop = [&] { return begun == 2; };
  const std::optional<TuneResult> result = tune_here(options);
  if (!result) return;
  CHECK(result->stopped);
  CHECK(begun == 2);
}

TEST_CASE("tune: the list of workloads has each one once") {
  std::set<std::string> seen;
  for (const Workload& w : tuned_workloads()) {
    CHECK(w.flops() > 0);
    CHECK(seen
              .insert(fmt::format(
                  "{} {} {} {}", name(w.kind), name(w.dtype), w.products, fmt::join(w.shape, " ")))
              .second);
  }
}

}  // namespace halfstep::study
