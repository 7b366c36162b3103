#include <cstring>

#include "backend/cuda/vendor/emulated/libraries.h"
#include "backend/cuda/vendor/emulated/queue.h"
#include "backend/cuda/vendor/emulated/values.h"

namespace halfstep::backend::cuda::emulated {
namespace {

// The alignment and workspace that the real vendor uses with cuDNN (real/conv_plans.cc).
constexpr std::size_t k_operand_alignment = 16;
constexpr std::size_t k_workspace = 4096;

/// Calls body(n, group, input row, input column, output row, output column, tap row, tap column)
/// for every tap of every output pixel that reads a pixel inside the image.
template <class F>
void for_each_tap(const ConvArguments& c, F&& body) {
  for (std::int64_t n = 0; n < c.y.extents[0]; ++n) {
    for (std::int64_t p = 0; p < c.y.extents[2]; ++p) {
      for (std::int64_t q = 0; q < c.y.extents[3]; ++q) {
        for (std::int64_t r = 0; r < c.filter.extents[2]; ++r) {
          const std::int64_t row = p * c.stride[0] - c.pre_padding[0] + r * c.dilation[0];
          if (row < 0 || row >= c.x.extents[2]) continue;
          for (std::int64_t s = 0; s < c.filter.extents[3]; ++s) {
            const std::int64_t column = q * c.stride[1] - c.pre_padding[1] + s * c.dilation[1];
            if (column < 0 || column >= c.x.extents[3]) continue;
            body(n, row, column, p, q, r, s);
          }
        }
      }
    }
  }
}

void store_all(DType dtype, void* data, const std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    store_one(dtype, data, static_cast<std::int64_t>(i), values[i]);
  }
}

struct Groups {
  std::int64_t inputs;   ///< of a group
  std::int64_t outputs;  ///< of a group
};

Groups groups_of(const ConvArguments& c) {
  return {c.filter.extents[1], c.y.extents[1] / c.groups};
}

void forward(const ConvArguments& c, const void* x, const void* filter, void* y, const void* bias) {
  const auto [inputs, outputs] = groups_of(c);
  const std::vector<float> xs = load(c.dtype, x, c.x.elements());
  const std::vector<float> fs = load(c.dtype, filter, c.filter.elements());
  std::vector<float> ys(static_cast<std::size_t>(c.y.elements()), 0.0F);
  for_each_tap(c, [&](auto n, auto row, auto column, auto p, auto q, auto r, auto s) {
    float* out = ys.data() + c.y.at(n, 0, p, q);
    const float* in = xs.data() + c.x.at(n, 0, row, column);
    for (std::int64_t o = 0; o < c.y.extents[1]; ++o) {
      out[o] += dot(in + o / outputs * inputs, fs.data() + c.filter.at(o, 0, r, s), inputs);
    }
  });
  if (bias != nullptr) {
    for (std::size_t i = 0; i < ys.size(); ++i) {
      float& value = ys[i];
      value += load_one(c.dtype, bias, static_cast<std::int64_t>(i) % c.y.extents[1]);
      if (c.relu) value = value > 0 || value != value ? value : 0.0F;
    }
  }
  store_all(c.dtype, y, ys);
}

void input_gradient(const ConvArguments& c, void* x, const void* filter, const void* y) {
  const auto [inputs, outputs] = groups_of(c);
  const std::vector<float> fs = load(c.dtype, filter, c.filter.elements());
  const std::vector<float> dys = load(c.dtype, y, c.y.elements());
  std::vector<float> dxs(static_cast<std::size_t>(c.x.elements()), 0.0F);
  for_each_tap(c, [&](auto n, auto row, auto column, auto p, auto q, auto r, auto s) {
    float* out = dxs.data() + c.x.at(n, 0, row, column);
    const float* dy = dys.data() + c.y.at(n, 0, p, q);
    for (std::int64_t o = 0; o < c.y.extents[1]; ++o) {
      const float* f = fs.data() + c.filter.at(o, 0, r, s);
      float* group = out + o / outputs * inputs;
      for (std::int64_t i = 0; i < inputs; ++i) group[i] += dy[o] * f[i];
    }
  });
  store_all(c.dtype, x, dxs);
}

void filter_gradient(const ConvArguments& c, const void* x, void* filter, const void* y) {
  const auto [inputs, outputs] = groups_of(c);
  const std::vector<float> xs = load(c.dtype, x, c.x.elements());
  const std::vector<float> dys = load(c.dtype, y, c.y.elements());
  std::vector<float> dfs(static_cast<std::size_t>(c.filter.elements()), 0.0F);
  for_each_tap(c, [&](auto n, auto row, auto column, auto p, auto q, auto r, auto s) {
    const float* in = xs.data() + c.x.at(n, 0, row, column);
    const float* dy = dys.data() + c.y.at(n, 0, p, q);
    for (std::int64_t o = 0; o < c.y.extents[1]; ++o) {
      float* f = dfs.data() + c.filter.at(o, 0, r, s);
      const float* group = in + o / outputs * inputs;
      for (std::int64_t i = 0; i < inputs; ++i) f[i] += dy[o] * group[i];
    }
  });
  store_all(c.dtype, filter, dfs);
}

class EmulatedConvolution final : public Convolution {
 public:
  EmulatedConvolution(const ConvKey& key, Stream stream)
      : arguments_(conv_arguments(key)), stream_(stream) {}

  std::size_t workspace_bytes() const override { return k_workspace; }
  std::string description() const override { return "emulated, float32 sums"; }
  bool uses_tensor_cores() const override { return false; }

  void run(const Operands& o, void* workspace) override {
    expect_aligned(o.x, k_operand_alignment, "x");
    expect_aligned(o.filter, k_operand_alignment, "filter");
    expect_aligned(o.y, k_operand_alignment, "y");
    if (arguments_.bias.elements() > 0) expect_aligned(o.bias, k_operand_alignment, "bias");
    expect_aligned(workspace, k_alignment, "workspace");
    enqueue(stream_, [c = arguments_, o, workspace] {
      std::memset(workspace, 0xff, k_workspace);
      run_conv(c, o.x, o.filter, o.y, c.bias.elements() > 0 ? o.bias : nullptr);
    });
  }

 private:
  ConvArguments arguments_;
  Stream stream_;
};

}  // namespace

void run_conv(const ConvArguments& c, void* x, void* filter, void* y, const void* bias) {
  switch (c.kind) {
    case ConvKind::forward:
      return forward(c, x, filter, y, bias);
    case ConvKind::input_gradient:
      return input_gradient(c, x, filter, y);
    case ConvKind::filter_gradient:
      return filter_gradient(c, x, filter, y);
  }
}

std::unique_ptr<Convolution> prepare_convolution(const ConvKey& key, Stream stream) {
  return std::make_unique<EmulatedConvolution>(key, stream);
}

}  // namespace halfstep::backend::cuda::emulated
