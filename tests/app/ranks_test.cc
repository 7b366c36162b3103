// Runs of several ranks: processes that Open MPI's mpirun starts on this machine.

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <ostream>
#include <random>
#include <string_view>
#include <thread>

#include "app/mpirun.h"
#include "app/small_run.h"

namespace halfstep::test {
namespace {

namespace fs = std::filesystem;

/// The processes of the ranks, by rank: mpirun starts them in this order.
std::vector<pid_t> rank_processes(const Process& process) {
  std::vector<pid_t> found;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    const std::size_t end = stat.rfind(')');
    if (end == std::string::npos) continue;
    // pid (name) state parent ...
    const bool is_rank = stat.find("(halfstep)") != std::string::npos;
    if (is_rank && std::stol(stat.substr(end + 4)) == process.id()) {
      found.push_back(static_cast<pid_t>(std::stol(name)));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// A long run that was left goes on and ends as if it had not been.
void check_resumes(const TemporaryDirectory& directory,
                   int ranks,
                   const std::string& run_dir,
                   const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"--resume", "auto"};
  words.insert(words.end(), more.begin(), more.end());
  const Finished rest = train_ranks(directory, ranks, run_dir, words);
  CAPTURE(rest.err);
  REQUIRE(rest.exit_code == 0);
  const std::string whole = "whole" + std::to_string(ranks);
  if (!fs::exists(directory.path() / whole)) {
    REQUIRE(train_ranks(directory, ranks, whole, more).exit_code == 0);
  }
  CHECK(report_of(directory, run_dir).at("reproducibility") ==
        report_of(directory, whole).at("reproducibility"));
}

}  // namespace

TEST_CASE("ranks: two ranks of mpirun train as one process does, and say so once") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished one = train(directory, "one");
  const Finished two = train_ranks(directory, 2, "two");
  CAPTURE(two.err);
  REQUIRE(one.exit_code == 0);
  REQUIRE(two.exit_code == 0);
  CHECK(lines(two.out).size() == lines(one.out).size());
  CHECK(holds(two.err, "2 ranks by Open MPI"));
  const Json alone = report_of(directory, "one"), together = report_of(directory, "two");
  CHECK(together.at("run").at("rank_count") == 2);
  CHECK(alone.at("run").at("rank_count") == 1);
  CHECK_FALSE(alone.contains("parallel"));
  const Json& parallel = together.at("parallel");
  REQUIRE(parallel.at("each").size() == 2);
  for (const Json& rank : parallel.at("each")) {
    CHECK(rank.at("step_seconds") >= rank.at("waited_seconds"));
    CHECK(rank.at("sent_bytes") > 4 * (784 * 16 + 16 * 10));
    CHECK(rank.at("saved_bytes") == 0);
    CHECK(rank.at("step_min") <= rank.at("step_median"));
    CHECK(rank.at("step_median") <= rank.at("step_max"));
    CHECK(rank.at("summing_seconds") > 0);
    CHECK(rank.at("summing_seconds") <= rank.at("step_seconds"));
  }
  CHECK(parallel.at("hidden_share") >= 0);
  CHECK(parallel.at("hidden_share") < 1);
  CHECK(parallel.at("sum_error").is_null());
  CHECK(holds(two.err, "2 ranks: step "));
  CHECK(holds(two.err, "computes longest"));
  const auto losses = [](const Json& report) { return report.at("history").at("val_loss"); };
  for (std::size_t epoch = 0; epoch < losses(alone).size(); ++epoch) {
    const double loss = losses(alone).at(epoch);
    CHECK(std::abs(losses(together).at(epoch).get<double>() - loss) < 1e-4 * loss);
  }
  CHECK(together.at("reproducibility").at("batch_order_hash") ==
        alone.at("reproducibility").at("batch_order_hash"));
}

TEST_CASE("ranks: a report says what sums in 16 bits save and lose") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  write_config(directory);
  const auto parallel = [&](const std::string& dtype) {
    const Finished end =
        train_ranks(directory, 2, dtype, {"--set", "parallel.all_reduce_dtype=" + dtype});
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    return report_of(directory, dtype).at("parallel");
  };
  const double whole = parallel("float32").at("each").at(0).at("sent_bytes");
  // Ulp / 2 of rounding each part and the sum, relative to numbers that may cancel.
  struct Case {
    std::string dtype;
    double least, most;
  };
  for (const Case& c : {Case{"bfloat16", 0x1p-12, 0x1p-7}, Case{"float16", 0x1p-15, 0x1p-10}}) {
    CAPTURE(c.dtype);
    const Json block = parallel(c.dtype);
    const Json& rank = block.at("each").at(0);
    CHECK(rank.at("sent_bytes").get<double>() + rank.at("saved_bytes").get<double>() ==
          doctest::Approx(whole).epsilon(1e-3));
    CHECK(rank.at("saved_bytes").get<double>() > 0.45 * whole);
    CHECK(block.at("sum_error").at("steps") >= 1);
    CHECK(block.at("sum_error").at("relative") > c.least);
    CHECK(block.at("sum_error").at("relative") < c.most);
  }
}

