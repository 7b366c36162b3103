// The manual page and the completion script, both generated from the flags of the command line.

#include <doctest/doctest.h>

#include <set>
#include <string_view>

#include "app/small_run.h"

namespace halfstep::test {

TEST_CASE("manual page: it has every command and flag, in valid roff") {
  const TemporaryDirectory directory;
  const Finished end = halfstep({"help", "man"}, directory.path());
  REQUIRE(end.exit_code == 0);
  CHECK(end.out.starts_with(".TH HALFSTEP 1 \"\" \"halfstep "));
  const std::set<std::string_view> requests{".TH", ".SH", ".SS", ".TP", ".PP", ".B"};
  std::set<std::string> commands;
  for (const std::string& line : lines(end.out)) {
    CAPTURE(line);
    if (line.starts_with(".SS ")) commands.insert(line.substr(4));
    CHECK_FALSE(line.starts_with("'"));
    if (line.starts_with(".")) CHECK(requests.contains(line.substr(0, line.find(' '))));
  }
  for (const std::string_view name : {"train", "runs", "runs diff", "completion", "help"}) {
    CHECK(commands.contains("\"halfstep " + std::string(name) + "\""));
  }
  CHECK(holds(end.out, "\\fB\\-\\-progress\\fR \\fIauto|bar|lines|none\\fR\n"));
  CHECK(holds(end.out, ".SH EXIT STATUS\n.TP\n.B 0\nDone.\n"));
  write_text(directory.file("halfstep.1"), end.out);
  // groff, where it is installed, warns of requests that it does not know.
  const Finished groff =
      Process({"/bin/sh", "-c", "command -v groff || exit 0; groff -man -ww -z halfstep.1 >&2"},
              directory.path())
          .wait();
  CHECK(groff.exit_code == 0);
  CHECK(groff.err.empty());
}

TEST_CASE("completion: bash completes commands, flags and the words that flags take") {
  const TemporaryDirectory directory;
  const Finished end = halfstep({"completion", "bash"}, directory.path());
  REQUIRE(end.exit_code == 0);
  write_text(directory.file("halfstep.bash"), end.out);
  struct Row {
    std::string line, wanted;
  };
  for (const Row& row : {Row{"tra", "train"},
                         Row{"runs d", "diff"},
                         Row{"train run.yaml --progress l", "lines"},
                         Row{"train --batch", "--batch-size"},
                         Row{"runs list --so", "--sort"},
                         Row{"completion b", "bash"},
                         Row{"train my", ""}}) {
    CAPTURE(row.line);
    const std::string script =
        "source ./halfstep.bash; COMP_WORDS=(halfstep " + row.line +
        "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _halfstep; echo \"${COMPREPLY[*]}\"";
    const Finished found = Process({"bash", "-c", script}, directory.path()).wait();
    CAPTURE(found.err);
    CHECK(found.exit_code == 0);
    CHECK(found.out == row.wanted + "\n");
  }
  CHECK(halfstep({"completion", "tcsh"}, directory.path()).exit_code == 2);
}

}  // namespace halfstep::test
