#include "support/op_cases.h"

namespace halfstep::testing {

std::vector<OpCase> array_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](std::string name, std::vector<Operand> inputs, graph::Attrs attrs = {}) {
    cases.push_back({.name = name,
                     .op = name.substr(0, name.find('/')),
                     .attrs = std::move(attrs),
                     .inputs = std::move(inputs)});
  };
  using Ints = std::vector<std::int64_t>;
  const Shape odd{3, 4, 5};
  add("Reshape/flat", {uniform(odd), ints({60})});
  add("Reshape/open", {uniform(odd), ints({2, -1, 3})});
  add("Reshape/scalar", {uniform({1, 1}), ints({})});
  add("ExpandDims/middle", {uniform(odd), int_scalar(1)});
  add("ExpandDims/last", {uniform(odd), int_scalar(-1)});
  add("Squeeze/all", {uniform({1, 3, 1, 2})});
  add("Squeeze/one", {uniform({1, 3, 1, 2})}, {{"squeeze_dims", Ints{-2}}});
  add("Transpose/matrix", {uniform({3, 5}), ints({1, 0})});
  add("Transpose/cycle", {uniform(odd), ints({2, 0, 1})});
  add("Transpose/same", {uniform(odd), ints({0, 1, 2})});
  add("Transpose/image", {uniform({2, 3, 4, 5}), ints({0, 3, 1, 2})});
  add("ConcatV2/first", {uniform({2, 3}), uniform({1, 3}), uniform({4, 3}), int_scalar(0)});
  add("ConcatV2/last", {uniform({2, 3}), uniform({2, 5}), int_scalar(-1)});
  add("ConcatV2/middle",
      {uniform({2, 3, 2}), uniform({2, 0, 2}), uniform({2, 1, 2}), int_scalar(1)});
  add("ConcatV2/one", {uniform({2, 3}), int_scalar(1)});
  add("Slice/middle", {uniform(odd), ints({1, 0, 2}), ints({2, -1, 2})});
  add("Slice/nothing", {uniform(odd), ints({3, 0, 0}), ints({0, 4, 5})});
  add("Slice/all", {uniform(odd), ints({0, 0, 0}), ints({3, 4, 5})});
  add("Split/last", {int_scalar(-1), uniform({3, 6})}, {{"num_split", std::int64_t{3}}});
  add("Split/first", {int_scalar(0), uniform({4, 5})}, {{"num_split", std::int64_t{2}}});
  cases.back().differentiated = {1};  // the first has no gradient of its own
  add("Pad/image", {uniform({2, 3, 4, 2}), ints({0, 0, 1, 2, 3, 0, 0, 0})});
  add("Pad/nothing", {uniform({3, 4}), ints({0, 0, 0, 0})});
  add("PadV2/value", {uniform({3, 4}), ints({1, 0, 2, 1}), number(-1.5)});
  add("BroadcastTo/row", {uniform({5}), ints({3, 5})});
  add("BroadcastTo/middle", {uniform({2, 1, 3}), ints({4, 2, 5, 3})});
  add("BroadcastTo/scalar", {uniform({}), ints({2, 3})});
  add("Tile/both", {uniform({2, 3}), ints({3, 2})});
  add("Tile/last", {uniform({2, 3}), ints({1, 4})});
  add("Tile/nothing", {uniform({2, 3}), ints({1, 1})});
  add("ReverseV2/last", {uniform(odd), ints({-1})});
  add("ReverseV2/two", {uniform(odd), ints({0, 2})});
  add("ReverseV2/none", {uniform(odd), ints({})});
  for (DType dtype : {DType::int32, DType::int64, DType::uint8}) {
    add(fmt::format("OneHot/{}", name(dtype)),
        {indices({7}, 0, 5, dtype), int_scalar(5), number(1), number(0)});
  }
  add("OneHot/first axis",
      {indices({3, 4}, -1, 6), int_scalar(5), number(2), number(-1)},
      {{"axis", std::int64_t{0}}});
  add("OneHot/middle axis",
      {indices({3, 4}, 0, 5), int_scalar(5), number(1), number(0)},
      {{"axis", std::int64_t{1}}});
  add("GatherV2/rows", {uniform({5, 3}), indices({4}, 0, 5), int_scalar(0)});
  add("GatherV2/columns", {uniform({5, 3, 2}), indices({2, 2}, 0, 3, DType::int64), int_scalar(1)});
  add("GatherV2/last", {uniform({5, 3}), indices({7}, 0, 3), int_scalar(-1)});
  add("GatherV2/outside", {uniform({5, 3}), indices({9}, -2, 7), int_scalar(0)});
  add("GatherV2/scalar", {uniform({5, 3}), indices({}, 0, 5), int_scalar(0)});
  add("UnsortedSegmentSum/rows", {uniform({6, 3}), indices({6}, -1, 4), int_scalar(4)});
  add("UnsortedSegmentSum/parts", {uniform({700, 12}), indices({700}, 0, 5), int_scalar(5)});
  cases.back().terms = 700;
  cases.back().magnitude = 4 * 700;
  add("UnsortedSegmentSum/more segments than classes",
      {uniform({90, 8}), indices({90}, 0, 400), int_scalar(400)});
  cases.back().terms = 90;
  cases.back().magnitude = 4 * 90;
  add("UnsortedSegmentSum/matrix", {uniform({3, 2}), indices({3, 2}, 0, 3), int_scalar(3)});
  add("Shape/int32", {uniform(odd)});
  add("Shape/int64", {uniform(odd)}, {{"out_type", DType::int64}});
  add("Fill/matrix", {ints({3, 4}), uniform({})});
  add("Fill/scalar", {ints({}), uniform({})});
  add("StopGradient/odd", {uniform(odd)});
  cases.back().no_gradient = {0};
  add("PreventGradient/odd", {uniform(odd)});
  cases.back().check_gradient = false;
  return cases;
}

}  // namespace halfstep::testing