TEST_CASE(
    "ranks: a divided optimizer ends with the same bits in less memory, and can be evaluated") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  write_config(directory);
  const std::vector<std::string> mixed{"--policy", "mixed_bfloat16"};
  std::vector<std::string> divided = mixed;
  divided.insert(divided.end(), {"--set", "parallel.shard=optimizer"});
  REQUIRE(train_ranks(directory, 3, "whole", mixed).exit_code == 0);
  const Finished part = train_ranks(directory, 3, "part", divided);
  CAPTURE(part.err);
  REQUIRE(part.exit_code == 0);
  const Json whole = report_of(directory, "whole"), report = report_of(directory, "part");
  for (const char* hash : {"init_hash", "final_hash", "state_hash"}) {
    CHECK(report.at("reproducibility").at(hash) == whole.at("reproducibility").at(hash));
  }
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const auto of = [&](const Json& run, const char* key) {
      return run.at("parallel").at("each").at(rank).at(key).get<double>();
    };
    // 16-bit copies and a third of masters and slots; the weights travel in 16 bits.
    CHECK(of(report, "state_bytes") < 0.85 * of(whole, "state_bytes"));
    CHECK(of(report, "sent_bytes") < 0.8 * of(whole, "sent_bytes"));
  }
  CHECK(holds(part.err, " MB saved by 16 bits"));
  const Finished eval = halfstep({"eval", "part", "--json"}, directory.path());
  CAPTURE(eval.err);
  REQUIRE(eval.exit_code == 0);
  CHECK(Json::parse(eval.out).at("weights_hash") == report.at("reproducibility").at("final_hash"));
}

TEST_CASE("ranks: synchronized batch normalization, and its messages in the report") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  SmallRun run;
  run.layers.insert(run.layers.find("    - {type: dropout"),
                    "    - {type: batch_normalization, momentum: 0.5}\n");
  write_config(directory, run);
  REQUIRE(train(directory, "one").exit_code == 0);
  REQUIRE(train_ranks(directory, 2, "apart").exit_code == 0);
  CHECK(report_of(directory, "apart").at("parallel").at("sync_batch_norm").is_null());
  const Finished end =
      train_ranks(directory, 2, "together", {"--set", "parallel.sync_batch_norm=true"});
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(holds(end.err, "1 synchronized batch normalization: 2 messages, 0.384 kB of it"));
  const Json block = report_of(directory, "together").at("parallel").at("sync_batch_norm");
  CHECK(block.at("layers") == 1);
  CHECK(block.at("messages") == 2);
  // Mean and variance of 16 channels for each of two ranks, and two sums of gradients.
  CHECK(block.at("sent_bytes") == 4 * (2 * 2 * 16 + 2 * 16));
  const auto loss = [&](const char* of) {
    return report_of(directory, of).at("history").at("val_loss").at(1).get<double>();
  };
  CHECK(std::abs(loss("together") - loss("one")) < 1e-4 * loss("one"));
  // Sums of gradients begin between these messages, in the same order on four ranks.
  REQUIRE(train_ranks(directory, 4, "four", {"--set", "parallel.sync_batch_norm=true"}).exit_code ==
          0);
  CHECK(std::abs(loss("four") - loss("one")) < 1e-4 * loss("one"));
  CHECK(std::abs(loss("apart") - loss("one")) > 1e-4 * loss("one"));
}

