// A folder of pictures from training to the prediction of one picture, and class names of one's
// own.

#include <doctest/doctest.h>

#include <ostream>
#include <string_view>

#include "app/small_run.h"

namespace halfstep::test {
namespace {

namespace fs = std::filesystem;

/// A grey picture that is `value` on the whole, with a pattern of its own.
std::string picture(int side, int value, int number) {
  std::string file = "P5 " + std::to_string(side) + " " + std::to_string(side) + " 255\n";
  for (int i = 0; i < side * side; ++i) {
    file += static_cast<char>(value + (i * (number + 3)) % 31);
  }
  return file;
}

void write_picture(const TemporaryDirectory& directory,
                   const std::string& name,
                   int side,
                   int value) {
  const fs::path path = directory.path() / name;
  fs::create_directories(path.parent_path());
  write_text(path, picture(side, value, static_cast<int>(name.size())));
}

/// Forty dark owls and forty bright swans.
void write_birds(const TemporaryDirectory& directory) {
  for (int i = 0; i < 40; ++i) {
    const std::string name = std::to_string(i) + ".pgm";
    const fs::path owls = directory.path() / "birds" / "owl", swans = owls.parent_path() / "swan";
    fs::create_directories(owls);
    fs::create_directories(swans);
    write_text(owls / name, picture(28, 5, i));
    write_text(swans / name, picture(28, 200, i));
  }
}

SmallRun bird_run() {
  SmallRun run;
  run.data = "{format: image_folder, path: birds, test_split: 0.25, validation_split: 0.2}";
  run.layers = R"(
    - {type: dense, units: 2, name: logits}
    - {type: softmax, dtype: float32}
)";
  run.optimizer = "{type: adam, learning_rate: 1e-2}";
  run.training = "{epochs: 8, batch_size: 8}";
  return run;
}

}  // namespace

