#pragma once
// Shape rules of the array ops.

#include <vector>

#include "graph/op_def.h"

namespace halfstep::graph::ops {

std::vector<Shape> infer_broadcast_to(const InferContext& c);
std::vector<Shape> infer_concat(const InferContext& c);
std::vector<Shape> infer_expand_dims(const InferContext& c);
std::vector<Shape> infer_fill(const InferContext& c);
std::vector<Shape> infer_gather(const InferContext& c);
std::vector<Shape> infer_one_hot(const InferContext& c);
std::vector<Shape> infer_pad(const InferContext& c);
std::vector<Shape> infer_reshape(const InferContext& c);
std::vector<Shape> infer_reverse(const InferContext& c);
std::vector<Shape> infer_segment_sum(const InferContext& c);
std::vector<Shape> infer_shape(const InferContext& c);
std::vector<Shape> infer_slice(const InferContext& c);
std::vector<Shape> infer_split(const InferContext& c);
std::vector<Shape> infer_squeeze(const InferContext& c);
std::vector<Shape> infer_tile(const InferContext& c);
std::vector<Shape> infer_transpose(const InferContext& c);

}  // namespace halfstep::graph::ops
