#include "backend/cuda/vendor/real/choices.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <ostream>

#include "support/temporary_directory.h"

namespace halfstep::backend::cuda::real {
namespace {

constexpr const char* k_gpu = "NVIDIA H100 80GB HBM3";

TEST_CASE("choices: kept per GPU and library versions, the last of a key counts") {
  const test::TemporaryDirectory directory;
  const std::string folder = (directory.path() / "cache").string();
  {
    Choices choices(folder, k_gpu, "13.1");
    CHECK_FALSE(choices.find("[8,8]x[8,8] float16 -> float16"));
    choices.remember("[8,8]x[8,8] float16 -> float16", 3);
    choices.remember("[8,8]x[8,8] float16 -> float16, bias", 0);
    choices.remember("[8,8]x[8,8] float16 -> float16", 5);
  }
  const Choices again(folder, k_gpu, "13.1");
  CHECK(again.find("[8,8]x[8,8] float16 -> float16") == 5U);
  CHECK(again.find("[8,8]x[8,8] float16 -> float16, bias") == 0U);
  CHECK_FALSE(Choices(folder, k_gpu, "13.2").find("[8,8]x[8,8] float16 -> float16"));
  CHECK_FALSE(Choices(folder, "Tesla T4", "13.1").find("[8,8]x[8,8] float16 -> float16"));
}

TEST_CASE("choices: broken lines are passed over, a folder that cannot be made costs nothing") {
  const test::TemporaryDirectory directory;
  Choices(directory.path().string(), k_gpu, "1").remember("first", 1);
  const auto file = std::filesystem::directory_iterator(directory.path())->path();
  std::ofstream(file, std::ios::app)
      << "x second\n7\n\n-1 third\n2 fourth\n99999999999999999999999 k\n";
  const Choices choices(directory.path().string(), k_gpu, "1");
  CHECK(choices.find("first") == 1U);
  CHECK_FALSE(choices.find("second"));
  CHECK_FALSE(choices.find("third"));
  CHECK(choices.find("fourth") == 2U);

  Choices nowhere("/dev/null/folder", k_gpu, "1");
  CHECK_NOTHROW(nowhere.remember("key", 4));
  CHECK(nowhere.find("key") == 4U);
}

}  // namespace
}  // namespace halfstep::backend::cuda::real
