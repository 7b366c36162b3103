#include <fmt/format.h>

#include "nn/losses/loss.h"

namespace halfstep::nn {

void check_labels_fit(LabelKind kind,
                      const Shape& output,
                      const Shape& label,
                      DType label_dtype,
                      const Where& where) {
  const auto fail = [&](std::string message, std::string hint) {
    throw UserError(ErrorKind::config, where, std::move(message), std::move(hint));
  };
  const bool numbers = !is_floating(label_dtype);
  const bool positions = output.rank() > 1 && label.rank() > 0 &&
                         label.elements() * output.back() == output.elements() &&
                         same_axes(label, Shape(output.dims().first(output.rank() - 1)));
  if (numbers && label.rank() > 0) {
    if (kind != LabelKind::classes) {
      fail(fmt::format("compares a sample with one class; the labels are class numbers of shape {}",
                       to_string(label)),
           "sparse_categorical_crossentropy takes a class at each position");
    }
    if (positions) return;
    fail(fmt::format("class numbers of shape {} need one score per class at each position; the "
                     "model's output is {}",
                     to_string(label),
                     to_string(output)),
         label.elements() == output.elements() ? "categorical_crossentropy takes one-hot targets"
                                               : "");
  }
  if (numbers && kind == LabelKind::classes && output.elements() == output.back()) return;
  if (numbers || kind == LabelKind::classes) {
    if (output.rank() != 1) {
      fail(fmt::format("class numbers need one score per class; the model's output is {}",
                       to_string(output)),
           "flatten or global_average_pooling2d before the last dense layer gives that");
    }
    if (numbers) return;
    fail(fmt::format("takes class numbers; the labels are {}{}",
                     name(label_dtype),
                     label.rank() == 0 ? "" : " of shape " + to_string(label)),
         label.rank() == 0 ? "store them as integers"
                           : "categorical_crossentropy takes one-hot targets");
  }
  const bool images = label.rank() > 1 && output.rank() > 1;
  if (label.elements() == output.elements() && (!images || same_axes(label, output))) return;
  fail(fmt::format("the labels are float targets of shape {}, the model's output is {}",
                   to_string(label),
                   to_string(output)),
       positions           ? "sparse_categorical_crossentropy takes a class at each position"
       : images            ? "an output has the shape of its targets"
       : label.rank() == 0 ? "class numbers are integers from 0 on; a real value has one output"
                           : "give the last layer as many units as there are targets");
}

std::optional<std::int64_t> label_limit(LabelKind kind, const Shape& output) {
  if (kind == LabelKind::classes) return output.back();
  if (output.elements() > 1) return output.elements();
  if (of_events(kind)) return 2;
  return std::nullopt;
}

}  // namespace halfstep::nn