TEST_CASE("ranks: explain --ranks tells the bytes that a run sends") {
  if (!can_run_ranks()) return;
  RunFolder folder;
  SmallRun run;
  run.layers.insert(run.layers.find("    - {type: dropout"),
                    "    - {type: batch_normalization, synchronized: true, name: norm}\n");
  // Gradients of 4.8 MB, whose sum is one of pieces.
  run.layers.replace(run.layers.find("units: 16"), 9, "units: 1500");
  write_config(folder.directory, run);
  REQUIRE(train(folder.directory, "one", {"--policy", "mixed_bfloat16"}).exit_code == 0);
  const auto loss = [&](const char* of) {
    return report_of(folder.directory, of).at("history").at("loss").at(1).get<double>();
  };
  for (const char* shard : {"none", "optimizer"}) {
    CAPTURE(shard);
    const std::vector<std::string> settings{
        "--policy", "mixed_bfloat16", "--set", std::string("parallel.shard=") + shard};
    const Finished end = train_ranks(folder.directory, 3, shard, settings);
    CAPTURE(end.err);
    REQUIRE(end.exit_code == 0);
    std::vector<std::string> words{"--ranks", "3", "--json"};
    words.insert(words.end(), settings.begin(), settings.end());
    const Json explained = Json::parse(folder.explain(words)).at("rank_messages");
    // To 16-bit roundings of the activations.
    CHECK(std::abs(loss(shard) - loss("one")) < 2e-2 * loss("one"));
    const Json parallel = report_of(folder.directory, shard).at("parallel");
    CHECK(explained.at("ranks") == 3);
    CHECK(explained.at("sent_bytes").get<double>() ==
          doctest::Approx(parallel.at("each").at(0).at("sent_bytes").get<double>()));
    double sum = 0, of_norm = 0;
    for (const Json& message : explained.at("messages")) {
      sum += message.at("sent_bytes").get<double>();
      const bool norm = holds(message.at("reason").get<std::string>(), "normalization");
      if (norm) of_norm += message.at("sent_bytes").get<double>();
    }
    CHECK(sum == doctest::Approx(explained.at("sent_bytes").get<double>()));
    CHECK(of_norm ==
          doctest::Approx(parallel.at("sync_batch_norm").at("sent_bytes").get<double>()));
  }
}

TEST_CASE("ranks: the library that carries the sums changes no bit") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  const Finished found = Process({"sh", "-c", "command -v mpirun.mpich"}, directory.path()).wait();
  if (found.exit_code != 0) {
    MESSAGE("skipped: there is no second MPI library (Debian's mpich)");
    return;
  }
  write_config(directory);
  REQUIRE(train_ranks(directory, 3, "open_mpi").exit_code == 0);
  std::vector<std::string> words{"mpirun.mpich", "-np", "3"};
  for (std::string& word :
       halfstep_words(train_arguments("mpich", {"--set", "parallel.timeout=600"}))) {
    words.push_back(std::move(word));
  }
  const Finished mpich = Process(words, directory.path()).wait();
  CAPTURE(mpich.err);
  REQUIRE(mpich.exit_code == 0);
  CHECK(holds(mpich.err, "3 ranks by MPICH"));
  CHECK(report_of(directory, "mpich").at("reproducibility") ==
        report_of(directory, "open_mpi").at("reproducibility"));
}

TEST_CASE("ranks: a killed rank ends the run with 8 and its name, and the run can go on") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  std::mt19937 random(20261125);
  for (int i = 0; i < 20; ++i) {
    const std::string run_dir = "killed" + std::to_string(i);
    const int size = i % 5 == 4 ? 4 : 2 + i % 2;
    // Half of them divide the optimizer, and go on from copies of the lost rank's slices.
    // Two ranks, which share no processor, take a tenth of the time for a step.
    std::vector<std::string> more{"--set", size == 2 ? "training.epochs=32" : "training.epochs=4"};
    if (i % 4 > 1) {
      more.insert(more.end(),
                  {"--set", "parallel.shard=optimizer", "--set", "parallel.copy_every=1"});
    }
    // By default mpirun kills the other ranks one second later, also before they have written
    // the checkpoint and the report.
    const bool left_alone = i % 3 > 0;
    std::vector<std::string> words{"env"};
    if (left_alone) words.emplace_back("OMPI_MCA_orte_enable_recovery=1");
    std::ranges::copy(mpirun_words(size, run_dir, more), std::back_inserter(words));
    Process process(words, directory.path());
    REQUIRE(wait_for_steps(process, directory, run_dir));
    const std::vector<pid_t> ranks = rank_processes(process);
    REQUIRE(std::ssize(ranks) == size);
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
    // mpirun reports the signal of the killed process, not the code of the others.
    const auto killed = random() % static_cast<unsigned>(size);
    ::kill(ranks[killed], SIGKILL);
    const Finished left = process.wait();
    CAPTURE(left.err);
    // Far below the timeout that the ranks would wait for each other.
    CHECK(left.seconds < 300);
    // Rank 0 writes the report.
    if (killed > 0) {
      const Json report = report_of(directory, run_dir);
      if (left_alone || report.at("status") != "running") {
        const std::string message = report.at("message");
        CHECK(report.at("status") == "rank_lost");
        CHECK(report.at("exit_code") == 8);
        CHECK(holds(message, "rank " + std::to_string(killed) + " ("));
        CHECK(holds(message, "checkpoint is that of step "));
      }
    } else if (left_alone) {
      CHECK(holds(left.err, "checkpoint is that of step "));
    }
    check_resumes(directory, size, run_dir, more);
  }
}

