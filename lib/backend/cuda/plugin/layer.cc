// Biases, normalization, pooling and softmax.

#include <string>

#include "backend/cuda/kernels/bias.h"
#include "backend/cuda/kernels/few_taps.h"
#include "backend/cuda/kernels/layer_norm.h"
#include "backend/cuda/kernels/norm.h"
#include "backend/cuda/kernels/pool.h"
#include "backend/cuda/kernels/softmax.h"
#include "backend/cuda/plugin/prepare.h"
#include "graph/op_handles.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// The axis of the channels according to `data_format`.
std::size_t channel_axis(const NodeView& node) {
  const bool last = node.attrs().get<std::string>("data_format") == "NHWC";
  return last ? node.input(0).shape.rank() - 1 : 1;
}

kernels::PoolGeometry pool_geometry(const NodeView& node, const Shape& x) {
  const auto [height, width] = graph::ops::pool_window(node.attrs(), x);
  return {.batch = x[0], .channels = x[3], .height = height, .width = width};
}

using Pool = void (*)(Stream, const kernels::PoolParams&);

template <Pool pool>
PreparedKernel prepare_pool(const NodeView& node, const DeviceContext& context) {
  kernels::PoolParams params{.dtype = node.output().dtype,
                             .geometry = pool_geometry(node, node.input(0).shape)};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.x = a.in[0].data;
    params.y = a.out[0].data;
    pool(stream, params);
  }};
}

/// A convolution, with a bias and a ReLU where the op has them.
PreparedKernel prepare_few_taps_convolution(const NodeView& node, const DeviceContext& context) {
  const bool bias = node.inputs() > 2;
  kernels::FewTapsConvolutionParams params{
      .taps = {node.output().dtype,
               graph::ops::conv_geometry(node.attrs(), node.input(0).shape, node.input(1).shape)},
      .relu = node.node.is(graph::ops::k_conv2d_bias_relu)};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.x = a.in[0].data;
    params.filter = a.in[1].data;
    params.bias = bias ? a.in[2].data : nullptr;
    params.y = a.out[0].data;
    kernels::few_taps_convolution(stream, params);
  }};
}

PreparedKernel prepare_filter_gradient(const NodeView& node, const DeviceContext& context) {
  kernels::FilterGradientParams params{
      .taps = {node.output().dtype,
               graph::ops::conv_geometry(node.attrs(), node.input(0).shape, node.output().shape)},
      .tickets = context.tickets};
  return {[=, stream = context.stream()](const Args& a) mutable {
            params.x = a.in[0].data;
            params.dy = a.in[2].data;
            params.filter = a.out[0].data;
            params.workspace = a.workspace;
            kernels::filter_gradient(stream, params);
          },
          kernels::filter_gradient_workspace(params.taps)};
}

PreparedKernel prepare_bias_add(const NodeView& node, const DeviceContext& context) {
  const Shape& x = node.input(0).shape;
  const std::size_t axis = channel_axis(node);
  kernels::BiasAddParams params{.dtype = node.output().dtype,
                                .outer = x.elements(0, axis),
                                .channels = x[axis],
                                .inner = x.elements(axis + 1, x.rank())};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.x = a.in[0].data;
    params.bias = a.in[1].data;
    params.y = a.out[0].data;
    kernels::bias_add(stream, params);
  }};
}

PreparedKernel prepare_bias_grad(const NodeView& node, const DeviceContext& context) {
  const Shape& dy = node.input(0).shape;
  const std::size_t axis = channel_axis(node);
  kernels::BiasGradParams params{.dtype = node.output().dtype,
                                 .outer = dy.elements(0, axis),
                                 .channels = dy[axis],
                                 .inner = dy.elements(axis + 1, dy.rank()),
                                 .tickets = context.tickets};
  return {[=, stream = context.stream()](const Args& a) mutable {
            params.dy = a.in[0].data;
            params.dbias = a.out[0].data;
            params.workspace = a.workspace;
            kernels::bias_grad(stream, params);
          },
          kernels::bias_grad_workspace(params)};
}

