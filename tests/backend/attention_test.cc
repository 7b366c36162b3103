// The kernels of attention against the reference under each instruction set that this processor
// has, and against themselves with other numbers of threads.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <ostream>

#include "backend/cpu/attention/items.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/processor.h"
#include "core/parallel.h"
#include "fixture.h"
#include "packed.h"
#include "support/kernels.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using backend::Capabilities;
using backend::Isa;

std::vector<Isa> instruction_sets() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    if (isa <= backend::cpu::detect_isa()) all.push_back(isa);
  }
  return all;
}

/// The fast kernels.
backend::Backend fast(int threads = 2) {
  return {.name = "cpu",
          .capabilities = {.isa = backend::cpu::detect_isa(), .threads = threads},
          .kernels = backend::cpu::attention_kernels()};
}

/// Whether any element is NaN or infinite.
bool has_special(const Tensor& tensor) {
  const std::vector<double> all = values(tensor);
  return std::any_of(all.begin(), all.end(), [](double x) { return !std::isfinite(x); });
}

}  // namespace

TEST_CASE("attention: every kernel agrees with the reference under every instruction set") {
  for (const backend::Kernel& kernel : backend::cpu::attention_kernels()) {
    for (const Isa isa : instruction_sets()) {
      CAPTURE(backend::name(isa));
      CHECK(check_against_reference(kernel, {.isa = isa, .threads = 2}, op_cases()) > 40);
    }
  }
}

TEST_CASE("attention: 16-bit operands in one part and in two, on the emulated matrix unit") {
  namespace attention = backend::cpu::attention;
  using backend::NodeView;
  using Prepare = backend::Prepared (*)(const NodeView&, const Capabilities&);
  struct Form {
    DType dtype;
    Prepare forward, backward;
  };
  const Form forms[] = {
      {DType::bfloat16,
       [](const NodeView& n, const Capabilities& c) {
         return attention::prepare_forward(n, c, {&k_emulated_tiles, 1});
       },
       [](const NodeView& n, const Capabilities& c) {
         return attention::prepare_backward(n, c, {&k_emulated_tiles, 1});
       }},
      {DType::float16,
       [](const NodeView& n, const Capabilities& c) {
         return attention::prepare_forward(n, c, {&k_emulated_tiles, 3});
       },
       [](const NodeView& n, const Capabilities& c) {
         return attention::prepare_backward(n, c, {&k_emulated_tiles, 3});
       }},
  };
  for (const Form& form : forms) {
    std::vector<OpCase> cases;
    for (OpCase c : op_cases()) {
      if (!c.op.starts_with("FusedAttention") || !c.name.ends_with(", 16 bits")) continue;
      // The loops of the emulated unit are slow, and its products of large scores less exact.
      if (c.name.find("chunks, causal") != std::string::npos ||
          c.name.find("large") != std::string::npos)
        continue;
      c.dtypes = DTypeSet{form.dtype, DType::float64};
      cases.push_back(std::move(c));
    }
    for (const bool backward : {false, true}) {
      backend::Kernel kernel = backend::cpu::attention_kernels()[backward ? 1 : 0];
      kernel.prepare = backward ? form.backward : form.forward;
      const Capabilities capabilities{.isa = backend::cpu::detect_isa(), .threads = 2};
      CHECK(check_against_reference(kernel, capabilities, cases) > 10);
    }
  }
}

TEST_CASE("attention: the number of threads changes no bit") {
  const ThreadGuard guard;
  for (const backend::Kernel& kernel : backend::cpu::attention_kernels()) {
    for (const OpCase& c : op_cases()) {
      if (c.op != kernel.op || (c.dtypes && c.dtypes->contains(DType::float64))) continue;
      for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
        CAPTURE(c.name);
        const auto result = [&](int count) {
          set_thread_count(count);
          const Capabilities capabilities{.isa = backend::cpu::detect_isa(), .threads = count};
          BuiltCase built = build(c, dtype);
          return OneKernel(kernel, capabilities).run(built);
        };
        const std::vector<Tensor> want = result(1), got = result(3);
        for (std::size_t i = 0; i < want.size(); ++i) {
          const Comparison same = compare_bits(got[i].view(), want[i].view());
          CHECK_MESSAGE(same, same.text);
        }
      }
    }
  }
}

TEST_CASE("attention: an operand that is not finite makes the rows that see it NaN") {
  constexpr std::int64_t k_queries = 40, k_keys = 450, k_depth = 8;
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const double special : {k_nan, HUGE_VAL}) {
      for (int operand = 0; operand < 3; ++operand) {
        CAPTURE(name(dtype));
        CAPTURE(special);
        CAPTURE(operand);
        Fixture f(fast());
        graph::Value in[3];
        for (int i = 0; i < 3; ++i) {
          const std::int64_t steps = i == 0 ? k_queries : k_keys;
          in[i] = f.input(random_tensor(
              dtype, {1, steps, k_depth}, static_cast<unsigned>(i), i == 2 ? -1 : 0.5, 1));
        }
        // Row 3 of the query, the last key, or its value.
        const std::int64_t row = operand == 0 ? 3 : k_keys - 1;
        set(f.held(in[operand]), row * k_depth, special);
        const int node = f.b().add_node("FusedAttention", {in[0], in[1], in[2]});
        f.run();
        const std::vector<double> y = values(f.result({node, 0}));
        for (std::int64_t i = 0; i < k_queries; ++i) {
          const bool hit = operand > 0 || i == 3;
          CHECK(std::isfinite(y[static_cast<std::size_t>(i * k_depth)]) == !hit);
        }
      }
    }
  }
}