TEST_CASE("ranks: one that stops answering is named after parallel.timeout") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  for (const std::string shard : {"none", "optimizer"}) {
    CAPTURE(shard);
    const std::vector<std::string> settings{
        "--set", "parallel.timeout=2", "--set", "parallel.shard=" + shard};
    Process process(mpirun_words(2, shard, settings), directory.path());
    REQUIRE(wait_for_steps(process, directory, shard));
    const std::vector<pid_t> ranks = rank_processes(process);
    REQUIRE(ranks.size() == 2);
    ::kill(ranks[1], SIGSTOP);
    std::this_thread::sleep_for(std::chrono::seconds(4));
    ::kill(ranks[1], SIGCONT);
    const Finished left = process.wait();
    CAPTURE(left.err);
    CHECK(left.exit_code == 8);
    const std::string message = report_of(directory, shard).at("message");
    CAPTURE(message);
    CHECK(holds(message, "no answer from rank 1 ("));
    CHECK(holds(message, "for 2 s"));
    CHECK(holds(message, "checkpoint is that of step "));
    check_resumes(directory, 2, shard, {"--set", "parallel.shard=" + shard});
  }
}

TEST_CASE("ranks: SIGTERM to one of them ends all after the same step with 75") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  Process process(mpirun_words(2, "run", {}), directory.path());
  REQUIRE(wait_for_steps(process, directory, "run"));
  const std::vector<pid_t> ranks = rank_processes(process);
  REQUIRE(ranks.size() == 2);
  ::kill(ranks[1], SIGTERM);
  const Finished left = process.wait();
  CAPTURE(left.err);
  CHECK(left.exit_code == 75);
  CHECK(report_of(directory, "run").at("status") == "preempted");
  check_resumes(directory, 2, "run");
}

TEST_CASE("ranks: a checkpoint of four resumes on one, two and eight") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  write_config(directory);
  for (const std::string shard : {"none", "optimizer"}) {
    CAPTURE(shard);
    const std::vector<std::string> divided{"--set", "parallel.shard=" + shard};
    std::vector<std::string> first = divided, rest = divided;
    first.insert(first.end(), {"--max-steps", "5"});
    rest.insert(rest.end(), {"--resume", "auto"});
    REQUIRE(train_ranks(directory, 4, shard, first).exit_code == 0);
    std::optional<double> loss;
    for (const int ranks : {1, 2, 8}) {
      CAPTURE(ranks);
      const std::string run_dir = shard + std::to_string(ranks);
      fs::copy(directory.path() / shard, directory.path() / run_dir, fs::copy_options::recursive);
      const Finished end = ranks == 1 ? train(directory, run_dir, rest)
                                      : train_ranks(directory, ranks, run_dir, rest);
      CAPTURE(end.err);
      REQUIRE(end.exit_code == 0);
      const double own = report_of(directory, run_dir).at("test").at("loss");
      CHECK(std::abs(own - loss.value_or(own)) < 1e-4 * own);
      loss = own;
    }
  }
}

TEST_CASE("ranks: all leave together before the time limit of their job, and go on") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  write_config(directory, long_run());
  // The limit is looked up once: twelve seconds are left for the start and for training.
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  std::vector<std::string> words{
      "env", "SLURM_JOB_ID=80", "SLURM_JOB_END_TIME=" + std::to_string(now.count() + 3612)};
  for (std::string& word : mpirun_words(
           3,
           "run",
           {"--set", "training.stop_before_time_limit=3600", "--set", "training.epochs=1000"})) {
    words.push_back(std::move(word));
  }
  const Finished left = Process(words, directory.path()).wait();
  CAPTURE(left.err);
  CHECK(left.exit_code == 75);
  const Json report = report_of(directory, "run");
  CHECK(report.at("status") == "preempted");
  CHECK(report.at("message") == "the time limit is near; please requeue");
  const auto steps = report.at("steps").at("applied").get<std::int64_t>();
  const std::vector<std::string> further{
      "--set", "training.epochs=1000", "--max-steps", std::to_string(steps + 10)};
  std::vector<std::string> rest = further;
  rest.insert(rest.end(), {"--resume", "auto"});
  REQUIRE(train_ranks(directory, 3, "run", rest).exit_code == 0);
  REQUIRE(train_ranks(directory, 3, "whole", further).exit_code == 0);
  CHECK(final_hash(directory, "run") == final_hash(directory, "whole"));
}

