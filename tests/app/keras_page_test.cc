// The configs of the page for those who know Keras train as the page prints them.

#include <doctest/doctest.h>

#include "app/small_run.h"
#include "support/paths.h"

namespace halfstep::test {
namespace {

/// The code blocks of Markdown in a language.
std::vector<std::string> code_blocks(const std::string& page, const std::string& language) {
  const std::string fence = "\n```" + language + "\n";
  std::vector<std::string> blocks;
  for (std::size_t at = page.find(fence); at != std::string::npos; at = page.find(fence, at + 1)) {
    const std::size_t text = at + fence.size();
    blocks.push_back(page.substr(text, page.find("\n```", text) + 1 - text));
  }
  return blocks;
}

/// Reviews [80] of numbers of words, padded with 0.
constexpr std::string_view k_reviews = R"(
import numpy as np
rng = np.random.default_rng(0)
x = rng.integers(1, 20000, (80, 80), dtype=np.int32)
for review in x:
    review[rng.integers(1, 80):] = 0
y = rng.integers(0, 2, 80, dtype=np.int32)
np.savez("reviews.npz", x_train=x[:64], y_train=y[:64], x_test=x[64:], y_test=y[64:])
)";

}  // namespace

TEST_CASE("keras page: each config is valid and trains under each mixed policy and the rewrite") {
  const TemporaryDirectory directory;
  const std::string python = python_with_numpy(directory.path());
  if (python.empty()) {
    MESSAGE("python3-numpy is not there: configs with reviews were not run");
  } else {
    write_text(directory.path() / "reviews.py", std::string(k_reviews));
    REQUIRE(Process({python, "reviews.py"}, directory.path()).wait().exit_code == 0);
  }
  const std::vector<std::string> configs =
      code_blocks(read_text(source_dir() / "docs/from_keras.md"), "yaml");
  CHECK(configs.size() == 5);
  int reviews = 0;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    std::string config = configs[i];
    CAPTURE(config);
    const bool of_reviews = holds(config, "reviews.npz");
    reviews += of_reviews ? 1 : 0;
    if (of_reviews && python.empty()) continue;
    if (!of_reviews) {
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
  CHECK(reviews == 2);
}

}  // namespace halfstep::test
