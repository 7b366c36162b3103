// Stateful layers in training: checkpoints, ranks, parts of a batch, skipped steps, evaluation.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <string>

#include "data/loader.h"
#include "support/temporary_directory.h"
#include "train/fixture.h"
#include "train/thread_ranks.h"

namespace halfstep::train {
namespace {

/// Rows of digits by a stateful layer; 160 samples are ten batches.
TinyRun stateful_rows(std::string_view layer = "lstm") {
  TinyRun tiny;
  tiny.layers = "\n    - {type: reshape, target_shape: [28, 28]}\n    - {name: it, type: " +
                std::string(layer) + R"(, units: 6, stateful: true}
    - {name: logits, type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  tiny.data = "{name: synthetic_digits, train_samples: 160, test_samples: 60, shuffle: false}";
  tiny.training = "{epochs: 2, batch_size: 16}";
  tiny.optimizer = "{type: sgd, learning_rate: 0.05}";
  return tiny;
}

/// The message of the warning with this code, or "".
std::string warning_of(const TinyRun& tiny, std::string_view code) {
  const Session session(tiny.spec(), digits(), cpu());
  for (const config::Warning& warning : session.warnings()) {
    if (warning.code == code) return warning.message;
  }
  return "";
}

bool is_zero(const std::string& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; });
}

double largest_difference(const plan::State& a, const plan::State& b, std::string_view variable) {
  const auto x = a.tensor(variable).span<float>(), y = b.tensor(variable).span<float>();
  REQUIRE(x.size() == y.size());
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
  }
  return most;
}

// The rows of the 60 digits that tests use, of 28 bytes, as 240 windows of 7 in a row.
constexpr std::int64_t k_window = 7, k_windows = 240, k_window_bytes = k_window * 28;

/// Samples of `windows` windows, with a class at each row; sample i begins with window firsts[i],
/// and rows behind the last window are 0.
data::Dataset windows_of_rows(const std::vector<std::int64_t>& firsts, std::int64_t windows) {
  data::Dataset dataset;
  dataset.name = "windows";
  dataset.classes = 10;
  dataset.sample_shape = {windows * k_window, 28};
  const std::int64_t samples = std::ssize(firsts), rows = windows * k_window;
  dataset.test.images = Tensor(DType::uint8, {samples, rows, 28});
  dataset.test.labels = Tensor(DType::int32, {samples, rows});
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t first = firsts[static_cast<std::size_t>(i)];
    std::memcpy(dataset.test.images.as<std::uint8_t>() + i * windows * k_window_bytes,
                digits().test.images.as<std::uint8_t>() + first * k_window_bytes,
                static_cast<std::size_t>(std::min(windows, k_windows - first) * k_window_bytes));
    for (std::int64_t row = 0; row < rows; ++row) {
      dataset.test.labels.as<std::int32_t>()[i * rows + row] =
          static_cast<std::int32_t>((first * k_window + row) % 10);
    }
  }
  dataset.train.images = dataset.test.images.clone();
  dataset.train.labels = dataset.test.labels.clone();
  return dataset;
}

/// A class for each row, by two layers that go on from the batch before.
TinyRun class_of_each_row(std::int64_t windows, bool stateful, std::string_view data = "") {
  const std::string keeps = stateful ? ", stateful: true" : "";
  TinyRun tiny;
  tiny.model = fmt::format("input: [{}, 28]\n  layers:", windows * k_window);
  tiny.layers = fmt::format(R"(
    - {{type: lstm, name: it, units: 6, return_sequences: true{0}}}
    - {{type: gru, units: 5, return_sequences: true{0}}}
    - {{type: dense, units: 10}}
    - {{type: softmax, dtype: float32}}
)",
                            keeps);
  tiny.data = fmt::format("{{format: npz, path: x.npz{}}}", data);
  return tiny;
}

std::vector<std::int64_t> every(std::int64_t step) {
  std::vector<std::int64_t> firsts;
  for (std::int64_t i = 0; i < k_windows; i += step) firsts.push_back(i);
  return firsts;
}

}  // namespace

