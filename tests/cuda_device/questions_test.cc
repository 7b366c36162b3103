// Answers that only a GPU has, printed as `ok NAME: answer` for scripts/gpu_check.sh: run with
// -tc='questions*' -ns. On the emulated device the extents are small and the times mean nothing.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <ostream>
#include <string_view>

#include "backend/cuda/kernels/array.h"
#include "backend/cuda/kernels/bias.h"
#include "cuda_device/device.h"
#include "support/cuda/conv_case.h"
#include "support/cuda/matmul_case.h"
#include "support/cuda/random_values.h"

namespace halfstep::testing {
namespace {

using backend::cuda::Convolution;
using backend::cuda::Epilogue;
using backend::cuda::Float32Math;
using backend::cuda::Matmul;
using backend::cuda::MatmulKey;
using backend::cuda::StreamEvent;
namespace own = backend::cuda::kernels;

void answer(std::string_view name, const std::string& text) {
  fmt::print("ok {}: {}\n", name, text);
}

bool is_emulated() { return std::string_view(backend::cuda::vendor_name()) == "emulated"; }

/// Microseconds of one run, the mean of several in a row.
template <class Run>
double microseconds(const Run& run) {
  constexpr int k_runs = 20;
  for (int i = 0; i < 3; ++i) run();
  const std::unique_ptr<StreamEvent> begin = device().event(), end = device().event();
  begin->record();
  for (int i = 0; i < k_runs; ++i) run();
  end->record();
  end->wait();
  return end->seconds_since(*begin) / k_runs * 1e6;
}

struct MatMulShape {
  std::string_view name;
  MatmulKey key;
};

/// The matmuls of a step of the guide's model, 784-4096-4096-10 at a batch of 8192, with the ten
/// classes padded to 16.
std::vector<MatMulShape> matmuls_of_guide(DType dtype) {
  const std::int64_t shrink = is_emulated() ? 256 : 1;
  const std::int64_t batch = 8192 / shrink, units = 4096 / shrink;
  const std::int64_t inputs = is_emulated() ? 16 : 784, classes = 16;
  const auto key = [&](std::int64_t m, std::int64_t n, std::int64_t k, Epilogue epilogue) {
    return MatmulKey{.m = m, .n = n, .k = k, .in = dtype, .out = dtype, .epilogue = epilogue};
  };
  std::vector<MatMulShape> matmuls{
      {"dense_1", key(batch, units, inputs, Epilogue::bias_relu_mask)},
      {"dense_2", key(batch, units, units, Epilogue::bias_relu_mask)},
      {"logits", key(batch, classes, units, Epilogue::bias)},
      {"logits gradient", key(units, classes, batch, Epilogue::sums_of_b)},
      {"dense_2 output gradient",
       key(batch, units, classes, Epilogue::relu_gradient_bias_gradient)},
      {"dense_2 gradient", key(units, units, batch, Epilogue::none)},
      {"dense_1 output gradient", key(batch, units, units, Epilogue::relu_gradient_bias_gradient)},
      {"dense_1 gradient", key(inputs, units, batch, Epilogue::none)}};
  for (MatMulShape& matmul : matmuls) {
    const bool to_weights = matmul.key.k == batch;
    matmul.key.transpose_a = to_weights;
    matmul.key.transpose_b =
        !to_weights && matmul.key.epilogue == Epilogue::relu_gradient_bias_gradient;
  }
  return matmuls;
}

/// Memory with a block of random values, repeated: large matrices would take seconds to draw.
class RandomMemory {
 public:
  RandomMemory(DType dtype, std::int64_t elements, RandomStream& random)
      : memory_(static_cast<std::size_t>(elements) * size_bytes(dtype)) {
    const Tensor block = random_tensor(dtype, std::min<std::int64_t>(elements, 1 << 16), random);
    const std::size_t bytes = static_cast<std::size_t>(elements) * size_bytes(dtype);
    for (std::size_t at = 0; at < bytes; at += block.bytes()) {
      device().upload(static_cast<std::byte*>(memory_.address()) + at,
                      block.view().data,
                      std::min(block.bytes(), bytes - at));
    }
    device().synchronize();
  }
  void* address() const { return memory_.address(); }

