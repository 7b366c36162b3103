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
  options.rounds = 2;
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

/// A convolution and its gradients in float32.
TuneOptions convolutions() {
  TuneOptions options = small_workloads();
  std::erase_if(options.workloads, [](const Workload& w) {
    return is_matmul(w.kind) || w.kind == Workload::Kind::pack || w.dtype != DType::float32;
  });
  return options;
}

}  // namespace

TEST_CASE("tune: every op and dtype gets times, and the table reads back") {
  const std::optional<TuneResult> result = tune_here(small_workloads());
  if (!result) return;
  CHECK_FALSE(result->stopped);
  CHECK(result->peak_gflops > 0);
  CHECK(result->peaks.front().threads == 1);
  for (const backend::CostModel::Peak& peak : result->peaks) CHECK(peak.flops_per_second > 0);
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
  options.progress = [&](int, std::size_t, std::size_t) { ++begun; };
  options.stop = [&] { return begun == 2; };
  const std::optional<TuneResult> result = tune_here(options);
  if (!result) return;
  CHECK(result->stopped);
  CHECK(begun == 2);
}

TEST_CASE("tune: workloads timed below the processor's full rate are measured again") {
  TuneOptions options = convolutions();
  int pass = 0;
  std::vector<std::size_t> sizes;
  options.progress = [&](int now, std::size_t done, std::size_t all) {
    pass = now;
    if (done == 0) sizes.push_back(all);
  };
  // At full rate before the first timing, then at half of it until the third pass.
  std::size_t bursts = 0;
  options.burst_rate = [&] { return ++bursts <= 4 || pass >= 2 ? 1e9 : 5e8; };
  std::optional<TuneResult> result = tune_here(options);
  REQUIRE(result);
  CHECK(sizes == std::vector<std::size_t>{3, 3, 3});
  CHECK(result->disturbed == 0);

  // Within no time: every workload once, and the result says that it was disturbed.
  pass = 0;
  bursts = 0;
  sizes.clear();
  options.max_seconds = 0;
  result = tune_here(options);
  REQUIRE(result);
  CHECK(sizes == std::vector<std::size_t>{3});
  CHECK(result->disturbed == result->samples.size());
  for (const backend::CostModel::Sample& sample : result->samples) {
    CHECK(std::isfinite(sample.seconds));
  }
}

TEST_CASE("tune: a later and higher rate makes earlier timings disturbed ones") {
  TuneOptions options = convolutions();
  std::vector<std::size_t> sizes;
  options.progress = [&](int, std::size_t done, std::size_t all) {
    if (done == 0) sizes.push_back(all);
  };
  bool second = false;
  options.stop = [&, polls = 0]() mutable {
    second = ++polls >= 2;
    return false;
  };
  options.burst_rate = [&] { return second ? 1e9 : 5e8; };
  const std::optional<TuneResult> result = tune_here(options);
  REQUIRE(result);
  CHECK(sizes == std::vector<std::size_t>{3, 1});
  CHECK(result->disturbed == 0);
}

TEST_CASE("tune: one timing at full rate is not enough") {
  TuneOptions options = convolutions();
  options.max_seconds = 0;
  bool timing = false;
  int bursts = 0;
  options.progress = [&](int, std::size_t, std::size_t) { timing = true; };
  // The bursts around the first timing, as those before all timings, are at full rate.
  options.burst_rate = [&] { return !timing || ++bursts <= 2 ? 1e9 : 5e8; };
  const std::optional<TuneResult> result = tune_here(options);
  REQUIRE(result);
  CHECK(result->disturbed == result->samples.size());
}

TEST_CASE("tune: a single burst that seems too fast does not make all timings disturbed ones") {
  TuneOptions options = convolutions();
  options.max_seconds = 0;
  int bursts = 0;
  options.burst_rate = [&] { return ++bursts == 7 ? 4e9 : 1e9; };
  const std::optional<TuneResult> result = tune_here(options);
  REQUIRE(result);
  CHECK(result->disturbed == 0);
  CHECK(result->peak_gflops == 1);
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
