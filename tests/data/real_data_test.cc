// The published data sets, where they are installed: HALFSTEP_DATA names a folder with them.

#include <doctest/doctest.h>

#include <cstdlib>

#include "data/dataset.h"
#include "files.h"
#include "support/paths.h"

namespace halfstep::data::testing {
namespace {

std::optional<Dataset> load_published(const std::string& name) {
  DataOptions options;
  options.name = name;
  options.verify = true;
  if (const char* folder = std::getenv("HALFSTEP_DATA")) options.search_paths.emplace_back(folder);
  options.search_paths.push_back((test::source_dir() / "datasets").string());
  try {
    return load_dataset(options);
  } catch (const UserError& error) {
    if (!contains(error.what(), "was not found")) throw;
    MESSAGE(name << " is not installed (set HALFSTEP_DATA); skipped");
    return std::nullopt;
  }
}

TEST_CASE("published data: MNIST and its relatives are what they should be") {
  for (const std::string name : {"mnist", "fashion_mnist"}) {
    CAPTURE(name);
    const std::optional<Dataset> set = load_published(name);
    if (!set) continue;
    CHECK(set->train.images.shape() == Shape{60'000, 28, 28, 1});
    CHECK(set->test.images.shape() == Shape{10'000, 28, 28, 1});
    CHECK(set->train.labels.as<std::int32_t>()[0] == (name == "mnist" ? 5 : 9));
    CHECK(set->files.size() == 4);
    CHECK(set->files[0].sha256.size() == 64);
    CHECK(set->sha256.size() == 64);
  }
}

}  // namespace
}  // namespace halfstep::data::testing
