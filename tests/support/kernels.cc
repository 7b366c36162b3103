#include "support/kernels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>

#include "backend/cpu/kernels.h"
#include "support/evaluate.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using Ints = std::vector<std::int64_t>;

bool contains(const std::vector<DType>& dtypes, DType dtype) {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

}  // namespace

OneKernel::OneKernel(const backend::Kernel& kernel, const backend::Capabilities& capabilities)
    : kernels_{kernel} {
  const auto reference = backend::cpu::reference_kernels();
  kernels_.insert(kernels_.end(), reference.begin(), reference.end());
  backend_ = {.name = "cpu", .capabilities = capabilities, .kernels = kernels_};
}

bool OneKernel::takes(const BuiltCase& built) const {
  const backend::NodeView node{built.graph, built.graph.node(built.node)};
  const backend::Kernel& kernel = kernels_.front();
  return kernel.op == node.node.op &&
         (kernel.accepts == nullptr || kernel.accepts(node, backend_.capabilities));
}

std::vector<Tensor> OneKernel::run(BuiltCase& built) const { return testing::run(built, backend_); }

std::vector<Tensor> run(BuiltCase& built, const backend::Backend& backend) {
  std::vector<graph::Value> fetches;
  const std::size_t outputs = built.graph.node(built.node).outputs.size();
  for (std::size_t i = 0; i < outputs; ++i) fetches.push_back({built.node, static_cast<int>(i)});
  std::vector<Tensor> results =
      evaluate(built.graph, backend, fetches, built.feeds, built.variables);
  for (const auto& [name, tensor] : built.variables) results.push_back(tensor.clone());
  return results;
}

std::vector<OpCase> large_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](std::string name,
                       std::vector<Operand> inputs,
                       std::int64_t terms = 8,
                       double magnitude = 16,
                       graph::Attrs attrs = {}) {
    cases.push_back({.name = name,
                     .op = name.substr(0, name.find('/')),
                     .attrs = std::move(attrs),
                     .inputs = std::move(inputs),
                     .terms = terms,
                     .magnitude = magnitude});
  };
  add("Relu/large", {uniform({41, 1031})});
  add("Tanh/large", {uniform({37, 911})});
  add("Mul/large by scalar", {uniform({17, 3001}), number(0.75)});
  add("AddV2/large by row", {uniform({1500, 33}), uniform({33})});
  add("AddV2/large by long row", {uniform({31, 1500}), uniform({1500})});
  add("Sub/large by column", {uniform({5001, 10}), uniform({5001, 1})});
  add("Mul/large by image", {uniform({40, 7, 9, 17}), uniform({40, 1, 1, 17})});
  add("AddV2/large both stretched", {uniform({300, 1}), uniform({1, 200})});
  add("BiasAdd/large", {uniform({700, 37}), uniform({37})});
  add("Cast/large", {uniform({50001})}, 8, 4, {{"DstT", DType::float16}});
  add("SelectV2/large", {flags({123, 321}), uniform({123, 321}), uniform({})});
  add("AddN/large", {uniform({40001}), uniform({40001}), uniform({40001})});
  add("IsFinite/large", {special({40001})});
  // Sums of n numbers below 2: at most 128 + 4 roundings in float32, partial sums up to 256.
  add("Sum/large to one", {uniform({300, 701}), ints({0, 1})}, 132, 2048);
  add("Sum/large rows", {uniform({70, 2500}), ints({1})}, 132, 512);
  add("Sum/large columns", {uniform({2500, 70}), ints({0})}, 132, 512);
  add("Sum/large wide columns", {uniform({50, 2100}), ints({0})}, 132, 256);
  add("Sum/large middle", {uniform({9, 500, 33}), ints({1})}, 132, 512);
  add("Mean/large columns", {uniform({3000, 31}), ints({0})}, 132, 2);
  add("Max/large columns", {uniform({3000, 31}), ints({0})});
  add("Max/large rows", {uniform({31, 3000}), ints({-1})});
  add("Min/large with special", {special({31, 3000}), ints({0})});
  add("Sum/apart", {uniform({3, 4, 5}), ints({0, 2})}, 32);
  add("BiasAddGrad/large", {uniform({9000, 11})}, 132, 512);
  add("CastBiasAddGrad/large", {uniform({9000, 11})}, 132, 512);
  add("L2Loss/large", {uniform({70001})}, 132, 70001);
  add("All/large", {flags({70001}), ints({0})});
  add("Softmax/large", {uniform({4099, 10}, -6, 6)}, 32, 1);
  add("Softmax/wide", {uniform({5, 3001}, -6, 6)}, 64, 1);
  add("LogSoftmax/large", {uniform({999, 130}, -6, 6)}, 64, 16);
  add("SparseSoftmaxCrossEntropyWithLogits/large",
      {uniform({5001, 10}, -6, 6), indices({5001}, 0, 10)},
      64,
      16);
  add("SparseSoftmaxCrossEntropyWithLogits/wide",
      {uniform({3, 2500}, -6, 6), indices({3}, 0, 2500, DType::int64)},
      64,
      16);
  add("SparseSoftmaxCrossEntropyWithLogits/missing label",
      {uniform({40, 10}, -6, 6), indices({40}, -2, 12)},
      64,
      16);
  add("SoftmaxCrossEntropyWithLogits/large",
      {uniform({3000, 12}, -6, 6), uniform({3000, 12}, 0, 1)},
      128,
      64);
  return cases;
}

