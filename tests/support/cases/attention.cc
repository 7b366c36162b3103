#include <algorithm>
#include <cmath>

#include "support/op_cases.h"

namespace halfstep::testing {
namespace {

struct Attention {
  std::string_view name;
  std::int64_t batch = 2, heads = 3, queries = 5, keys = 5, depth = 4, value_depth = 4;
  bool causal = false;
  std::string_view layout = "BHSD";
  double reach = 2;  ///< of the elements of query and key
  double dropout = 0;
  /// The keys that a mask leaves out: at the "end" or the "start" of each sample, more in later
  /// ones, "mixed" ones, or "all" of the first sample.
  std::string_view padding = "";
};

constexpr Attention k_attentions[] = {
    {"plain"},
    {"causal", 2, 2, 6, 6, 5, 3, true},
    {"no heads", 3, 0, 4, 7, 5, 6},
    {"no heads, causal", 2, 0, 5, 5, 4, 4, true},
    {"steps first", 2, 3, 4, 6, 5, 7, false, "BSHD"},
    {"steps first, causal", 2, 2, 7, 5, 3, 4, true, "BSHD"},
    {"more keys than causal queries", 1, 2, 3, 8, 4, 4, true},
    {"one key", 2, 1, 3, 1, 4, 4},
    {"no samples", 0, 2, 3, 3, 4, 4},
    // Blocks of 32 on both sides, and depths on both sides of a block.
    {"blocks", 1, 2, 70, 45, 33, 40},
    {"blocks, causal", 1, 2, 67, 99, 16, 64, true},
    {"blocks, causal, steps first", 2, 1, 64, 33, 40, 31, true, "BSHD"},
    // Keys and queries of more than one chunk; deep queries have several kc blocks.
    {"chunks", 1, 1, 3, 401, 4, 5},
    {"chunks, causal", 1, 1, 401, 398, 3, 4, true},
    {"deep", 1, 1, 3, 5, 400, 3},
    // Scores up to 1e4 in magnitude.
    {"large scores", 1, 2, 9, 11, 4, 5, false, "BHSD", 70},
    {"large scores, chunks", 1, 1, 33, 420, 4, 5, true, "BHSD", 70},
    {"dropout", 2, 3, 5, 6, 4, 3, false, "BHSD", 2, 0.25},
    {"dropout, no heads, causal", 2, 0, 5, 5, 4, 4, true, "BHSD", 2, 0.5},
    {"dropout, blocks", 1, 2, 70, 45, 33, 40, false, "BHSD", 2, 0.1},
    {"dropout, blocks, causal, steps first", 2, 2, 64, 33, 40, 31, true, "BSHD", 2, 0.9},
    {"dropout, chunks, causal", 1, 1, 401, 398, 3, 4, true, "BHSD", 2, 0.1},
    {"padding", 3, 2, 5, 6, 4, 3, false, "BHSD", 2, 0, "end"},
    {"padding at the start, no heads", 2, 0, 4, 7, 5, 6, false, "BHSD", 2, 0, "start"},
    {"padding mixed, steps first", 3, 3, 4, 9, 5, 7, false, "BSHD", 2, 0, "mixed"},
    {"padding, causal", 2, 2, 6, 6, 5, 3, true, "BHSD", 2, 0, "end"},
    {"padding at the start, causal", 3, 1, 7, 7, 5, 3, true, "BHSD", 2, 0, "start"},
    {"padding alone", 2, 2, 5, 6, 4, 4, false, "BHSD", 2, 0, "all"},
    {"padding, dropout", 3, 2, 5, 6, 4, 3, false, "BHSD", 2, 0.25, "mixed"},
    {"padding, blocks", 3, 2, 70, 145, 33, 40, false, "BHSD", 2, 0, "end"},
    {"padding at the start, blocks, causal", 3, 1, 130, 130, 16, 40, true, "BHSD", 2, 0, "start"},
    {"padding mixed, blocks, causal, steps first, dropout",
     2,
     2,
     64,
     33,
     40,
     31,
     true,
     "BSHD",
     2,
     0.9,
     "mixed"},
    {"padding alone, blocks, dropout", 2, 1, 40, 70, 16, 16, false, "BHSD", 2, 0.1, "all"},
    {"padding, chunks", 3, 1, 33, 801, 4, 5, false, "BHSD", 2, 0, "end"},
    {"padding at the start, chunks, causal", 2, 1, 801, 798, 3, 4, true, "BHSD", 2, 0.1, "start"},
    {"padding mixed, large scores, chunks", 1, 1, 33, 420, 4, 5, true, "BHSD", 70, 0, "mixed"},
};

/// The mask of keys of a case.
Operand mask_of(const Attention& a) {
  Operand mask = flags({a.batch, a.keys});
  for (std::int64_t i = 0; i < a.batch; ++i) {
    // Of three samples, all but a quarter, a half or three quarters of the keys are padding.
    const std::int64_t some = a.keys * (i + 1) / (a.batch + 1);
    for (std::int64_t key = 0; key < a.keys; ++key) {
      const bool taken = a.padding == "end"     ? key < a.keys - some
                         : a.padding == "start" ? key >= some
                         : a.padding == "mixed" ? (key * 7 + i) % 5 < 3 && key / 32 % 2 == 0
                                                : i > 0;
      mask.given.push_back(taken ? 1 : 0);
    }
  }
  return mask;
}

}  // namespace

std::vector<OpCase> attention_cases() {
  std::vector<OpCase> cases;
  for (const Attention& a : k_attentions) {
    const auto shape = [&](std::int64_t steps, std::int64_t width) {
      if (a.heads == 0) return Shape{a.batch, steps, width};
      return a.layout == "BSHD" ? Shape{a.batch, steps, a.heads, width}
                                : Shape{a.batch, a.heads, steps, width};
    };
    const Shape query = shape(a.queries, a.depth), key = shape(a.keys, a.depth),
                value = shape(a.keys, a.value_depth), result = shape(a.queries, a.value_depth),
                rows =
                    a.heads == 0 ? Shape{a.batch, a.queries} : Shape{a.batch, a.heads, a.queries};
    const double scale = a.depth > 64 ? 0.05 : 0.5;
    graph::Attrs attrs{{"scale", scale}, {"causal", a.causal}, {"layout", std::string(a.layout)}};
    std::vector<Operand> options;
    if (a.dropout > 0 || !a.padding.empty()) options.push_back(indices({}, 0, 1000, DType::int64));
    if (!a.padding.empty()) options.push_back(mask_of(a));
    if (a.dropout > 0) {
      attrs.set("rate", a.dropout);
      attrs.set("seed", std::int64_t{-5});
      attrs.set("stream", std::int64_t{1} << 40);
      // Within a group of four numbers.
      attrs.set("first", std::int64_t{7});
    }
    const double largest_factor = 1 / (1 - a.dropout);
    // float32 errs by the roundings of scores, 16 bits by the one rounding of the weights, whose
    // sum is 1. Three bfloat16 GEMMs multiply float16 without the parts below 2^-9 of both factors.
    const double score = scale * a.reach * a.reach * std::sqrt(static_cast<double>(16 * a.depth));
    const bool large = a.reach > 2, small = a.queries * a.keys < 100;
    const double left_out = scale * a.reach * a.reach * static_cast<double>(a.depth) * 0x1p-18;
    const DTypeSet halves{DType::float16, DType::bfloat16};
    const auto forward = [&](std::string_view what, DTypeSet dtypes) {
      const bool float16 = dtypes.contains(DType::float16), exact = dtypes.contains(DType::float64);
      const bool half = float16 || dtypes.contains(DType::bfloat16);
      const std::int64_t terms = half ? (large ? 4 : 2) : 16;
      const double rounding = static_cast<double>(terms) * epsilon(DType::float16);
      OpCase c{.name = fmt::format("FusedAttention/{}{}", a.name, what),
               .op = "FusedAttention",
               .attrs = attrs,
               .inputs = {uniform(query, -a.reach, a.reach),
                          uniform(key, -a.reach, a.reach),
                          uniform(value)},
               .terms = terms,
               .magnitude = (float16 ? 2 + left_out / rounding
                             : half  ? 2
                                     : std::max(2.0, score)) *
                            largest_factor,
               .rounds_inside = half,
               .dtypes = dtypes,
               .check_gradient = exact && small && !large};
      c.inputs.insert(c.inputs.end(), options.begin(), options.end());
      if (exact) c.attrs.set("U", DType::float64);
      cases.push_back(std::move(c));
    };
    forward("", {DType::float32});
    forward(", float16, 16 bits", {DType::float16});
    forward(", bfloat16, 16 bits", {DType::bfloat16});
    forward(", float64", {DType::float64});
    if (large) continue;
    // A weight is below 1 and 0.07 on average; its gradient grows with the width of a value.
    const double sum = std::max(1.0,
                                0.1 * static_cast<double>(std::max(a.queries, a.keys)) *
                                    std::sqrt(static_cast<double>(a.value_depth)));
    const auto backward = [&](std::string_view what, DTypeSet dtypes) {
      const bool half = dtypes.contains(DType::bfloat16);
      cases.push_back({.name = fmt::format("FusedAttentionGrad/{}{}", a.name, what),
                       .op = "FusedAttentionGrad",
                       .attrs = attrs,
                       .inputs = {uniform(result, -1, 1),
                                  uniform(query, -0.5, 0.5),
                                  uniform(key, -0.5, 0.5),
                                  uniform(value),
                                  uniform(result, -1, 1),
                                  typed(uniform(rows, 1, 6), DType::float32)},
                       .terms = half ? 2 : 16,
                       .magnitude = sum * largest_factor,
                       .rounds_inside = half,
                       .dtypes = dtypes,
                       .check_gradient = false});
      std::vector<Operand>& inputs = cases.back().inputs;
      inputs.insert(inputs.end(), options.begin(), options.end());
    };
    backward("", {DType::float32});
    backward(", 16 bits", halves);
  }
  return cases;
}

}  // namespace halfstep::testing