PreparedKernel prepare_batch_norm(const NodeView& node, const DeviceContext& context) {
  const Shape& x = node.input(0).shape;
  kernels::BatchNormParams params{
      .dtype = node.input(0).dtype,
      .statistics = node.input(1).dtype,
      .rows = x.elements() / x.back(),
      .channels = x.back(),
      .epsilon = node.attrs().get<double>("epsilon"),
      .factor = node.attrs().get_or<double>("exponential_avg_factor", 1),
      .training = node.attrs().get_or<bool>("is_training", false),
      .relu = node.attrs().get_or<std::string>("activation_mode", "") == "Relu",
      .tickets = context.tickets};
  const bool side = node.inputs() > 5;
  const bool statistics = node.outputs() > 1;
  return {[=, stream = context.stream()](const Args& a) mutable {
            params.x = a.in[0].data;
            params.scale = a.in[1].data;
            params.offset = a.in[2].data;
            params.mean = a.in[3].data;
            params.variance = a.in[4].data;
            params.side = side ? a.in[5].data : nullptr;
            params.y = a.out[0].data;
            if (statistics) {
              params.new_mean = a.out[1].data;
              params.new_variance = a.out[2].data;
              params.saved_mean = a.out[3].data;
              params.saved_variance = a.out[4].data;
              params.reserved = a.out[5].data;
            }
            params.workspace = a.workspace;
            kernels::batch_norm(stream, params);
          },
          kernels::batch_norm_workspace(params)};
}

PreparedKernel prepare_batch_moments(const NodeView& node, const DeviceContext& context) {
  const Shape& x = node.input(0).shape;
  kernels::BatchNormParams params{.dtype = node.input(0).dtype,
                                  .statistics = node.output().dtype,
                                  .rows = x.elements() / x.back(),
                                  .channels = x.back(),
                                  .tickets = context.tickets};
  return {[=, stream = context.stream()](const Args& a) mutable {
            params.x = a.in[0].data;
            params.saved_mean = a.out[0].data;
            params.saved_variance = a.out[1].data;
            params.workspace = a.workspace;
            kernels::batch_norm(stream, params);
          },
          kernels::batch_norm_workspace(params)};
}

PreparedKernel prepare_batch_norm_grad(const NodeView& node, const DeviceContext& context) {
  const Shape& x = node.input(1).shape;
  const bool relu = node.node.is(graph::ops::k_batch_norm_relu_grad);  // with the offset as input 3
  kernels::BatchNormGradParams params{.dtype = node.input(1).dtype,
                                      .statistics = node.input(3).dtype,
                                      .rows = x.elements() / x.back(),
                                      .channels = x.back(),
                                      .epsilon = node.attrs().get<double>("epsilon"),
                                      .training = node.attrs().get<bool>("is_training"),
                                      .relu = relu,
                                      .tickets = context.tickets};
  return {[=, stream = context.stream()](const Args& a) mutable {
            params.dy = a.in[0].data;
            params.x = a.in[1].data;
            params.scale = a.in[2].as<float>();
            params.offset = relu ? a.in[3].as<float>() : nullptr;
            params.mean = a.in[relu ? 4 : 3].data;
            params.variance = a.in[relu ? 5 : 4].data;
            params.dx = a.out[0].data;
            params.dscale = a.out[1].data;
            params.doffset = a.out[2].data;
            params.workspace = a.workspace;
            kernels::batch_norm_grad(stream, params);
          },
          kernels::batch_norm_grad_workspace(params)};
}

PreparedKernel prepare_batch_norm_grad_sums(const NodeView& node, const DeviceContext& context) {
  const Shape& x = node.input(1).shape;
  kernels::BatchNormGradParams params{.dtype = node.input(1).dtype,
                                      .statistics = node.input(2).dtype,
                                      .rows = x.elements() / x.back(),
                                      .channels = x.back(),
                                      .epsilon = node.attrs().get<double>("epsilon"),
                                      .relu = node.inputs() > 4,
                                      .tickets = context.tickets};
  return {[=, stream = context.stream()](const Args& a) mutable {
            params.dy = a.in[0].data;
            params.x = a.in[1].data;
            params.mean = a.in[2].data;
            params.variance = a.in[3].data;
            if (params.relu) {
              params.scale = a.in[4].as<float>();
              params.offset = a.in[5].as<float>();
            }
            params.dscale = a.out[0].data;
            params.doffset = a.out[1].data;
            params.workspace = a.workspace;
            kernels::batch_norm_grad(stream, params);
          },
          kernels::batch_norm_grad_workspace(params)};
}

