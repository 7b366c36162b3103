#include "core/log.h"

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace halfstep {
namespace {

TEST_CASE("log: messages up to the level reach the sink, in order and formatted") {
  const LogLevel before = log_level();
  std::vector<std::pair<LogLevel, std::string>> seen;
  set_log_sink([&](LogLevel level, std::string_view text) { seen.emplace_back(level, text); });
  set_log_level(LogLevel::warning);
  log(LogLevel::error, "e");
  log_warning("w{}", 1);
  log_info("i{}", 2);
  log_debug("d{}", 3);
  set_log_level(LogLevel::debug);
  log_info("i{}", 4);
  log_debug("d{}", 5);
  set_log_sink(nullptr);
  set_log_level(before);

  REQUIRE(seen.size() == 4);
  CHECK(seen[0] == std::pair{LogLevel::error, std::string("e")});
  CHECK(seen[1] == std::pair{LogLevel::warning, std::string("w1")});
  CHECK(seen[2].second == "i4");
  CHECK(seen[3] == std::pair{LogLevel::debug, std::string("d5")});
}

TEST_CASE("log: a debug message that is dropped is not formatted") {
  const LogLevel before = log_level();
  set_log_level(LogLevel::error);
  CHECK_NOTHROW(log_debug("{}", 1));
  set_log_level(before);
}

}  // namespace
}  // namespace halfstep