TEST_CASE("attention: a gradient that is not finite, or a sum, reaches the gradients") {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const std::size_t operand : {0U, 1U, 2U, 3U, 5U}) {
      CAPTURE(name(dtype));
      CAPTURE(operand);
      Fixture f(fast());
      const Shape rows{2, 40, 8};
      std::vector<graph::Value> in;
      for (unsigned i = 0; i < 5; ++i) in.push_back(f.input(random_tensor(dtype, rows, i)));
      in.push_back(f.input(random_tensor(DType::float32, {2, 40}, 5, 3, 4)));
      set(f.held(in[operand]), 17, k_nan);
      const int node = f.b().add_node("FusedAttentionGrad", in);
      f.run();
      CHECK(has_special(f.result({node, 0})));
      CHECK(has_special(f.result({node, 1})));
      CHECK(has_special(f.result({node, 2})) == (operand != 3));
    }
  }
}

TEST_CASE("attention: keys that a mask leaves out have no influence, even where they are NaN") {
  constexpr std::int64_t k_steps = 450, k_depth = 8;
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    CAPTURE(name(dtype));
    Fixture f(fast());
    const Shape shape{1, k_steps, k_depth};
    std::vector<graph::Value> in;
    for (unsigned i = 0; i < 3; ++i) in.push_back(f.input(random_tensor(dtype, shape, i)));
    Tensor mask(DType::boolean, {1, k_steps});
    // The last third is padding, and so is every other step before it.
    for (std::int64_t i = 0; i < k_steps; ++i) mask.as<bool>()[i] = i < 300 && i % 2 == 0;
    const auto options = [&](std::vector<graph::Value> inputs) {
      inputs.push_back(f.b().scalar(DType::int64, 0));
      inputs.push_back(f.input(mask.clone()));
      return inputs;
    };
    const int node = f.b().add_node("FusedAttention", options(in));
    std::vector<graph::Value> grad{f.input(random_tensor(dtype, shape, 3))};
    grad.insert(grad.end(), in.begin(), in.end());
    grad.insert(grad.end(), {{node, 0}, {node, 1}});
    const int back = f.b().add_node("FusedAttentionGrad", options(grad));
    f.run();
    const auto results = [&] {
      std::vector<std::vector<double>> all;
      for (const graph::Value value :
           {graph::Value{node, 0}, {node, 1}, {back, 0}, {back, 1}, {back, 2}}) {
        all.push_back(values(f.result(value)));
      }
      return all;
    };
    const auto before = results();
    // Keys anywhere; values behind the last block with a key that is taken, since 0 NaN is NaN.
    for (const std::int64_t step : {1, 299, 449}) set(f.held(in[1]), step * k_depth, k_nan);
    for (const std::int64_t step : {320, 449}) set(f.held(in[2]), step * k_depth, k_nan);
    f.run();
    const auto after = results();
    CHECK(after[0] == before[0]);
    CHECK(after[1] == before[1]);
    // The gradients of keys and values that are left out are 0.
    for (const std::size_t i : {3U, 4U}) {
      for (std::size_t k = 0; k < before[i].size(); ++k) {
        const bool taken = mask.as<bool>()[static_cast<std::int64_t>(k) / k_depth];
        REQUIRE((before[i][k] == 0) == !taken);
      }
    }
  }
}

TEST_CASE("attention: scores of -inf have weight 0, and a row of them alone is NaN") {
  constexpr double k_infinity = std::numeric_limits<double>::infinity();
  constexpr std::int64_t k_keys = 500;  // more than a chunk
  Fixture f(fast());
  std::vector<double> keys(k_keys, -k_infinity);
  keys.back() = 2;
  const graph::Value query = f.input(tensor(DType::float32, {1, 1, 1}, {1}));
  const graph::Value key = f.input(tensor(DType::float32, {1, k_keys, 1}, keys));
  std::vector<double> given(k_keys, 7);
  given.back() = 3;
  const graph::Value value = f.input(tensor(DType::float32, {1, k_keys, 1}, given));
  const int node = f.b().add_node("FusedAttention", {query, key, value});
  f.run();
  CHECK(values(f.result({node, 0}))[0] == 3);
  CHECK(values(f.result({node, 1}))[0] == 2);
  set(f.held(key), k_keys - 1, -k_infinity);
  f.run();
  CHECK(std::isnan(values(f.result({node, 0}))[0]));
}

}  // namespace halfstep::testing