TEST_CASE("stateful: a run that is stopped and resumed ends with the same bits") {
  for (const char* layer : {"lstm", "gru", "simple_rnn"}) {
    CAPTURE(layer);
    TinyRun tiny = stateful_rows(layer);
    tiny.training = "{epochs: 2, batch_size: 16, checkpoint_every: {steps: 3}}";
    Run whole(tiny.spec());
    const TrainResult want = whole.finish();
    CHECK(!is_zero(bytes_of(whole.state(), "it/state")));
    const test::TemporaryDirectory directory;
    {
      Run part(tiny.spec(), in_directory(directory.path().string()));
      part.trainer().advance(14);
    }
    Run rest(tiny.spec(), in_directory(directory.path().string()));
    CHECK(!is_zero(bytes_of(rest.state(), "it/state")));
    const TrainResult got = rest.finish();
    CHECK(got.resumed_from != "");
    CHECK(got.state_hash == want.state_hash);
    CHECK(bytes_of(rest.state(), "it/state") == bytes_of(whole.state(), "it/state"));
    // Another state is another run.
    tiny.layers.replace(tiny.layers.find("stateful: true"), 14, "stateful: false");
    CHECK(Run(tiny.spec()).finish().final_hash != want.final_hash);
  }
}

TEST_CASE("stateful: ranks and parts of a batch train as one process, with the same states") {
  config::RunSpec spec = stateful_rows().spec();
  Run whole(spec);
  const TrainResult want = whole.finish();
  for (const int ranks : {1, 2, 3}) {
    for (const std::int64_t parts : {1, 3}) {
      if (ranks == 1 && parts == 1) continue;
      CAPTURE(ranks);
      CAPTURE(parts);
      spec.training.accumulate_steps = parts;
      // Ranks that divide the optimizer have whole states too.
      const bool divides = ranks > 1 && parts > 1;
      spec.parallel.shard = divides ? config::ShardOf::optimizer : config::ShardOf::none;
      Hub hub(ranks);
      std::vector<std::string> hashes(static_cast<std::size_t>(ranks));
      run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
        backend::Backend backend = cpu();
        if (ranks > 1) backend.capabilities.ranks = communicator;
        Run run(spec, {}, digits(), backend);
        const TrainResult result = run.finish();
        hashes[static_cast<std::size_t>(communicator->rank())] = result.state_hash;
        if (communicator->rank() > 0) return;
        // Sums of 16 samples of 28 steps in float32, over 20 steps.
        check_same_training(result, want, 1e-4);
        for (const char* variable : {"it/state", "it/carry"}) {
          CHECK(largest_difference(run.state(), whole.state(), variable) < 1e-4);
        }
      });
      for (const std::string& hash : hashes) CHECK(hash == hashes[0]);
    }
  }
}

TEST_CASE("stateful: a skipped step leaves the state as it was before") {
  // The second batch of the first epoch.
  const data::Dataset dataset = digits_with_nan(20);
  for (const std::int64_t parts : {1, 4}) {
    CAPTURE(parts);
    TinyRun tiny = stateful_rows();
    tiny.precision = "{policy: mixed_float16, loss_scale: {initial: 1024}}";
    config::RunSpec spec = tiny.spec();
    spec.training.accumulate_steps = parts;
    Run run(spec, {}, dataset);
    run.trainer().advance(1);
    const auto state = [&] {
      return bytes_of(run.state(), "it/state") + bytes_of(run.state(), "it/carry");
    };
    const std::string before = state();
    CHECK(!is_zero(before));
    run.trainer().advance(1);
    CHECK(run.record().skips.size() == 1);
    CHECK(state() == before);
    run.trainer().advance(1);
    CHECK(state() != before);
  }
}

