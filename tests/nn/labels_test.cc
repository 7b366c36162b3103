#include <doctest/doctest.h>

#include <ostream>
#include <string_view>

#include "nn/losses/loss.h"

namespace halfstep::nn {
namespace {

/// The first line of the problem with these labels, "" when there is none.
std::string problem(LabelKind kind, const Shape& output, const Shape& label, DType dtype) {
  try {
    check_labels_fit(kind, output, label, dtype, {"a.yaml", 3, 7, "loss"});
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("labels: each kind of loss takes those that its outputs can be compared with") {
  struct Case {
    LabelKind kind;
    Shape output, label;
    DType dtype;
    std::string_view says;
  };
  const Case cases[] = {
      {LabelKind::classes, {10}, {}, DType::int32, ""},
      {LabelKind::targets, {10}, {}, DType::int32, ""},
      {LabelKind::events, {1}, {}, DType::int32, ""},
      {LabelKind::targets, {10}, {10}, DType::float32, ""},
      {LabelKind::targets, {1}, {}, DType::float32, ""},
      {LabelKind::targets, {2, 5}, {10}, DType::float32, ""},
      {LabelKind::classes, {7, 7, 10}, {}, DType::int32, "the model's output is [7, 7, 10]"},
      {LabelKind::targets, {7, 7, 10}, {}, DType::int32, "the model's output is [7, 7, 10]"},
      {LabelKind::classes, {7, 10}, {7}, DType::int32, ""},
      {LabelKind::classes, {1, 10}, {}, DType::int32, ""},
      {LabelKind::classes, {7, 10}, {}, DType::int32, "the model's output is [7, 10]"},
      {LabelKind::classes, {7, 10}, {6}, DType::int32, "class numbers of shape [6]"},
      {LabelKind::classes, {10}, {10}, DType::int32, "(categorical_crossentropy takes one-hot"},
      {LabelKind::targets, {7, 10}, {7}, DType::int32, "takes a class at each position"},
      {LabelKind::classes, {10}, {}, DType::float32, "store them as integers"},
      {LabelKind::classes, {10}, {10}, DType::float32, "(categorical_crossentropy takes one-hot"},
      {LabelKind::targets, {10}, {}, DType::float32, "(class numbers are integers from 0 on"},
      {LabelKind::targets, {7, 10}, {7}, DType::float32, "takes a class at each position"},
      {LabelKind::events, {1}, {3}, DType::float32, "float targets of shape [3]"},
  };
  for (const Case& c : cases) {
    const std::string found = problem(c.kind, c.output, c.label, c.dtype);
    CAPTURE(found);
    CAPTURE(c.says);
    CHECK(found.empty() == c.says.empty());
    CHECK(found.find(c.says) != std::string::npos);
    if (!found.empty()) CHECK(found.starts_with("a.yaml:3:7: loss: error: "));
  }
}

TEST_CASE("labels: an output of k scores knows k classes, an event two, a value any number") {
  CHECK(label_limit(LabelKind::classes, {10}) == 10);
  CHECK(label_limit(LabelKind::classes, {1}) == 1);
  CHECK(label_limit(LabelKind::classes, {7, 10}) == 10);
  CHECK(label_limit(LabelKind::targets, {10}) == 10);
  CHECK(label_limit(LabelKind::targets, {1}) == std::nullopt);
  CHECK(label_limit(LabelKind::events, {3}) == 3);
  CHECK(label_limit(LabelKind::events, {1}) == 2);
  CHECK(label_limit(LabelKind::signs, {1}) == 2);
}

}  // namespace halfstep::nn