PreparedKernel prepare_normalize_by_moments_grad(const NodeView& node,
                                                 const DeviceContext& context) {
  const Shape& x = node.input(1).shape;
  kernels::BatchNormGradParams params{.dtype = node.input(1).dtype,
                                      .statistics = node.input(3).dtype,
                                      .rows = x.elements() / x.back(),
                                      .channels = x.back(),
                                      .sum_rows = node.attrs().get<std::int64_t>("rows"),
                                      .epsilon = node.attrs().get<double>("epsilon"),
                                      .relu = node.inputs() > 7,
                                      .tickets = context.tickets};
  return {[=, stream = context.stream()](const Args& a) mutable {
            params.dy = a.in[0].data;
            params.x = a.in[1].data;
            params.scale = a.in[2].as<float>();
            params.mean = a.in[3].data;
            params.variance = a.in[4].data;
            params.given_dscale = a.in[5].data;
            params.given_doffset = a.in[6].data;
            params.offset = params.relu ? a.in[7].as<float>() : nullptr;
            params.dx = a.out[0].data;
            params.workspace = a.workspace;
            kernels::batch_norm_grad(stream, params);
          },
          kernels::batch_norm_grad_workspace(params)};
}

PreparedKernel prepare_layer_norm(const NodeView& node, const DeviceContext& context) {
  const Shape& x = node.input(0).shape;
  kernels::LayerNormParams params{.dtype = node.input(0).dtype,
                                  .rows = x.elements() / x.back(),
                                  .columns = x.back(),
                                  .epsilon = node.attrs().get<double>("epsilon")};
  const bool sums = node.inputs() > 3;
  if (sums) params.addend_rows = node.input(3).shape.elements() / x.back();
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.x = a.in[0].data;
    params.gamma = a.in[1].data;
    params.beta = a.in[2].data;
    if (sums) {
      params.addend = a.in[3].data;
      params.sum = a.out[3].data;
    }
    params.y = a.out[0].data;
    params.mean = a.out[1].data;
    params.inverse = a.out[2].data;
    kernels::layer_norm(stream, params);
  }};
}

PreparedKernel prepare_layer_norm_grad(const NodeView& node, const DeviceContext& context) {
  const Shape& x = node.input(1).shape;
  kernels::LayerNormGradParams params{.dtype = node.input(1).dtype,
                                      .rows = x.elements() / x.back(),
                                      .columns = x.back(),
                                      .tickets = context.tickets};
  const bool of_dx = node.attrs().get<std::int64_t>("x_addends") > 0;
  const std::size_t of_dy = node.inputs() - 5 - (of_dx ? 1 : 0);
  return {[=, stream = context.stream()](const Args& a) mutable {
            params.dy = a.in[0].data;
            for (std::size_t i = 0; i < of_dy; ++i) params.dy_addends[i] = a.in[5 + i].data;
            params.x = a.in[1].data;
            params.gamma = a.in[2].data;
            params.mean = a.in[3].data;
            params.inverse = a.in[4].data;
            if (of_dx) params.dx_addend = a.in[5 + of_dy].data;
            params.dx = a.out[0].data;
            params.dgamma = a.out[1].data;
            params.dbeta = a.out[2].data;
            params.workspace = a.workspace;
            kernels::layer_norm_grad(stream, params);
          },
          kernels::layer_norm_grad_workspace(params)};
}

PreparedKernel prepare_max_pool_grad(const NodeView& node, const DeviceContext& context) {
  kernels::MaxPoolGradParams params{.dtype = node.output().dtype,
                                    .geometry = pool_geometry(node, node.input(0).shape)};
  return {[=, stream = context.stream()](const Args& a) mutable {
            params.x = a.in[0].data;
            params.dy = a.in[2].data;
            params.dx = a.out[0].data;
            params.workspace = a.workspace;
            kernels::max_pool_grad(stream, params);
          },
          kernels::max_pool_grad_workspace(params)};
}

PreparedKernel prepare_avg_pool_grad(const NodeView& node, const DeviceContext& context) {
  kernels::AvgPoolGradParams params{.dtype = node.output().dtype,
                                    .geometry = pool_geometry(node, node.output().shape)};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.dy = a.in[1].data;
    params.dx = a.out[0].data;
    kernels::avg_pool_grad(stream, params);
  }};
}

