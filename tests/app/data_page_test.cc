// The worked example of the reference page of data is run exactly as the page prints it.

#include <doctest/doctest.h>

#include "app/small_run.h"

namespace halfstep::test {
namespace {

/// The code block of Markdown that begins with this line.
std::string block(const std::string& page, const std::string& fence) {
  const std::size_t start = page.find("```" + fence + "\n");
  REQUIRE(start != std::string::npos);
  const std::size_t text = page.find('\n', start) + 1;
  return page.substr(text, page.find("```", text) - text);
}

}  // namespace

TEST_CASE("data page: its worked example runs, and learns") {
  const TemporaryDirectory directory;
  const auto shell = [&](const std::string& line) {
    const std::string path = "PATH='" + program().parent_path().string() + "':$PATH; ";
    return Process({"/bin/sh", "-c", path + line}, directory.path()).wait();
  };
  const std::string python = python_with_numpy(directory.path());
  if (python.empty()) {
    MESSAGE("python3-numpy is not there: the example was not run");
    return;
  }
  const std::string page = halfstep({"help", "data", "--markdown"}, directory.path()).out;
  write_text(directory.path() / "make_shapes.py", block(page, "python"));
  write_text(directory.path() / "write_idx.py",
             block(page.substr(page.find("## IDX files")), "python"));
  write_text(directory.path() / "write_images.py",
             block(page.substr(page.find("## A folder of images")), "python"));
  const std::string table = page.substr(page.find("## A table"));
  write_text(directory.path() / "write_flats.py", block(table, "python"));
  write_text(directory.path() / "shapes.yaml", block(page, "yaml"));
  write_text(directory.path() / "flats.yaml", block(table, "yaml"));
  const std::string text = page.substr(page.find("## A text"));
  write_text(directory.path() / "write_tale.py", block(text, "python"));
  write_text(directory.path() / "tale.yaml", block(text, "yaml"));
  const std::string column = page.substr(page.find("## A column of texts"));
  write_text(directory.path() / "write_reviews.py", block(column, "python"));
  write_text(directory.path() / "reviews.yaml", block(column, "yaml"));
  std::size_t commands = 0;
  std::string evaluated;
  for (std::size_t at = page.find("\n$ "); at != std::string::npos;
       at = page.find("\n$ ", at + 1)) {
    std::string line = page.substr(at + 3, page.find('\n', at + 3) - at - 3);
    if (line.starts_with("python3 ")) line.replace(0, 7, python);
    CAPTURE(line);
    const Finished end = shell(line);
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
    if (line.starts_with("halfstep eval")) evaluated = end.out;
    ++commands;
  }
  CHECK(commands >= 10);
  REQUIRE(holds(evaluated, "accuracy"));
  const double accuracy = std::stod(evaluated.substr(evaluated.find("accuracy") + 8));
  CHECK(accuracy > 0.9);
}

}  // namespace halfstep::test