TEST_CASE("image folder: a run names its classes in reports, evaluations and predictions") {
  const TemporaryDirectory directory;
  write_birds(directory);
  write_config(directory, bird_run());
  const Finished trained = train(directory, "run");
  CAPTURE(trained.err);
  REQUIRE(trained.exit_code == 0);
  const Json report = report_of(directory, "run");
  CHECK(report.at("test_classes").at("per_class")[1].at("name") == "swan");
  CHECK(report.at("test").at("accuracy") == 1);

  const Finished evaluated = halfstep({"eval", "run"}, directory.path());
  CAPTURE(evaluated.out);
  CHECK(evaluated.exit_code == 0);
  CHECK(holds(evaluated.out, "\nowl                 10    1.0000"));
  CHECK(holds(evaluated.out, "\nswan                10    1.0000"));
  const Finished predicted =
      halfstep({"predict", "run", "birds/swan/3.pgm", "birds/owl"}, directory.path());
  CAPTURE(predicted.out);
  CHECK(predicted.exit_code == 0);
  CHECK(predicted.out.starts_with("     0  class   1  swan "));
  CHECK(holds(predicted.out, "\n     1  class   0  owl "));
  // A folder of the classes, with a file that is no picture: each picture by its path.
  write_text(directory.path() / "birds/swan/notes.txt", "seen at dawn");
  const Finished all = halfstep({"predict", "run", "birds"}, directory.path());
  CAPTURE(all.err);
  CHECK(all.exit_code == 0);
  CHECK(lines(all.out).size() == 80);
  CHECK(holds(all.out, "birds/owl/0.pgm\n"));
  CHECK(holds(all.out, "birds/swan/9.pgm\n"));
  CHECK(holds(all.err, "birds: 1 of 81 files are not images"));
  CHECK(holds(all.err, "such as birds/swan/notes.txt"));
  fs::remove(directory.path() / "birds/swan/notes.txt");
  // A picture of a folder that cannot be read is left out where the run leaves such pictures out;
  // one that is named is not.
  write_text(directory.path() / "birds/swan/cut.pgm", "P5 28 28 255\nswan");
  CHECK(halfstep({"predict", "run", "birds"}, directory.path()).exit_code == 3);
  const auto skipping = [&](const std::string& input) {
    return halfstep({"predict", "run", input, "--set", "data.on_bad_sample=skip"},
                    directory.path());
  };
  const Finished without = skipping("birds");
  CAPTURE(without.err);
  CHECK(without.exit_code == 0);
  CHECK(without.out == all.out);
  CHECK(holds(without.err, "warning: birds/swan/cut.pgm: "));
  CHECK(holds(without.err, ": skipped"));
  CHECK(skipping("birds/swan/cut.pgm").exit_code == 3);
  fs::create_directories(directory.path() / "cut");
  fs::rename(directory.path() / "birds/swan/cut.pgm", directory.path() / "cut/cut.pgm");
  CHECK(skipping("cut").exit_code == 3);
  REQUIRE(
      halfstep({"report", "export", "run", "--format", "html", "-o", "r.html"}, directory.path())
          .exit_code == 0);
  const std::string page = read_text(directory.file("r.html"));
  CHECK(holds(page, "owl"));
  CHECK(holds(page, "swan"));

  write_text(directory.file("moving.gif"), "GIF89a");
  const Finished gif = halfstep({"predict", "run", "moving.gif"}, directory.path());
  CHECK(gif.exit_code == 3);
  CHECK(holds(gif.err, "is not an image that can be read"));
  // Another size is refused, or brought to the right one where the run resizes.
  write_picture(directory, "large.pgm", 50, 200);
  const Finished refused = halfstep({"predict", "run", "large.pgm"}, directory.path());
  CHECK(refused.exit_code == 3);
  CHECK(holds(refused.err, "large.pgm: error: is an image of 50 x 50 pixels"));
  const Finished resized = train(directory, "resized", {"--set", "data.resize=bilinear"});
  REQUIRE(resized.exit_code == 0);
  CHECK(final_hash(directory, "resized") == final_hash(directory, "run"));
  CHECK(holds(halfstep({"predict", "resized", "large.pgm"}, directory.path()).out, "  swan "));
  // A run that met no other size says nothing about them, so that each use may.
  const Finished cropped =
      halfstep({"predict", "run", "large.pgm", "--set", "data.resize=crop"}, directory.path());
  CAPTURE(cropped.err);
  CHECK(cropped.exit_code == 0);
  CHECK(holds(cropped.out, "  swan "));
  CHECK(halfstep({"predict", "resized", "large.pgm", "--set", "data.resize=crop"}, directory.path())
            .exit_code == 2);

  const Finished info =
      halfstep({"data", "info", "birds", "--format", "image_folder", "--sheet", "sheet.png"},
               directory.path());
  CHECK(read_text(directory.path() / "sheet.png").starts_with("\x89PNG"));
  CAPTURE(info.err);
  CHECK(info.exit_code == 0);
  CHECK(holds(info.out, "80 training and 0 test images of [28, 28, 1] uint8, 2 classes"));
  CHECK(holds(info.out, "classes: owl, swan"));
  CHECK_FALSE(holds(info.out, "stored as"));
  CHECK(holds(info.out, "of 80 files"));
  CHECK_FALSE(holds(info.out, "resized"));
  // A folder that was never described: its format shows, and its pictures may differ.
  write_picture(directory, "birds/swan/large.pgm", 50, 200);
  write_text(directory.path() / "birds/swan/rgb.ppm", "P6 1 1 255\nabc");
  const Finished mixed = halfstep({"data", "info", "birds"}, directory.path());
  CAPTURE(mixed.err);
  CHECK(mixed.exit_code == 0);
  CHECK(holds(mixed.out, "82 training and 0 test images of [28, 28, 1] uint8, 2 classes"));
  CHECK(holds(mixed.out,
              "\nresized: 2 images, as their sizes are 1 to 50 x 1 to 50 pixels (data.resize)\n"));
  CHECK(holds(mixed.out, "\nconverted to grey: 1 images (data.channels: 1)\n"));
  const Json json =
      Json::parse(halfstep({"data", "info", "birds", "--json"}, directory.path()).out);
  CHECK(json.at("resized_samples") == 2);
}