TEST_CASE("stateful: evaluation and prediction go through streams as through whole sequences") {
  const data::Dataset windows = windows_of_rows(every(1), 1);
  for (const std::string_view precision : {"{policy: float32}",
                                           "{policy: mixed_bfloat16}",
                                           "{policy: mixed_float16}",
                                           "{rewrite: auto, target: bfloat16}"}) {
    // Streams of 4 windows; of 35 and 34; of one.
    for (const std::int64_t batch : {60, 7, 240}) {
      CAPTURE(precision);
      CAPTURE(batch);
      TinyRun tiny = class_of_each_row(1, true, ", streams: true");
      tiny.precision = precision;
      tiny.training = fmt::format("{{batch_size: 16, validation_batch_size: {}}}", batch);
      Run run(tiny.spec(), {}, windows, backend::cpu_reference());
      run.trainer().advance(3);
      const std::string before = bytes_of(run.state(), "it/state");
      CHECK(!is_zero(before));
      const Evaluation got = evaluate(run.session(), run.session().test_split());
      const Tensor outputs = std::move(predict(run.session(), windows.test.images.view())[0]);
      CHECK(evaluate(run.session(), run.session().test_split()).metrics == got.metrics);
      CHECK(bytes_of(run.state(), "it/state") == before);

      const std::int64_t each = k_windows / batch, longer = k_windows % batch;
      const std::int64_t most = each + (longer > 0 ? 1 : 0);
      std::vector<std::int64_t> firsts;
      for (std::int64_t i = 0; i < batch; ++i) firsts.push_back(i * each + std::min(i, longer));
      const data::Dataset sequences = windows_of_rows(firsts, most);
      TinyRun unbroken = class_of_each_row(most, false);
      unbroken.precision = precision;
      unbroken.training = tiny.training;
      config::RunSpec spec = unbroken.spec();
      spec.training.batch_size = 1;
      Session whole(spec, sequences, backend::cpu_reference());
      whole.state().set_weights(run.state().weights());
      const Tensor want = std::move(predict(whole, sequences.test.images.view())[0]);
      constexpr std::int64_t k_outputs = k_window * 10;
      std::int64_t wrong = 0, right = 0;
      for (std::int64_t i = 0; i < k_windows; ++i) {
        const std::int64_t stream =
            std::upper_bound(firsts.begin(), firsts.end(), i) - firsts.begin() - 1;
        const std::int64_t in_stream = i - firsts[static_cast<std::size_t>(stream)];
        wrong += std::memcmp(outputs.as<float>() + i * k_outputs,
                             want.as<float>() + (stream * most + in_stream) * k_outputs,
                             k_outputs * sizeof(float)) != 0;
      }
      CHECK(wrong == 0);
      // The predictions are those of the outputs, and the metrics are of all of them.
      REQUIRE(std::ssize(got.outputs[0].predictions) == k_windows * k_window);
      for (std::int64_t row = 0; row < k_windows * k_window; ++row) {
        const float* scores = outputs.as<float>() + row * 10;
        const std::int64_t best = std::max_element(scores, scores + 10) - scores;
        wrong += got.outputs[0].predictions[static_cast<std::size_t>(row)] != best;
        right += best == windows.test.labels.as<std::int32_t>()[row];
      }
      CHECK(wrong == 0);
      CHECK(got.metrics.at("accuracy") ==
            doctest::Approx(static_cast<double>(right) / (k_windows * k_window)));
      std::int64_t on_diagonal = 0;
      for (std::int64_t c = 0; c < 10; ++c) on_diagonal += got.outputs[0].confusion.at(c, c);
      CHECK(on_diagonal == right);
      if (longer > 0) continue;
      const Evaluation expected = evaluate(whole, whole.test_split());
      CHECK(got.metrics.at("loss") == doctest::Approx(expected.metrics.at("loss")));
      CHECK(got.outputs[0].confusion.counts == expected.outputs[0].confusion.counts);
    }
  }
}

TEST_CASE("stateful: evaluation in file order goes on at each position, on several ranks too") {
  // Window k of stream j is sample 60 k + j, as Keras takes them.
  std::vector<std::int64_t> firsts;
  for (std::int64_t i = 0; i < k_windows; ++i) firsts.push_back(i % 60 * 4 + i / 60);
  const data::Dataset in_file_order = windows_of_rows(firsts, 1);
  const data::Dataset in_streams = windows_of_rows(every(1), 1);
  const auto evaluated = [](const data::Dataset& dataset,
                            std::string_view order,
                            const backend::Backend& backend,
                            bool stateful = true) {
    TinyRun tiny = class_of_each_row(1, stateful, order);
    tiny.training = "{batch_size: 60}";
    Run run(tiny.spec(), {}, dataset, backend);
    return evaluate(run.session(), run.session().test_split());
  };
  const Evaluation want = evaluated(in_streams, ", streams: true", cpu());
  const Evaluation got = evaluated(in_file_order, ", shuffle: false", cpu());
  CHECK(got.metrics == want.metrics);
  CHECK(got.outputs[0].confusion.counts == want.outputs[0].confusion.counts);
  Hub hub(3);
  run_ranks(hub, [&](const std::shared_ptr<comm::Communicator>& communicator) {
    backend::Backend backend = cpu();
    backend.capabilities.ranks = communicator;
    const Evaluation of_rank = evaluated(in_streams, ", streams: true", backend);
    CHECK(of_rank.metrics == want.metrics);
    CHECK(of_rank.outputs[0].confusion.counts == want.outputs[0].confusion.counts);
    CHECK(of_rank.outputs[0].predictions == want.outputs[0].predictions);
  });
  // Shuffled samples have no batch before: as the layers that keep no state.
  const Evaluation shuffled = evaluated(in_file_order, "", cpu());
  CHECK(shuffled.metrics == evaluated(in_file_order, "", cpu(), false).metrics);
  CHECK(shuffled.metrics != want.metrics);
}

