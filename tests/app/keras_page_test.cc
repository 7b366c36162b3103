// The configs of the page for those who know Keras train as the page prints them.

#include <doctest/doctest.h>

#include "app/small_run.h"
#include "support/code_blocks.h"
#include "support/paths.h"

namespace halfstep::test {
namespace {

/// Reviews [80] of numbers of words, padded with 0; sums [7] and answers [4] of numbers of
/// characters; houses, a picture and five numbers each; pictures with a digit and its centre;
/// cells [32, 32, 3] with a class for each pixel.
constexpr std::string_view k_page_samples = R"(
import numpy as np
rng = np.random.default_rng(0)
x = rng.integers(1, 20000, (80, 80), dtype=np.int32)
for review in x:
    review[rng.integers(1, 80):] = 0
y = rng.integers(0, 2, 80, dtype=np.int32)
np.savez("reviews.npz", x_train=x[:64], y_train=y[:64], x_test=x[64:], y_test=y[64:])
x, y = rng.integers(0, 12, (80, 7), dtype=np.int32), rng.integers(0, 12, (80, 4), dtype=np.int32)
np.savez("sums.npz", x_train=x[:64], y_train=y[:64], x_test=x[64:], y_test=y[64:])
x, z = rng.integers(0, 256, (80, 28, 28), dtype=np.uint8), rng.normal(size=(80, 5))
y = rng.integers(0, 3, 80, dtype=np.int32)
np.savez("houses.npz", x_train_image=x[:64], x_train_table=z[:64], y_train=y[:64],
         x_test_image=x[64:], x_test_table=z[64:], y_test=y[64:])
c = rng.normal(size=(80, 2))
np.savez("centres.npz", x_train=x[:64], y_train_digit=y[:64], y_train_centre=c[:64],
         x_test=x[64:], y_test_digit=y[64:], y_test_centre=c[64:])
x, y = rng.integers(0, 256, (80, 32, 32, 3), dtype=np.uint8), rng.integers(0, 3, (80, 32, 32, 1))
np.savez("cells.npz", x_train=x[:64], y_train=y[:64], x_test=x[64:], y_test=y[64:])
)";

}  // namespace

TEST_CASE("keras page: each config is valid and trains under each mixed policy and the rewrite") {
  const TemporaryDirectory directory;
  const std::string python = python_with_numpy(directory.path());
  if (python.empty()) {
    MESSAGE("python3-numpy is not there: configs with .npz files were not run");
  } else {
    write_text(directory.path() / "samples.py", std::string(k_page_samples));
    REQUIRE(Process({python, "samples.py"}, directory.path()).wait().exit_code == 0);
  }
  const std::vector<std::string> configs =
      code_blocks(read_text(source_dir() / "docs/from_keras.md"), "yaml");
  CHECK(configs.size() == 10);
  int of_files = 0;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    std::string config = configs[i];
    CAPTURE(config);
    const bool of_file = holds(config, ".npz");
    of_files += of_file ? 1 : 0;
    if (of_file && python.empty()) continue;
    if (!of_file) {
      const std::size_t name = config.find("name: mnist");
      REQUIRE(name != std::string::npos);
      config.replace(name, 11, "name: synthetic_digits, train_samples: 512, test_samples: 64");
    }
    write_text(directory.path() / "page.yaml", config);
    for (const auto& [flag, value] : {std::pair("--policy", "float32"),
                                      std::pair("--policy", "mixed_float16"),
                                      std::pair("--policy", "mixed_bfloat16"),
                                      std::pair("--rewrite", "auto")}) {
      CAPTURE(value);
      const Finished end = halfstep({"train",
                                     "page.yaml",
                                     flag,
                                     value,
                                     "--set",
                                     "training.max_steps=2",
                                     "--threads",
                                     "1",
                                     "--strict",
                                     "--run-dir",
                                     value + std::to_string(i)},
                                    directory.path());
      CAPTURE(end.err);
      CHECK(end.exit_code == 0);
      CHECK(holds(end.out, "test_loss"));
    }
  }
  CHECK(of_files == 6);
}

}  // namespace halfstep::test
