#include <limits>

#include "backend/cuda/kernels/few_taps.h"
#include "backend/cuda/kernels/image.h"
#include "backend/cuda/kernels/layer_norm.h"
#include "backend/cuda/kernels/norm.h"
#include "backend/cuda/kernels/pool.h"
#include "cuda_device/kernel_rows.h"
#include "graph/ops/window.h"

namespace halfstep::testing {
namespace {

namespace own = backend::cuda::kernels;
using backend::Accepts;
using backend::Args;
using backend::Capabilities;
using backend::Kernel;
using backend::NodeView;
using backend::Prepared;

own::PoolAxis axis_of(const graph::ops::WindowAxis& a) {
  return {.input = a.input,
          .output = a.output,
          .size = a.size,
          .stride = a.stride,
          .pad_before = a.pad_before};
}

own::PoolGeometry geometry_of(const NodeView& node, const Shape& x) {
  const graph::ops::Window window = graph::ops::pool_window(node.attrs(), x);
  return {.batch = x[0],
          .channels = x[3],
          .height = axis_of(window.height),
          .width = axis_of(window.width)};
}

template <void (*pool)(own::Stream, const own::PoolParams&)>
Prepared prepare_pool(const NodeView& node, const Capabilities&) {
  own::PoolParams p{.dtype = node.output().dtype,
                    .geometry = geometry_of(node, node.input(0).shape)};
  return launch_on_device([p](const Args& a) mutable {
    p.x = a.in[0].data;
    p.y = a.out[0].data;
    pool(device().stream(), p);
  });
}

Prepared prepare_max_pool_grad(const NodeView& node, const Capabilities&) {
  own::MaxPoolGradParams p{.dtype = node.output().dtype,
                           .geometry = geometry_of(node, node.input(0).shape)};
  return launch_on_device(
      [p](const Args& a) mutable {
        p.x = a.in[0].data;
        p.dy = a.in[2].data;
        p.dx = a.out[0].data;
        p.workspace = a.workspace;
        own::max_pool_grad(device().stream(), p);
      },
      own::max_pool_grad_workspace(p));
}

Prepared prepare_avg_pool_grad(const NodeView& node, const Capabilities&) {
  own::AvgPoolGradParams p{.dtype = node.output().dtype,
                           .geometry = geometry_of(node, node.output().shape)};
  return launch_on_device([p](const Args& a) mutable {
    p.dy = a.in[1].data;
    p.dx = a.out[0].data;
    own::avg_pool_grad(device().stream(), p);
  });
}

Accepts taps_up_to(std::int64_t most, const Shape& filter, const NodeView& node) {
  const DType dtype = node.output().dtype;
  const bool one_group = filter[2] == node.input(0).shape.back();
  const bool fits = filter.elements(0, 3) <= most && one_group;
  return fits && (dtype == DType::float32 || is_half(dtype)) ? Accepts::yes()
                                                             : Accepts::no("cuDNN's");
}

Accepts few_taps_convolution(const NodeView& node, const Capabilities&) {
  return taps_up_to(own::FewTaps::k_most, node.input(1).shape, node);
}

Accepts filter_gradient(const NodeView& node, const Capabilities&) {
  return taps_up_to(std::numeric_limits<std::int64_t>::max(), node.output().shape, node);
}

Prepared prepare_few_taps_convolution(const NodeView& node, const Capabilities&) {
  own::FewTapsConvolutionParams p{
      .taps = {node.output().dtype,
               graph::ops::conv_geometry(node.attrs(), node.input(0).shape, node.input(1).shape)},
      .relu = node.node.op == "Conv2DBiasRelu"};
  return launch_on_device([p](const Args& a) mutable {
    p.x = a.in[0].data;
    p.filter = a.in[1].data;
    p.bias = a.in.size() > 2 ? a.in[2].data : nullptr;
    p.y = a.out[0].data;
    own::few_taps_convolution(device().stream(), p);
  });
}

Prepared prepare_filter_gradient(const NodeView& node, const Capabilities&) {
  own::FilterGradientParams p{
      .taps = {node.output().dtype,
               graph::ops::conv_geometry(node.attrs(), node.input(0).shape, node.output().shape)},
      .tickets = tickets()};
  return launch_on_device(
      [p](const Args& a) mutable {
        p.x = a.in[0].data;
        p.dy = a.in[2].data;
        p.filter = a.out[0].data;
        p.workspace = a.workspace;
        own::filter_gradient(device().stream(), p);
      },
      own::filter_gradient_workspace(p.taps));
}

Prepared prepare_batch_norm(const NodeView& node, const Capabilities&) {
  const Shape& x = node.input(0).shape;
  own::BatchNormParams p{.dtype = node.input(0).dtype,
                         .statistics = node.input(1).dtype,
                         .rows = x.elements() / x.back(),
                         .channels = x.back(),
                         .epsilon = node.attrs().get<double>("epsilon"),
                         .factor = node.attrs().get_or<double>("exponential_avg_factor", 1.0),
                         .training = node.attrs().get_or<bool>("is_training", false),
                         .relu = node.attrs().get_or<std::string>("activation_mode", "") == "Relu",
                         .tickets = tickets()};
  return launch_on_device(
      [p](const Args& a) mutable {
        p.x = a.in[0].data;
        p.scale = a.in[1].data;
        p.offset = a.in[2].data;
        p.mean = a.in[3].data;
        p.variance = a.in[4].data;
        p.side = a.in.size() > 5 ? a.in[5].data : nullptr;
        p.y = a.out[0].data;
        if (a.out.size() > 1) {
          p.new_mean = a.out[1].data;
          p.new_variance = a.out[2].data;
          p.saved_mean = a.out[3].data;
          p.saved_variance = a.out[4].data;
          p.reserved = a.out[5].data;
        }
        p.workspace = a.workspace;
        own::batch_norm(device().stream(), p);
      },
      own::batch_norm_workspace(p));
}

Prepared prepare_batch_moments(const NodeView& node, const Capabilities&) {
  const Shape& x = node.input(0).shape;
  own::BatchNormParams p{.dtype = node.input(0).dtype,
                         .statistics = node.output().dtype,
                         .rows = x.elements() / x.back(),
                         .channels = x.back(),
                         .tickets = tickets()};
  return launch_on_device(
      [p](const Args& a) mutable {
        p.x = a.in[0].data;
        p.saved_mean = a.out[0].data;
        p.saved_variance = a.out[1].data;
        p.workspace = a.workspace;
        own::batch_norm(device().stream(), p);
      },
      own::batch_norm_workspace(p));
}

Prepared prepare_batch_norm_grad(const NodeView& node, const Capabilities&) {
  const Shape& x = node.input(1).shape;
  own::BatchNormGradParams p{.dtype = node.input(1).dtype,
                             .statistics = node.input(3).dtype,
                             .rows = x.elements() / x.back(),
                             .channels = x.back(),
                             .epsilon = node.attrs().get<double>("epsilon"),
                             .training = node.attrs().get<bool>("is_training"),
                             .tickets = tickets()};
  return launch_on_device(
      [p](const Args& a) mutable {
        p.dy = a.in[0].data;
        p.x = a.in[1].data;
        p.scale = a.in[2].as<float>();
        p.mean = a.in[3].data;
        p.variance = a.in[4].data;
        p.dx = a.out[0].data;
        p.dscale = a.out[1].data;
        p.doffset = a.out[2].data;
        p.workspace = a.workspace;
        own::batch_norm_grad(device().stream(), p);
      },
      own::batch_norm_grad_workspace(p));
}

/// The kernels have moments of float64 for values of float64 alone.
Prepared prepare_batch_norm_grad_sums(const NodeView& node, const Capabilities&) {
  const Shape& x = node.input(1).shape;
  own::BatchNormGradParams p{.dtype = node.input(1).dtype,
                             .statistics = node.input(2).dtype,
                             .rows = x.elements() / x.back(),
                             .channels = x.back(),
                             .epsilon = node.attrs().get<double>("epsilon"),
                             .relu = node.inputs() > 4,
                             .tickets = tickets()};
  return launch_on_device(
      [p](const Args& a) mutable {
        p.dy = a.in[0].data;
        p.x = a.in[1].data;
        p.mean = a.in[2].data;
        p.variance = a.in[3].data;
        if (p.relu) {
          p.scale = a.in[4].as<float>();
          p.offset = a.in[5].as<float>();
        }
        p.dscale = a.out[0].data;
        p.doffset = a.out[1].data;
        p.workspace = a.workspace;
        own::batch_norm_grad(device().stream(), p);
      },
      own::batch_norm_grad_workspace(p));
}

Prepared prepare_normalize_by_moments_grad(const NodeView& node, const Capabilities&) {
  const Shape& x = node.input(1).shape;
  own::BatchNormGradParams p{.dtype = node.input(1).dtype,
                             .statistics = node.input(3).dtype,
                             .rows = x.elements() / x.back(),
                             .channels = x.back(),
                             .sum_rows = node.attrs().get<std::int64_t>("rows"),
                             .epsilon = node.attrs().get<double>("epsilon"),
                             .relu = node.inputs() > 7,
                             .tickets = tickets()};
  return launch_on_device(
      [p](const Args& a) mutable {
        p.dy = a.in[0].data;
        p.x = a.in[1].data;
        p.scale = a.in[2].as<float>();
        p.mean = a.in[3].data;
        p.variance = a.in[4].data;
        p.given_dscale = a.in[5].data;
        p.given_doffset = a.in[6].data;
        p.offset = p.relu ? a.in[7].as<float>() : nullptr;
        p.dx = a.out[0].data;
        p.workspace = a.workspace;
        own::batch_norm_grad(device().stream(), p);
      },
      own::batch_norm_grad_workspace(p));
}

Accepts accepts_layer_norm(const NodeView& node, const Capabilities&) {
  const DType x = node.output().dtype;
  const DType moments = x == DType::float64 ? x : DType::float32;
  const auto of_x = node.attrs().get_or<std::int64_t>("x_addends", 1);
  if (node.attrs().get<std::int64_t>("num_addends") > of_x &&
      node.output().shape.back() > own::LayerNormGradParams::k_most_narrow) {
    return Accepts::no("addends of dy in long rows");
  }
  return node.output(1).dtype == moments ? Accepts::yes() : Accepts::no("moments");
}

Prepared prepare_layer_norm(const NodeView& node, const Capabilities&) {
  const Shape& x = node.input(0).shape;
  return launch_on_device([rows = x.elements() / x.back(),
                           columns = x.back(),
                           epsilon = node.attrs().get<double>("epsilon")](const Args& a) {
    const bool sums = a.in.size() > 3;
    own::layer_norm(device().stream(),
                    {.dtype = a.in[0].dtype,
                     .x = a.in[0].data,
                     .gamma = a.in[1].data,
                     .beta = a.in[2].data,
                     .addend = sums ? a.in[3].data : nullptr,
                     .addend_rows = sums ? a.in[3].shape.elements() / columns : 1,
                     .sum = sums ? a.out[3].data : nullptr,
                     .y = a.out[0].data,
                     .mean = a.out[1].data,
                     .inverse = a.out[2].data,
                     .rows = rows,
                     .columns = columns,
                     .epsilon = epsilon});
  });
}

Prepared prepare_layer_norm_grad(const NodeView& node, const Capabilities&) {
  const Shape& x = node.input(1).shape;
  own::LayerNormGradParams p{.dtype = node.input(1).dtype,
                             .rows = x.elements() / x.back(),
                             .columns = x.back(),
                             .tickets = tickets()};
  const auto of_dy = static_cast<std::size_t>(node.attrs().get<std::int64_t>("num_addends") -
                                              node.attrs().get<std::int64_t>("x_addends"));
  return launch_on_device(
      [p, of_dy](const Args& a) mutable {
        p.dy = a.in[0].data;
        for (std::size_t i = 0; i < of_dy; ++i) p.dy_addends[i] = a.in[5 + i].data;
        if (a.in.size() > 5 + of_dy) p.dx_addend = a.in[5 + of_dy].data;
        p.x = a.in[1].data;
        p.gamma = a.in[2].data;
        p.mean = a.in[3].data;
        p.inverse = a.in[4].data;
        p.dx = a.out[0].data;
        p.dgamma = a.out[1].data;
        p.dbeta = a.out[2].data;
        p.workspace = a.workspace;
        own::layer_norm_grad(device().stream(), p);
      },
      own::layer_norm_grad_workspace(p));
}

own::ImageBatch images_of(const NodeView& node) {
  const Shape& x = node.output().shape;
  return {.dtype = node.output().dtype,
          .batch = x[0],
          .rows = x[1],
          .columns = x[2],
          .channels = x[3],
          .seed = static_cast<std::uint64_t>(node.attrs().get<std::int64_t>("seed")),
          .stream = static_cast<std::uint64_t>(node.attrs().get<std::int64_t>("stream")),
          .first = node.attrs().get<std::int64_t>("first")};
}

void bind(own::ImageBatch& images, const Args& a) {
  images.x = a.in[0].data;
  images.ordinal = a.in[1].as<std::int64_t>();
  images.y = a.out[0].data;
}

Prepared prepare_flip(const NodeView& node, const Capabilities&) {
  const std::string& mode = node.attrs().get<std::string>("mode");
  own::FlipParams p{.images = images_of(node),
                    .vertical = mode != "horizontal",
                    .horizontal = mode != "vertical"};
  return launch_on_device([p](const Args& a) mutable {
    bind(p.images, a);
    own::random_flip(device().stream(), p);
  });
}

own::FillMode fill_named(std::string_view word) {
  if (word == "constant") return own::FillMode::constant;
  if (word == "nearest") return own::FillMode::nearest;
  return word == "reflect" ? own::FillMode::reflect : own::FillMode::wrap;
}

Prepared prepare_translation(const NodeView& node, const Capabilities&) {
  const graph::Attrs& attrs = node.attrs();
  const auto real = [&](std::string_view name) {
    return static_cast<float>(attrs.get<double>(name));
  };
  own::TranslationParams p{.images = images_of(node),
                           .height_low = real("height_low"),
                           .height_high = real("height_high"),
                           .width_low = real("width_low"),
                           .width_high = real("width_high"),
                           .fill_value = real("fill_value"),
                           .fill = fill_named(attrs.get<std::string>("fill_mode")),
                           .bilinear = attrs.get<std::string>("interpolation") == "bilinear"};
  return launch_on_device([p](const Args& a) mutable {
    bind(p.images, a);
    own::random_translation(device().stream(), p);
  });
}

}  // namespace

std::vector<Kernel> image_rows() {
  return {
      {"AvgPool", "cuda/avg_pool", nullptr, prepare_pool<own::avg_pool>},
      {"AvgPoolGrad", "cuda/avg_pool_grad", nullptr, prepare_avg_pool_grad},
      {"BatchMoments", "cuda/batch_moments", nullptr, prepare_batch_moments},
      {"BatchNormGradSums", "cuda/batch_norm_grad_sums", nullptr, prepare_batch_norm_grad_sums},
      {"NormalizeByMoments", "cuda/batch_norm", nullptr, prepare_batch_norm},
      {"NormalizeByMomentsGrad",
       "cuda/normalize_by_moments_grad",
       nullptr,
       prepare_normalize_by_moments_grad},
      {"Conv2D", "cuda/convolution", few_taps_convolution, prepare_few_taps_convolution},
      {"Conv2DBias", "cuda/convolution", few_taps_convolution, prepare_few_taps_convolution},
      {"Conv2DBiasRelu", "cuda/convolution", few_taps_convolution, prepare_few_taps_convolution},
      {"Conv2DBackpropFilter", "cuda/filter_gradient", filter_gradient, prepare_filter_gradient},
      {"FusedBatchNormGradV3", "cuda/batch_norm_grad", nullptr, prepare_batch_norm_grad},
      {"FusedBatchNormV3", "cuda/batch_norm", nullptr, prepare_batch_norm},
      {"LayerNorm", "cuda/layer_norm", accepts_layer_norm, prepare_layer_norm},
      {"LayerNormGrad", "cuda/layer_norm_grad", accepts_layer_norm, prepare_layer_norm_grad},
      {"MaxPool", "cuda/max_pool", nullptr, prepare_pool<own::max_pool>},
      {"MaxPoolGrad", "cuda/max_pool_grad", nullptr, prepare_max_pool_grad},
      {"RandomFlip", "cuda/random_flip", nullptr, prepare_flip},
      {"RandomTranslation", "cuda/random_translation", nullptr, prepare_translation},
  };
}

}  // namespace halfstep::testing