TEST_CASE("stateful: states that are reset in each epoch begin it with zeros") {
  TinyRun tiny = stateful_rows();
  const std::string goes_on = Run(tiny.spec()).finish().state_hash;
  config::RunSpec spec = tiny.spec();
  Run by_hand(spec);
  by_hand.trainer().advance(10);
  by_hand.state().reset_states();
  CHECK(is_zero(bytes_of(by_hand.state(), "it/carry")));
  const std::string want = by_hand.finish().state_hash;
  spec.training.reset_states = true;
  CHECK(Run(spec).finish().state_hash == want);
  CHECK(want != goes_on);
  // A checkpoint at the end of an epoch, and one within it.
  spec.training.checkpoint_every.steps = 5;
  for (const std::int64_t steps : {10, 15}) {
    const test::TemporaryDirectory directory;
    {
      Run part(spec, in_directory(directory.path().string()));
      part.trainer().advance(steps);
    }
    Run rest(spec, in_directory(directory.path().string()));
    CHECK(!is_zero(bytes_of(rest.state(), "it/state")));
    CHECK(rest.finish().state_hash == want);
  }
}

TEST_CASE("stateful: a smaller last batch is an error, and shuffled samples are a warning") {
  TinyRun tiny = stateful_rows();
  tiny.training = "{epochs: 2, batch_size: 24}";
  try {
    Run run(tiny.spec());
    FAIL("no error");
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::config);
    const Problem& problem = error.problems().front();
    CHECK(problem.where.line == 8);
    CHECK(problem.where.path == "model.layers[1]");
    CHECK(problem.message ==
          "a stateful layer with a changed batch size: 160 training samples in batches of 24 leave "
          "16 for the last one, and the state has a row for each sample of a batch");
  }
  tiny.data.insert(tiny.data.size() - 1, ", streams: true");
  CHECK(Run(tiny.spec()).finish().counters.applied == 12);
  CHECK(warning_of(tiny, "W119") ==
        "drops the last 16 of 160 training samples: each of 24 streams has 6; batches of 20 "
        "drop none");
  tiny.training = "{batch_size: 20}";
  CHECK(warning_of(tiny, "W119") == "");
  const auto warned = [](const TinyRun& of) { return warning_of(of, "W118") != ""; };
  tiny = stateful_rows();
  CHECK(!warned(tiny));
  tiny.data = k_unsplit_digits;
  CHECK(warned(tiny));
  tiny.data.insert(tiny.data.size() - 1, ", streams: true");
  CHECK(!warned(tiny));
  tiny.data = k_unsplit_digits;
  tiny.layers = stateful_rows("bidirectional, layer: {type: lstm").layers;
  tiny.layers.replace(tiny.layers.find("stateful: true}"), 15, "stateful: true}}");
  CHECK(warned(tiny));
}

TEST_CASE("stateful: a warning names settings that have no effect without a stateful layer") {
  TinyRun tiny = stateful_rows();
  CHECK(warning_of(tiny, "W120") == "");
  tiny.data.insert(tiny.data.size() - 1, ", streams: true");
  CHECK(warning_of(tiny, "W120") == "");
  tiny.layers.erase(tiny.layers.find(", stateful: true"), 16);
  CHECK(warning_of(tiny, "W120") == "is for stateful layers, and the model has none");
}

}  // namespace halfstep::train
