#pragma once
// TensorFlow ops that halfstep reads and explains but does not execute, as text: one op a line,
//
//   Name(inputs -> outputs) attributes
//
// in the syntax of define(); `!` after the name marks a stateful op and an indented line continues
// the one above. Ports, type attributes, defaults and allowed types are those of TensorFlow's op
// registry. Attributes that hold functions, tensors or lists of other things are strings here.

#include <string_view>

namespace halfstep::graph::ops {

extern const std::string_view k_imported_array;
extern const std::string_view k_imported_flow;
extern const std::string_view k_imported_image;
extern const std::string_view k_imported_io;
extern const std::string_view k_imported_linalg;
extern const std::string_view k_imported_math;
extern const std::string_view k_imported_rnn;
extern const std::string_view k_imported_state;

}  // namespace halfstep::graph::ops
