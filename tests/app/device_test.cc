// The choice of a run's device, and the message when it is not the requested one.

#include <doctest/doctest.h>

#include <ostream>
#include <string_view>
#include <vector>

#include "app/small_run.h"
#include "backend/cuda/cuda.h"
#include "support/paths.h"

namespace halfstep::test {
namespace {

Finished with_plugin(const std::string& plugin,
                     const std::vector<std::string>& arguments,
                     const TemporaryDirectory& directory) {
  std::vector<std::string> words{"env", "HALFSTEP_CUDA_PLUGIN=" + plugin};
  const std::vector<std::string> program = halfstep_words(arguments);
  words.insert(words.end(), program.begin(), program.end());
  return Process(words, directory.path()).wait();
}

}  // namespace

TEST_CASE("device: without a driver cuda ends with 6, auto goes on with a line") {
  if (backend::cuda::driver_in_sight()) {
    MESSAGE("there is an NVIDIA driver; not tried");
    return;
  }
  const TemporaryDirectory directory;
  write_config(directory);
  const std::vector<std::string> train{
      "train", "run.yaml", "--threads", "1", "--max-steps", "1", "--device"};
  const auto on = [&](const std::string& device) {
    std::vector<std::string> words = train;
    words.push_back(device);
    return halfstep(words, directory.path());
  };
  const Finished cuda = on("cuda");
  CHECK(cuda.exit_code == 6);
  CHECK(holds(cuda.err, "--device: device: error: cuda cannot be used here: no NVIDIA driver"));
  CHECK(holds(cuda.err, "use --device cpu"));
  const Finished automatic = on("auto");
  CHECK(automatic.exit_code == 0);
  CHECK(holds(automatic.err, "device: cpu (no NVIDIA driver)\n"));
  const Finished cpu = on("cpu");
  CHECK(cpu.exit_code == 0);
  CHECK_FALSE(holds(cpu.err, "device:"));
}

TEST_CASE("device: a plugin that is none is named with what is wrong with it") {
  const TemporaryDirectory directory;
  write_config(directory);
  write_text(directory.path() / "plugin.so", "no library\n");
  const std::vector<std::string> train{"train", "run.yaml", "--device", "cuda"};
  for (const auto& [plugin, reason] :
       {std::pair<std::string, std::string_view>{"./plugin.so", "cannot load ./plugin.so: "},
        {"./nothing.so", "cannot load ./nothing.so: "},
        {"libz.so.1", "libz.so.1 is not a plugin of this version of halfstep"}}) {
    CAPTURE(plugin);
    const Finished end = with_plugin(plugin, train, directory);
    CAPTURE(end.err);
    CHECK(end.exit_code == 6);
    CHECK(holds(end.err, reason));
  }
}

TEST_CASE("device: a plugin of another build is refused") {
  const TemporaryDirectory directory;
  write_config(directory);
  std::string bytes = read_text(emulated_plugin());
  const std::string id = backend::cuda::build_id(), other(id.size(), '0');
  for (std::size_t at = bytes.find(id); at != std::string::npos; at = bytes.find(id)) {
    bytes.replace(at, id.size(), other);
  }
  write_text(directory.path() / "old.so", bytes);
  const Finished end =
      with_plugin("./old.so", {"train", "run.yaml", "--device", "cuda"}, directory);
  CAPTURE(end.err);
  CHECK(end.exit_code == 6);
  CHECK(holds(end.err, "./old.so is of another build (" + other + ") than this program (" + id));
}

TEST_CASE("device: a report says what device computed, its memory, and no times it has not") {
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished end = with_plugin(
      emulated_plugin().string(),
      {"train", "run.yaml", "--max-steps", "6", "--run-dir", "run", "--json", "--device", "cuda"},
      directory);
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  const Json report = Json::parse(end.out);
  REQUIRE(report.at("context").at("gpu").size() == 1);
  const Json& gpu = report.at("context").at("gpu").at(0);
  CHECK(gpu.at("flavour") == "emulated");
  CHECK(gpu.at("memory_bytes") > 0);
  const Json& memory = report.at("memory");
  CHECK(memory.at("device_peak_allocated_bytes") >=
        memory.at("planned_state_bytes").get<std::int64_t>() +
            memory.at("planned_arena_bytes").get<std::int64_t>());
  const Json& time = report.at("step_time");
  CHECK(time.at("median") > 0);
  CHECK(time.at("breakdown_median").at("forward").is_null());
  CHECK(halfstep({"report", "validate", "run/report.json"}, directory.path()).exit_code == 0);
  const Finished shown = halfstep({"report", "show", "run"}, directory.path());
  CHECK(shown.exit_code == 0);
  CHECK_FALSE(holds(shown.out, "backward"));
}

TEST_CASE("device: the interval of a benchmark's median contains it") {
  const TemporaryDirectory directory;
  write_config(directory);
  const std::vector<std::string> bench{"bench", "run.yaml", "--synthetic", "--device", "cuda"};
  const std::vector<std::string> steps{"--warmup", "3", "--steps", "5", "--repeat", "3", "--json"};
  std::vector<std::string> words = bench;
  words.insert(words.end(), steps.begin(), steps.end());
  const Finished end = with_plugin(emulated_plugin().string(), words, directory);
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  // Steps of a repeat that are one measurement with steps of its warm-up count as one, too.
  const Json report = Json::parse(end.out);
  const Json& time = report.at("policies").at(0).at("step_time");
  CHECK(time.at("median_ci95").at(0) <= time.at("median"));
  CHECK(time.at("median") <= time.at("median_ci95").at(1));
  CHECK(time.at("median_ci95").at(0) < time.at("median_ci95").at(1));
}

}  // namespace halfstep::test