std::vector<OpCase> conv_cases(std::span<const ConvShape> convs) {
  std::vector<OpCase> cases;
  const backend::Backend reference = backend::cpu_reference();
  for (const ConvShape& conv : convs) {
    const bool depthwise = conv.name.starts_with("depthwise");
    const std::string op = depthwise ? "DepthwiseConv2dNative" : "Conv2D";
    const graph::Attrs attrs{{"strides", Ints{1, conv.strides[0], conv.strides[1], 1}},
                             {"dilations", Ints{1, conv.dilations[0], conv.dilations[1], 1}},
                             {"padding", std::string(conv.padding)}};
    const Shape& f = conv.filter;
    OpCase c{.name = fmt::format("{}/{}", op, conv.name),
             .op = op,
             .attrs = attrs,
             .inputs = {uniform(conv.x), uniform(f)}};
    const BuiltCase forward = build(c, DType::float32);
    const Shape y = forward.graph.node(forward.node).outputs[0].shape;
    const std::int64_t taps = f[0] * f[1];
    const auto ints_of = [](const Shape& s) { return ints(Ints(s.begin(), s.end())); };
    // Products of numbers below 2; partial sums of random signs stay far below terms * 4.
    const auto add = [&](std::string_view suffix, std::vector<Operand> inputs, std::int64_t terms) {
      OpCase copy = c;
      copy.op = op + std::string(suffix);
      copy.name = fmt::format("{}/{}", copy.op, conv.name);
      copy.inputs = std::move(inputs);
      copy.terms = terms + 8;
      copy.magnitude = 4 * std::sqrt(static_cast<double>(terms));
      cases.push_back(std::move(copy));
    };
    add("", c.inputs, taps * f[2]);
    for (const char* epilogue : {"Bias", "BiasRelu"}) {
      if (depthwise) break;
      add(epilogue, {c.inputs[0], c.inputs[1], uniform({f[3]})}, taps * f[2] + 1);
    }
    add("BackpropInput", {ints_of(conv.x), uniform(f), uniform(y)}, taps * f[3]);
    add("BackpropFilter", {uniform(conv.x), ints_of(f), uniform(y)}, y[0] * y[1] * y[2]);
  }
  return cases;
}