TEST_CASE("image folder: what is wrong in a folder ends a run with 3 and the file's name") {
  const TemporaryDirectory directory;
  write_birds(directory);
  write_config(directory, bird_run());
  write_picture(directory, "birds/swan/0.pgm", 27, 200);
  const Finished size = train(directory, "size");
  CHECK(size.exit_code == 3);
  CHECK(holds(size.err, "birds/swan/0.pgm: error: is an image of 27 x 27 pixels"));
  CHECK(holds(size.err, "data.resize: crop or bilinear"));
  write_text(directory.path() / "birds/swan/0.pgm", "no picture");
  const Finished broken = train(directory, "broken");
  CHECK(broken.exit_code == 3);
  CHECK(holds(broken.err, "birds/swan/0.pgm: error: is not an image"));
  fs::remove(directory.path() / "birds/swan/0.pgm");
  fs::create_directories(directory.path() / "birds/wren");
  const Finished empty = train(directory, "empty");
  CHECK(empty.exit_code == 3);
  CHECK(holds(empty.err, "there is no image of the class 'wren'"));
}

TEST_CASE("class names: they go with data that has none, and every mistake in them is told") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(halfstep({"data", "synth", "--out", "digits", "--samples", "512", "--test-samples", "64"},
                   directory.path())
              .exit_code == 0);
  const std::vector<std::string> idx{"--set",
                                     "data={format: idx, path: digits, validation_split: 0.25}"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), idx.begin(), idx.end());
    return more;
  };
  constexpr const char* k_names =
      "data.class_names=[zero, one, two, three, four, five, six, "
      "seven, eight, nine]";
  REQUIRE(train(directory, "named", with({"--set", k_names})).exit_code == 0);
  CHECK(report_of(directory, "named").at("test_classes").at("per_class")[3].at("name") == "three");
  CHECK(holds(halfstep({"eval", "named"}, directory.path()).out, "\nseven "));
  const std::string images = "digits/t10k-images-idx3-ubyte";
  const Json listed =
      Json::parse(halfstep({"predict", "named", images, "--json"}, directory.path()).out);
  for (const Json& each : listed.at("predictions")) {
    CHECK(std::string("zero one two three four five six seven eight nine")
              .find(each.at("name").get<std::string>()) != std::string::npos);
  }
  // They may come later.
  REQUIRE(train(directory, "plain", with({})).exit_code == 0);
  CHECK(final_hash(directory, "plain") == final_hash(directory, "named"));
  CHECK(halfstep({"predict", "plain", images, "--set", k_names, "--json"}, directory.path()).out ==
        halfstep({"predict", "named", images, "--json"}, directory.path()).out);

  struct Row {
    std::vector<std::string> settings;
    int exit_code;
    std::string_view said;
  };
  const std::string three = "data.class_names=[a, b, c]";
  for (const Row& row :
       {Row{with({"--set", three}), 2, "class_names has 3 names, but"},
        Row{with({"--set", "data.class_names=[a, b, a]"}),
            2,
            "data.class_names[2]: error: 'a' is the name of class 0 already"},
        Row{{"--set", three}, 2, "this set has names"},
        Row{with({"--set", "data.resize=bilinear"}), 2, "is for the format image_folder only"},
        Row{with({"--set", "data.on_bad_sample=skip"}), 2, "is for the format image_folder only"},
        Row{with({"--set", "data.format=image_folder", "--set", three}),
            2,
            "the names of its sub-folders"},
        Row{with({"--set", "data.format=image_folder", "--set", "data.channels=2"}),
            2,
            "must be 1 (grey) or 3 (RGB), got 2"},
        Row{with({"--set", "data.format=image_folder", "--set", "data.image_size=[3]"}),
            2,
            "must be [height, width], got 1"}}) {
    const Finished end = train(directory, "refused", row.settings);
    CAPTURE(end.err);
    CHECK(end.exit_code == row.exit_code);
    CHECK(holds(end.err, row.said));
  }
}

}  // namespace halfstep::test
