// Numbers as reports write them: JSON knows no NaN and no infinity.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <string_view>

#include "report/json.h"

namespace halfstep::report {
namespace {

constexpr double k_nan = std::numeric_limits<double>::quiet_NaN();
constexpr double k_inf = std::numeric_limits<double>::infinity();

TEST_CASE("number: what is written reads back as exactly the value that was used") {
  CHECK(number(0.1).dump() == "0.1");
  CHECK(number(0.1F).dump() == "0.10000000149011612");
  CHECK(number(1.0 / 3).dump() == "0.3333333333333333");
  CHECK(number(-2.5e-300).dump() == "-2.5e-300");
  CHECK(number(32768).dump() == "32768.0");
  CHECK(number(std::optional<double>{}).is_null());
  CHECK(number(std::optional<double>{0.5}) == 0.5);
  const auto comes_back = [](double value) {
    const Json read = Json::parse(dump(Json{{"value", number(value)}}));
    return read.at("value").get<double>() == value;
  };
  // A loss scale is a power of two: 2^40 has 13 digits.
  for (int exponent = -149; exponent < 128; ++exponent) {
    CAPTURE(exponent);
    CHECK(comes_back(std::ldexp(1.0, exponent)));
  }
  for (float value = 1.0e-30F; value < 1.0e30F; value *= 1.37F) CHECK(comes_back(value));
  for (double value = 1.0e-300; value < 1.0e300; value *= 1.37) CHECK(comes_back(value));
}

TEST_CASE("number: a report names every number that is not finite and never writes one") {
  Json report{{"loss", number(k_nan)},
              {"block", {{"high", number(k_inf)}, {"fine", 1.5}, {"none", nullptr}}},
              {"list", {1.0, number(-k_inf), Json::array({number(k_nan)})}},
              {"dotted.key", number(k_inf)}};
  name_nonfinite(report);
  const Json expected{{"loss", "nan"},
                      {"block.high", "inf"},
                      {"list[1]", "-inf"},
                      {"list[2][0]", "nan"},
                      {"dotted.key", "inf"}};
  CHECK(report.at("nonfinite") == expected);
  CHECK(report.at("loss").is_null());
  CHECK(report.at("list")[1].is_null());
  CHECK(report.at("block").at("fine") == 1.5);
  // Nulls that were null before are not numbers.
  CHECK_FALSE(report.at("nonfinite").contains("block.none"));
  const Json again = Json::parse(dump(report));
  CHECK(again == report);

  Json clean{{"loss", 1.0}};
  name_nonfinite(clean);
  CHECK(clean.at("nonfinite") == Json::object());
}

TEST_CASE("number: bytes that are no UTF-8 are replaced, the rest stays") {
  CHECK(utf8("grün") == "grün");
  CHECK(utf8("a\xffz") == "a\xEF\xBF\xBDz");
  CHECK(utf8("") == "");
}

}  // namespace
}  // namespace halfstep::report