std::vector<OpCase> more_conv_cases() {
  static const ConvShape k_convs[] = {
      {"first layer", {3, 12, 11, 1}, {3, 3, 1, 8}, {1, 1}, {1, 1}, "VALID"},
      {"first layer, many positions", {9, 18, 17, 1}, {3, 3, 1, 32}, {1, 1}, {1, 1}, "SAME"},
      {"first layer, five by five", {6, 21, 19, 1}, {5, 5, 1, 12}, {2, 1}, {1, 1}, "VALID"},
      {"first layer, colours", {3, 20, 21, 3}, {3, 3, 3, 16}, {1, 1}, {1, 1}, "SAME"},
      {"channels", {2, 9, 10, 16}, {3, 3, 16, 32}, {1, 1}, {1, 1}, "SAME"},
      {"a block of channels", {2, 9, 10, 16}, {3, 3, 16, 16}, {1, 1}, {1, 1}, "SAME"},
      {"a block of channels, strides", {2, 9, 8, 16}, {3, 3, 16, 16}, {2, 2}, {1, 1}, "VALID"},
      {"a block from one channel", {2, 9, 10, 1}, {3, 3, 1, 16}, {1, 1}, {1, 1}, "SAME"},
      {"odd channels", {2, 7, 9, 3}, {3, 2, 3, 5}, {1, 1}, {1, 1}, "SAME"},
      {"strides", {2, 11, 14, 6}, {3, 3, 6, 10}, {2, 3}, {1, 1}, "SAME"},
      {"strides, rows left over", {1, 12, 12, 4}, {3, 3, 4, 4}, {2, 2}, {1, 1}, "VALID"},
      {"one by one", {2, 5, 6, 17}, {1, 1, 17, 9}, {1, 1}, {1, 1}, "VALID"},
      {"one by one, strides", {2, 6, 6, 8}, {1, 1, 8, 16}, {2, 2}, {1, 1}, "SAME"},
      {"dilations", {1, 13, 12, 4}, {3, 3, 4, 6}, {1, 1}, {2, 3}, "SAME"},
      {"groups", {2, 8, 8, 12}, {3, 3, 4, 6}, {1, 1}, {1, 1}, "SAME"},
      {"window as large as the input", {2, 4, 5, 3}, {4, 5, 3, 7}, {1, 1}, {1, 1}, "VALID"},
      {"depthwise", {2, 9, 8, 16}, {3, 3, 16, 1}, {1, 1}, {1, 1}, "SAME"},
      {"depthwise, strides", {2, 9, 9, 5}, {3, 3, 5, 1}, {2, 2}, {1, 1}, "VALID"},
      {"depthwise, two each", {2, 6, 7, 5}, {3, 3, 5, 2}, {1, 1}, {1, 1}, "SAME"},
  };
  return conv_cases(k_convs);
}

std::vector<OpCase> more_pool_cases() {
  struct Pool {
    std::string_view name;
    Shape x;
    Ints size, strides;
    std::string_view padding;
  };
  const Pool pools[] = {
      {"halves", {3, 6, 8, 5}, {2, 2}, {2, 2}, "VALID"},
      {"odd sides", {2, 7, 5, 3}, {2, 2}, {2, 2}, "SAME"},
      {"overlapping", {2, 9, 8, 4}, {3, 3}, {2, 1}, "SAME"},
      {"all of it", {2, 5, 4, 9}, {5, 4}, {1, 1}, "VALID"},
      {"larger than the input", {1, 2, 3, 2}, {5, 4}, {1, 1}, "SAME"},
      {"many channels", {1, 4, 4, 1030}, {2, 2}, {2, 2}, "VALID"},
      {"vectors and a rest", {2, 4, 6, 21}, {2, 2}, {2, 2}, "VALID"},
      {"vectors and a rest, rows left over", {1, 5, 7, 18}, {2, 2}, {2, 2}, "VALID"},
      {"vectors and a rest, overlapping", {1, 7, 9, 33}, {3, 3}, {2, 2}, "SAME"},
      {"large", {40, 12, 12, 16}, {2, 2}, {2, 2}, "VALID"},
  };
  std::vector<OpCase> cases;
  for (const Pool& pool : pools) {
    const graph::Attrs attrs{{"ksize", Ints{1, pool.size[0], pool.size[1], 1}},
                             {"strides", Ints{1, pool.strides[0], pool.strides[1], 1}},
                             {"padding", std::string(pool.padding)}};
    const auto add = [&](std::string_view op, std::vector<Operand> inputs) {
      cases.push_back({.name = fmt::format("{}/{}", op, pool.name),
                       .op = std::string(op),
                       .attrs = attrs,
                       .inputs = std::move(inputs),
                       .terms = pool.size[0] * pool.size[1] + 8,
                       .magnitude = 2.0 * static_cast<double>(pool.size[0] * pool.size[1])});
    };
    add("MaxPool", {special(pool.x)});
    add("AvgPool", {uniform(pool.x)});
    const BuiltCase forward = build(cases.back(), DType::float32);
    const Shape y = forward.graph.node(forward.node).outputs[0].shape;
    // MaxPoolGrad searches the pooled value in the input.
    add("MaxPoolGrad", {distinct(pool.x), uniform(y), uniform(y)});
    add("MaxPoolGrad", {special(pool.x), uniform(y), uniform(y)});
    add("AvgPoolGrad", {ints(Ints(pool.x.begin(), pool.x.end())), uniform(y)});
  }
  return cases;
}