TEST_CASE("ranks: errors of the config are printed once, those of one rank with its number") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished wrong = train_ranks(directory, 2, "run", {"--set", "training.epoch=2"});
  CHECK(wrong.exit_code == 2);
  const std::size_t first = wrong.err.find("unknown key 'epoch'");
  REQUIRE(first != std::string::npos);
  CHECK(wrong.err.find("unknown key 'epoch'", first + 1) == std::string::npos);

  const auto two_programs = [&](const std::vector<std::string>& of_second,
                                const std::string& environment = "HALFSTEP_MAX_ISA=amx") {
    std::vector<std::string> words = mpirun_words(1, "run", {});
    words.push_back(":");
    words.insert(words.end(), {"-np", "1", "env", environment});
    for (std::string& word : halfstep_words(train_arguments("run", of_second))) {
      words.push_back(std::move(word));
    }
    return Process(words, directory.path()).wait();
  };
  const Finished unlike = two_programs({"--seed", "8"});
  CHECK(unlike.exit_code == 2);
  CHECK(holds(unlike.err, "has another config than rank 0"));
  // A host with another processor would compute other bits.
  const Finished older =
      two_programs({"--set", "parallel.timeout=600"}, "HALFSTEP_MAX_ISA=baseline");
  CAPTURE(older.err);
  CHECK(older.exit_code == 2);
  CHECK(holds(older.err, "has another instruction set than rank 0"));
  CHECK(holds(older.err, "baseline"));
  CHECK(holds(older.err, "HALFSTEP_MAX_ISA"));
  const Finished missing = two_programs({"-c", "missing.yaml"});
  CHECK(missing.exit_code != 0);
  CHECK(holds(missing.err, "rank 1 ("));
  CHECK(holds(missing.err, "missing.yaml"));
}

TEST_CASE("ranks: doctor tells once how ranks reach each other, and which are unlike") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  // The second of two ranks may use the given instruction set.
  const auto doctor = [&](const std::string& isa, const std::vector<std::string>& arguments) {
    std::vector<std::string> words = mpirun();
    const std::vector<std::string> one = halfstep_words(arguments);
    words.insert(words.end(), {"-np", "1"});
    words.insert(words.end(), one.begin(), one.end());
    words.insert(words.end(), {":", "-np", "1", "env", "HALFSTEP_MAX_ISA=" + isa});
    words.insert(words.end(), one.begin(), one.end());
    return Process(words, directory.path()).wait();
  };
  const Finished like = doctor("amx", {"doctor", "--json"});
  CAPTURE(like.err);
  REQUIRE(like.exit_code == 0);
  const Json ranks = Json::parse(like.out).at("mpi").at("ranks");
  CHECK(ranks.at("launcher") == "mpirun");
  CHECK(ranks.at("count") == 2);
  REQUIRE(ranks.at("groups").size() == 1);
  CHECK(ranks.at("groups").at(0).at("ranks") == 2);
  CHECK(ranks.at("small_sum_seconds") > 0);
  CHECK(ranks.at("large_sum_seconds") > ranks.at("small_sum_seconds"));
  // Each of two ranks sends half of the numbers twice.
  const double bytes =
      ranks.at("sent_bytes_per_second").get<double>() * ranks.at("large_sum_seconds").get<double>();
  CHECK(bytes == doctest::Approx(16 << 20));
  if (ranks.at("groups").at(0).at("isa") == "baseline") return;
  const Finished unlike = doctor("baseline", {"doctor"});
  CAPTURE(unlike.out);
  CHECK(unlike.exit_code == 6);
  CHECK(holds(unlike.out, "ranks 2 by mpirun, thread level "));
  CHECK(holds(unlike.out, "HALFSTEP_MAX_ISA"));
}

TEST_CASE("ranks: other commands than train are one process, and say so") {
  if (!can_run_ranks()) return;
  const TemporaryDirectory directory;
  write_config(directory);
  std::vector<std::string> words = mpirun();
  words.insert(words.end(), {"-np", "2"});
  for (std::string& word : halfstep_words({"bench", "run.yaml"})) words.push_back(std::move(word));
  const Finished bench = Process(words, directory.path()).wait();
  CHECK(bench.exit_code == 2);
  CHECK(holds(bench.err, "bench is one process"));
}

}  // namespace halfstep::test