 private:
  OnDevice memory_;
};

/// A prepared matmul with its operands; `found` is false where the library has none.
class Trial {
 public:
  Trial(const MatmulKey& key, RandomStream& random)
      : matmul_(device().matmul(key)),
        a_(key.in, key.m * key.k, random),
        b_(key.in, key.k * key.n, random),
        bias_(key.out, key.n, random),
        c_(static_cast<std::size_t>(key.m * key.n) * size_bytes(key.out)),
        mask_(static_cast<std::size_t>(graph::ops::fused_mask_bytes(key.m, key.n))),
        workspace_(matmul_ ? matmul_->workspace_bytes() : 0) {}

  bool found() const { return matmul_ != nullptr; }
  const Matmul& matmul() const { return *matmul_; }
  void run() {
    matmul_->run({.a = a_.address(),
                  .b = b_.address(),
                  .c = c_.address(),
                  .bias = bias_.address(),
                  .mask = mask_.address()},
                 workspace_.address());
  }
  void* c() const { return c_.address(); }

 private:
  std::unique_ptr<Matmul> matmul_;
  RandomMemory a_, b_, bias_;
  OnDevice c_, mask_, workspace_;
};

/// The time of the reduction that computes bias gradients outside of a matmul; with `features`, of
/// those that are the outputs of a ReLU.
double own_bias_gradient(const MatmulKey& key, void* dy, const void* features = nullptr) {
  own::BiasGradParams params{.dtype = key.out,
                             .dy = dy,
                             .features = features,
                             .masked = dy,
                             .outer = key.m,
                             .channels = key.n,
                             .tickets = tickets()};
  const OnDevice sums(static_cast<std::size_t>(key.n) * size_bytes(key.out));
  const OnDevice workspace(own::bias_grad_workspace(params));
  params.dbias = sums.address();
  params.workspace = workspace.address();
  return microseconds([&] { own::bias_grad(device().stream(), params); });
}

void answer_matmuls() {
  RandomStream random(71, 0);
  for (MatMulShape matmul : matmuls_of_guide(DType::float16)) {
    MatmulKey plain_key = matmul.key;
    plain_key.epilogue = Epilogue::none;
    Trial plain(plain_key, random), fused(matmul.key, random);
    REQUIRE(plain.found());
    const double plain_time = microseconds([&] { plain.run(); });
    std::string text = fmt::format("plain {:.1f} us, {}, workspace {} KiB",
                                   plain_time,
                                   plain.matmul().description(),
                                   plain.matmul().workspace_bytes() / 1024);
    if (matmul.key.epilogue != Epilogue::none) {
      text += fmt::format("; {}: ", name(matmul.key.epilogue));
      if (!fused.found()) {
        text += "no algorithm runs it and keeps NaN";
      } else {
        const double fused_time = microseconds([&] { fused.run(); });
        text += fmt::format("{:.1f} us, {:+.1f} us, {}",
                            fused_time,
                            fused_time - plain_time,
                            fused.matmul().description());
      }
    }
    if (matmul.key.epilogue == Epilogue::relu_gradient_bias_gradient) {
      MatmulKey masked_key = matmul.key;
      masked_key.epilogue = Epilogue::relu_gradient;
      Trial masked(masked_key, random);
      if (masked.found()) {
        text += fmt::format(
            "; {} {:.1f} us", name(masked_key.epilogue), microseconds([&] { masked.run(); }));
      }
    }
    if (matmul.key.epilogue == Epilogue::relu_gradient_bias_gradient ||
        matmul.key.epilogue == Epilogue::sums_of_b) {
      text += fmt::format("; the bias gradient by an own kernel {:.1f} us",
                          own_bias_gradient(plain_key, plain.c()));
    }
    if (matmul.key.epilogue == Epilogue::relu_gradient_bias_gradient) {
      text += fmt::format(", with that of the ReLU {:.1f} us",
                          own_bias_gradient(plain_key, plain.c(), fused.c()));
    }
    if (matmul.key.epilogue == Epilogue::bias_relu_mask) {
      MatmulKey unmasked_key = matmul.key;
      unmasked_key.epilogue = Epilogue::bias_relu;
      Trial unmasked(unmasked_key, random);
      if (unmasked.found()) {
        text += fmt::format(
            "; {} {:.1f} us", name(unmasked_key.epilogue), microseconds([&] { unmasked.run(); }));
      }
    }
    answer(fmt::format("matmul {}", matmul.name), text);
  }
}

void answer_nan() {
  RandomStream random(72, 0);
  for (const DType dtype : dtypes()) {
    MatmulKey key{.m = 64, .n = 64, .k = 64, .in = dtype, .out = dtype};
    key.epilogue = Epilogue::bias_relu;
    const bool found = device().matmul(key) != nullptr;
    answer(fmt::format("NaN through the fused ReLU, {}", name(dtype)),
           found ? "kept" : "dropped by each algorithm: the ReLU is an own kernel");
  }
}

void answer_nodes() {
  constexpr int k_nodes = 1000;
  const OnDevice memory(256);
  const float zero = 0;
  const OnDevice value(Tensor(DType::float32, {1}));
  const own::FillParams params{
      .element_bytes = sizeof zero, .value = value.address(), .y = memory.address(), .elements = 1};
  own::fill(device().stream(), params);
  device().synchronize();
  device().begin_capture();
  for (int i = 0; i < k_nodes; ++i) own::fill(device().stream(), params);
  const auto graph = device().end_capture();
  const double time = microseconds([&] { graph->launch(); });
  answer("a node of a captured graph",
         fmt::format("{:.2f} us, of {} that do nothing", time / k_nodes, graph->nodes()));
}

/// Whether cuDNN's gradient of a filter is right where an image is padded by one cell at its end.
void answer_uneven_padding() {
  RandomStream random(75, 0);
  for (const DType dtype : dtypes()) {
    const std::int64_t batch = is_emulated() ? 1 : 32;
    const graph::Attrs attrs{{"strides", std::vector<std::int64_t>{1, 2, 2, 1}},
                             {"padding", std::string("SAME")}};
    backend::cuda::ConvKey key{.kind = backend::cuda::ConvKind::filter_gradient,
                               .geometry = graph::ops::conv_geometry(
                                   attrs, Shape{batch, 28, 28, 16}, Shape{3, 3, 16, 32})};
    key.dtype = dtype;
    ConvCase c(key, random);
    const std::vector<double> wanted = c.wanted();
    const auto convolution = device().convolution(key);
    REQUIRE(convolution != nullptr);
    const OnDevice x(c.x), filter(c.filter), y(c.y), workspace(convolution->workspace_bytes());
    convolution->run({.x = x.address(), .filter = filter.address(), .y = y.address()},
                     workspace.address());
    filter.read(c.filter);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double got = element_as_double(c.filter.view(), static_cast<std::int64_t>(i));
      if (!(std::abs(got - wanted[i]) <= c.allowed(wanted[i]))) ++wrong;
    }
    answer(fmt::format("a filter gradient of strides 2 and uneven padding, {}", name(dtype)),
           fmt::format(
               "{} of {} elements wrong, {}", wrong, wanted.size(), convolution->description()));
  }
}

void answer_convolution() {
  RandomStream random(73, 0);
  backend::cuda::ConvKey key{.geometry = random_geometry(random)};
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  REQUIRE(device().convolution(key) != nullptr);
  const Clock::time_point loaded = Clock::now();
  REQUIRE(device().convolution(key) != nullptr);
  const auto ms = [](Clock::duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  answer("first load of cuDNN",
         fmt::format("{:.0f} ms with a plan, the second plan {:.1f} ms",
                     ms(loaded - begin),
                     ms(Clock::now() - loaded)));
}

void answer_float32() {
  RandomStream random(74, 0);
  for (const Float32Math math : {Float32Math::ieee, Float32Math::tf32}) {
    double sum = 0;
    std::string chosen;
    for (MatMulShape matmul : matmuls_of_guide(DType::float32)) {
      matmul.key.epilogue = Epilogue::none;
      matmul.key.float32 = math;
      Trial trial(matmul.key, random);
      REQUIRE(trial.found());
      CHECK((math == Float32Math::tf32 || !trial.matmul().uses_tensor_cores()));
      sum += microseconds([&] { trial.run(); });
      chosen = trial.matmul().description();
    }
    answer(math == Float32Math::ieee ? "strict float32" : "TF32",
           fmt::format("{:.2f} ms for the guide's matmuls, the last by {}", sum / 1e3, chosen));
  }
}

}  // namespace

// cuDNN first: nothing has loaded it yet.
TEST_CASE("questions: cuDNN, matmuls, NaN, nodes of a graph, strict float32" * doctest::skip()) {
  answer_convolution();
  answer_uneven_padding();
  answer_nan();
  answer_nodes();
  answer_matmuls();
  answer_float32();
}

}  // namespace halfstep::testing