std::vector<OpCase> more_norm_cases() {
  std::vector<OpCase> cases;
  for (const Shape& x : {Shape{3, 2, 2, 5}, Shape{50, 7, 9, 13}, Shape{64, 1, 1, 1100}}) {
    const std::int64_t c = x.back();
    const auto wide = [&](double low, double high) {
      return typed(uniform({c}, low, high), DType::float32);
    };
    for (const bool training : {true, false}) {
      const graph::Attrs attrs{{"epsilon", 1e-3}, {"is_training", training}};
      const std::string name = fmt::format("{}/{}", to_string(x), training ? "training" : "use");
      const auto add = [&](std::string op, std::vector<Operand> inputs, std::int64_t terms) {
        cases.push_back({.name = op + "/" + name,
                         .op = op,
                         .attrs = attrs,
                         .inputs = std::move(inputs),
                         .terms = terms,
                         .magnitude = 16});
      };
      // Far from 0, so that a sum of squares would cancel.
      add("FusedBatchNormV3",
          {uniform(x, 90, 94), wide(0.5, 2), wide(-1, 1), wide(90, 94), wide(0.5, 2)},
          64);
      add("FusedBatchNormGradV3",
          {uniform(x), uniform(x, 90, 94), wide(0.5, 2), wide(91.5, 92.5), wide(1, 2), wide(0, 1)},
          160);
      add("BatchNormReluGrad",
          {uniform(x), uniform(x), wide(0.5, 2), wide(-1, 1), wide(-0.5, 0.5), wide(1, 2)},
          160);
    }
  }
  return cases;
}

std::vector<OpCase> more_update_cases() {
  std::vector<OpCase> cases;
  const Shape shape{37, 501};
  const auto add = [&](std::string name, std::vector<Operand> inputs, graph::Attrs attrs = {}) {
    cases.push_back({.name = name,
                     .op = name.substr(0, name.find('/')),
                     .attrs = std::move(attrs),
                     .inputs = std::move(inputs),
                     .terms = 16,
                     .magnitude = 8});
  };
  const Operand w = variable(shape);
  const Operand positive = variable(shape, 0.125, 2);
  const Operand small = variable(shape, -0.25, 0.25);
  const Operand g = uniform(shape);
  const Operand lr = number(0.01), rho = number(0.9), epsilon = number(0x1p-10);
  const graph::Attrs nesterov{{"use_nesterov", true}};
  add("ResourceApplyGradientDescent/plain", {w, lr, g});
  for (const bool flag : {false, true}) {
    const std::string what = flag ? "nesterov" : "plain";
    const graph::Attrs attrs{{"use_nesterov", flag}};
    add("ResourceApplyKerasMomentum/" + what, {w, small, lr, g, rho}, attrs);
    add("ResourceApplyAdam/" + what,
        {w, small, positive, number(0.5), number(0.75), lr, rho, number(0.99), epsilon, g},
        attrs);
    add("ResourceApplyAdagradV2/" + what, {w, positive, lr, epsilon, g}, {{"update_slots", flag}});
  }
  add("ResourceApplyKerasRMSProp/plain", {w, positive, lr, rho, epsilon, g});
  add("ResourceApplyRMSProp/plain", {w, positive, small, lr, rho, number(0.5), epsilon, g});
  add("ResourceApplyCenteredRMSProp/plain",
      {w, small, positive, small, lr, rho, number(0.5), epsilon, g});
  add("ResourceApplyAdamW/plain",
      {w,
       small,
       positive,
       number(0.5),
       number(0.75),
       lr,
       number(0.25),
       rho,
       number(0.99),
       epsilon,
       g});
  return cases;
}