PreparedKernel prepare_softmax(const NodeView& node, const DeviceContext& context) {
  const Shape& x = node.input(0).shape;
  kernels::SoftmaxParams params{.dtype = node.output().dtype,
                                .rows = x.elements(0, x.rank() - 1),
                                .classes = x.back(),
                                .logarithm = node.node.is(graph::ops::k_log_softmax)};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.x = a.in[0].data;
    params.y = a.out[0].data;
    kernels::softmax(stream, params);
  }};
}

PreparedKernel prepare_cross_entropy(const NodeView& node, const DeviceContext& context) {
  const Shape& x = node.input(0).shape;
  kernels::CrossEntropyParams params{.dtype = node.input(0).dtype, .rows = x[0], .classes = x[1]};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.logits = a.in[0].data;
    params.labels = a.in[1].data;
    params.loss = a.out[0].data;
    params.gradient = a.out[1].data;
    kernels::cross_entropy(stream, params);
  }};
}

PreparedKernel prepare_sparse_cross_entropy(const NodeView& node, const DeviceContext& context) {
  const Shape& x = node.input(0).shape;
  kernels::SparseCrossEntropyParams params{
      .dtype = node.input(0).dtype, .label = node.input(1).dtype, .rows = x[0], .classes = x[1]};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.logits = a.in[0].data;
    params.labels = a.in[1].data;
    params.loss = a.out[0].data;
    params.gradient = a.out[1].data;
    kernels::sparse_cross_entropy(stream, params);
  }};
}

PreparedKernel prepare_softmax_loss(const NodeView& node, const DeviceContext& context) {
  const Shape& x = node.input(0).shape;
  const std::string& forms = node.attrs().get<std::string>("forms");
  const auto classes = node.attrs().get<std::int64_t>("classes");
  kernels::SoftmaxLossParams params{.dtype = node.input(0).dtype,
                                    .label = node.input(1).dtype,
                                    .rows = x[0],
                                    .classes = classes == 0 ? x[1] : classes,
                                    .columns = x[1],
                                    .tickets = context.tickets};
  return {[=, stream = context.stream()](const Args& a) mutable {
            const auto out = [&](char form) {
              const std::size_t at = forms.find(form);
              return at == std::string::npos ? nullptr : a.out[at].data;
            };
            params.logits = a.in[0].data;
            params.labels = a.in[1].data;
            params.gradient = out('g');
            params.seed = params.gradient == nullptr ? nullptr : a.in[2].as<float>();
            params.probabilities = static_cast<float*>(out('p'));
            params.losses = static_cast<float*>(out('l'));
            params.mean = static_cast<float*>(out('m'));
            params.correct = static_cast<float*>(out('c'));
            params.workspace = a.workspace;
            kernels::softmax_loss(stream, params);
          },
          kernels::softmax_loss_workspace(params)};
}

}  // namespace

std::vector<Implementation> layer_kernels() {
  return {
      {"cuda/avg_pool", prepare_pool<kernels::avg_pool>},
      {"cuda/avg_pool_grad", prepare_avg_pool_grad},
      {"cuda/batch_moments", prepare_batch_moments},
      {"cuda/batch_norm", prepare_batch_norm},
      {"cuda/batch_norm_grad", prepare_batch_norm_grad},
      {"cuda/batch_norm_grad_sums", prepare_batch_norm_grad_sums},
      {"cuda/normalize_by_moments_grad", prepare_normalize_by_moments_grad},
      {"cuda/layer_norm", prepare_layer_norm},
      {"cuda/layer_norm_grad", prepare_layer_norm_grad},
      {"cuda/bias_add", prepare_bias_add},
      {"cuda/bias_grad", prepare_bias_grad},
      {"cuda/cross_entropy", prepare_cross_entropy},
      {"cuda/convolution", prepare_few_taps_convolution},
      {"cuda/filter_gradient", prepare_filter_gradient},
      {"cuda/max_pool", prepare_pool<kernels::max_pool>},
      {"cuda/max_pool_grad", prepare_max_pool_grad},
      {"cuda/softmax", prepare_softmax},
      {"cuda/softmax_loss", prepare_softmax_loss},
      {"cuda/sparse_cross_entropy", prepare_sparse_cross_entropy},
  };
}

}  // namespace halfstep::backend::cuda::plugin
