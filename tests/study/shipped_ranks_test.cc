// The configs of configs/ on several ranks, each a thread of this process, on random data.

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <set>
#include <string>

#include "config/load.h"
#include "study/random_data.h"
#include "support/paths.h"
#include "train/fixture.h"
#include "train/thread_ranks.h"

namespace halfstep::study {
namespace {

constexpr std::int64_t k_steps = 3;
constexpr std::int64_t k_batch = 8;

/// Three small steps of a config in float32, with synchronized batch normalization.
config::RunSpec first_steps(const std::filesystem::path& file) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  Diagnostics diagnostics;
  config::RunSpec spec =
      config::parse_run_spec(config::load_text(text, file.string(), diagnostics), diagnostics);
  diagnostics.throw_if_any();
  spec.precision = {};
  spec.training.batch_size = k_batch;
  spec.training.max_steps = k_steps;
  spec.parallel.sync_batch_norm = true;
  return spec;
}

/// The losses of the steps, each of which follows updates by all gradients.
std::vector<double> losses(const config::RunSpec& spec,
                           const data::Dataset& dataset,
                           const std::shared_ptr<comm::Communicator>& ranks) {
  backend::Backend backend = train::cpu();
  backend.capabilities.ranks = ranks;
  train::Run run(spec, {}, dataset, backend);
  run.finish();
  std::vector<double> losses;
  for (const train::StepInfo& step : run.record().steps) losses.push_back(step.loss);
  return losses;
}

}  // namespace

TEST_CASE("ranks: the first steps of each shipped config are those of one process") {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() / "configs")) {
    if (entry.path().extension() == ".yaml") files.insert(entry.path());
  }
  CHECK(files.size() >= 15);
  for (const std::filesystem::path& file : files) {
    CAPTURE(file.string());
    const config::RunSpec spec = first_steps(file);
    const data::Dataset dataset = random_samples(describe_data(spec), 5 * k_batch, 1);
    const std::vector<double> alone = losses(spec, dataset, nullptr);
    REQUIRE(alone.size() == k_steps);
    for (const int ranks : {2, 4}) {
      CAPTURE(ranks);
      train::Hub hub(ranks);
      std::vector<std::vector<double>> each(static_cast<std::size_t>(ranks));
      train::run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
        each[static_cast<std::size_t>(communicator->rank())] = losses(spec, dataset, communicator);
      });
      for (std::size_t step = 0; step < alone.size(); ++step) {
        CAPTURE(step);
        for (const auto& of_rank : each) CHECK(of_rank.at(step) == each[0].at(step));
        // Sums of up to 4096 terms, in another order, in each step so far.
        const double tolerance = epsilon(DType::float32) * std::sqrt(4096.0) *
                                 static_cast<double>(step + 1) * std::max(1.0, alone[step]);
        CHECK(std::abs(each[0].at(step) - alone[step]) <= tolerance);
      }
    }
  }
}

}  // namespace halfstep::study