std::vector<OpCase> all_kernel_cases() {
  std::vector<OpCase> all = op_cases();
  for (const auto& family : {large_cases(),
                             more_conv_cases(),
                             more_pool_cases(),
                             more_norm_cases(),
                             more_update_cases()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

int check_against_reference(const backend::Kernel& kernel,
                            const backend::Capabilities& capabilities,
                            const std::vector<OpCase>& cases) {
  const OneKernel one(kernel, capabilities);
  const backend::Backend reference = backend::cpu_reference();
  int taken = 0;
  for (const OpCase& c : cases) {
    if (c.op != kernel.op) continue;
    const std::vector<DType> dtypes = dtypes_of(c);
    for (DType dtype : dtypes) {
      BuiltCase narrow = build(c, dtype);
      if (!one.takes(narrow)) continue;
      ++taken;
      CAPTURE(c.name);
      CAPTURE(kernel.name);
      CAPTURE(name(dtype));
      const bool widened = is_floating(dtype) && contains(dtypes, DType::float64);
      BuiltCase wide = widened ? build(c, DType::float64, dtype) : build(c, dtype);
      const std::vector<Tensor> got = one.run(narrow);
      const std::vector<Tensor> want = run(wide, reference);
      REQUIRE(got.size() == want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        const Comparison same =
            compare(got[i].view(), want[i].view(), c.accumulated(dtype), c.terms, c.magnitude);
        CHECK_MESSAGE(same, same.text);
      }
    }
  }
  return taken;
}

void check_in_place(const backend::Kernel& kernel,
                    const backend::Capabilities& capabilities,
                    BuiltCase& built) {
  const backend::NodeView node{built.graph, built.graph.node(built.node)};
  // With the input `again`, where it is another one, in the memory of the input `shared`.
  const auto result = [&](std::size_t shared, std::size_t again, bool in_place) {
    std::vector<Tensor> inputs =
        evaluate(built.graph, backend::cpu_reference(), built.inputs, built.feeds, built.variables);
    std::vector<TensorView> in, out;
    for (const Tensor& tensor : inputs) in.push_back(tensor.view());
    in[again] = in[shared];
    std::vector<Tensor> outputs;
    for (std::size_t port = 0; port < node.outputs(); ++port) {
      outputs.emplace_back(node.output(port).dtype, node.output(port).shape);
    }
    for (const Tensor& tensor : outputs) out.push_back(tensor.view());
    if (in_place) out[0].data = in[shared].data;
    run_kernel(kernel, node, capabilities, in, out);
    Tensor y(out[0].dtype, out[0].shape);
    if (y.bytes() > 0) std::memcpy(y.view().data, out[0].data, y.bytes());
    return y;
  };
  for (std::size_t shared = 0; shared < node.inputs(); ++shared) {
    const graph::TensorType& type = node.input(shared);
    const bool fits = type.shape == node.output().shape &&
                      size_bytes(type.dtype) == size_bytes(node.output().dtype);
    if ((kernel.inplace >> shared & 1U) == 0 || !fits) continue;
    for (std::size_t again = 0; again < node.inputs(); ++again) {
      if (node.input(again) != type) continue;
      CAPTURE(kernel.name);
      CAPTURE(shared);
      CAPTURE(again);
      const Comparison same =
          compare_bits(result(shared, again, true).view(), result(shared, again, false).view());
      CHECK_MESSAGE(same, same.text);
    }
  }
}

}  // namespace halfstep::testing
