#include "core/printable.h"

#include <doctest/doctest.h>

#include <ostream>
#include <string>

#include "core/error.h"
#include "core/log.h"

namespace halfstep {
namespace {

TEST_CASE("printable: letters of all alphabets stay as they are") {
  for (const std::string_view text : {"", "a b~", "größer", "層", "𝛼", "±0.2pp"}) {
    CHECK(printable(text) == text);
    CHECK(printable_lines(text) == text);
  }
}

TEST_CASE("printable: what a terminal obeys becomes an escape") {
  CHECK(printable("\x1b[31mred\x1b[0m") == "\\x1b[31mred\\x1b[0m");
  CHECK(printable("a\nb\tc\rd\x7f") == "a\\nb\\tc\\rd\\x7f");
  CHECK(printable(std::string_view("\0x", 2)) == "\\x00x");
  CHECK(printable("\xc2\x9b"
                  "2J") == "\\u009b2J");
  CHECK(printable("\x9b"
                  "2J") == "\\x9b2J");
  CHECK(printable("user\xe2\x80\xaegnp.exe") == "user\\u202egnp.exe");
  CHECK(printable("caf\xe9") == "caf\\xe9");
  CHECK(printable("\xed\xa0\x80\xf5") == "\\xed\\xa0\\x80\\xf5");
  CHECK(printable_lines("a\n\tb\x1b]0;t\x07\r") == "a\n\tb\\x1b]0;t\\x07\\r");
}

TEST_CASE("shortened: long text ends at a whole character") {
  CHECK(truncated("abc", 3) == "abc");
  CHECK(truncated("abcd", 3) == "abc...");
  CHECK(truncated("a\xe5\xb1\xa4z", 3) == "a...");
  CHECK(truncated("a\xe5\xb1\xa4z", 4) == "a\xe5\xb1\xa4...");
  CHECK(truncated("\x80\x80\x80", 1) == "...");
}

TEST_CASE("printable: an error's text and a message hold no escape sequence of a file's name") {
  const UserError error(
      ErrorKind::data, {"\x1b[2J.npz", 3, 4, "a\nb"}, "has '\x1b]0;x\x07'", "or \x9b");
  CHECK(std::string(error.what()) ==
        "\\x1b[2J.npz:3:4: a\\nb: error: has '\\x1b]0;x\\x07' (or \\x9b)");
  CHECK(error.problems()[0].where.file == "\x1b[2J.npz");

  std::string written;
  set_log_sink([&](LogLevel, std::string_view message) { written = message; });
  log_warning("{} is odd\nand so on", "\x1b[1m");
  set_log_sink({});
  CHECK(written == "\\x1b[1m is odd\nand so on");
}

}  // namespace
}  // namespace halfstep
