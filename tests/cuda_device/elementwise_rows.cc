#include "backend/cuda/kernels/bias.h"
#include "backend/cuda/kernels/cast.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/kernels/fused.h"
#include "backend/cuda/kernels/reduce.h"
#include "backend/cuda/kernels/softmax.h"
#include "cuda_device/device.h"
#include "cuda_device/kernel_rows.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/ops.h"

namespace halfstep::testing {
namespace {

namespace own = backend::cuda::kernels;
using backend::Accepts;
using backend::Args;
using backend::Capabilities;
using backend::Kernel;
using backend::NodeView;
using backend::Prepared;

Accepts any(const NodeView&, const Capabilities&) { return Accepts::yes(); }

double alpha_of(const NodeView& node) { return node.attrs().get_or<double>("alpha", 0); }

Prepared prepare_unary(const NodeView& node, const Capabilities&) {
  const own::Unary function = own::unary_of(node.node.op);
  own::UnaryParams p{.dtype = node.input(0).dtype,
                     .elements = node.output().shape.elements(),
                     .alpha = alpha_of(node)};
  return launch_on_device([function, p](const Args& a) mutable {
    p.x = a.in[0].data;
    p.y = a.out[0].data;
    function(device().stream(), p);
  });
}

/// A FusedElementwise of its body.
Prepared prepare_fused(const NodeView& node, const Capabilities&) {
  const graph::ops::ElementwiseBody body =
      graph::ops::elementwise_body(node.attrs().get<std::string>("body"), node.inputs());
  own::FusedParams p{.shape = node.output().shape,
                     .inputs = node.inputs(),
                     .steps = body.steps.size(),
                     .outputs = body.results.size()};
  for (std::size_t i = 0; i < p.steps; ++i) {
    const graph::ops::ElementwiseStep& step = body.steps[i];
    p.step.at(i) = {.function = own::fused_function(step.op).value(),
                    .dtype = step.dtype,
                    .alpha = static_cast<float>(step.alpha),
                    .seed = static_cast<std::uint64_t>(step.seed),
                    .stream = static_cast<std::uint64_t>(step.stream)};
    for (std::size_t j = 0; j < step.operands.size(); ++j) {
      p.step.at(i).operands.at(j) = static_cast<std::uint8_t>(step.operands[j]);
    }
  }
  for (std::size_t i = 0; i < p.outputs; ++i) {
    p.output.at(i).step = static_cast<std::size_t>(body.results[i]);
  }
  return launch_on_device([p](const Args& a) mutable {
    for (std::size_t i = 0; i < p.inputs; ++i) {
      p.input.at(i) = {a.in[i].dtype, a.in[i].shape, a.in[i].data};
    }
    for (std::size_t i = 0; i < p.outputs; ++i) p.output.at(i).data = a.out[i].data;
    own::fused_elementwise(device().stream(), p);
  });
}

Prepared prepare_binary(const NodeView& node, const Capabilities&) {
  const own::Binary function = own::binary_of(node.node.op);
  own::BinaryParams p{.dtype = node.input(0).dtype,
                      .a_shape = node.input(0).shape,
                      .b_shape = node.input(1).shape,
                      .shape = node.output().shape,
                      .alpha = alpha_of(node)};
  return launch_on_device([function, p](const Args& a) mutable {
    p.a = a.in[0].data;
    p.b = a.in[1].data;
    p.y = a.out[0].data;
    function(device().stream(), p);
  });
}

Prepared prepare_clip(const NodeView&, const Capabilities&) {
  return launch_on_device([](const Args& a) {
    own::clip(device().stream(),
              {.dtype = a.in[0].dtype,
               .x = a.in[0].data,
               .low = a.in[1].data,
               .high = a.in[2].data,
               .y = a.out[0].data,
               .x_shape = a.in[0].shape,
               .low_shape = a.in[1].shape,
               .high_shape = a.in[2].shape,
               .shape = a.out[0].shape});
  });
}

Prepared prepare_select(const NodeView& node, const Capabilities&) {
  const bool rows = node.node.op == "Select" && node.input(0).shape.rank() == 1;
  return launch_on_device([rows](const Args& a) {
    own::select(device().stream(),
                {.element_bytes = size_bytes(a.out[0].dtype),
                 .condition = a.in[0].as<bool>(),
                 .t = a.in[1].data,
                 .e = a.in[2].data,
                 .y = a.out[0].data,
                 .condition_shape = a.in[0].shape,
                 .t_shape = a.in[1].shape,
                 .e_shape = a.in[2].shape,
                 .shape = a.out[0].shape,
                 .rows = rows});
  });
}

Prepared prepare_add_n(const NodeView&, const Capabilities&) {
  return launch_on_device([](const Args& a) {
    std::vector<const void*> inputs;
    for (const TensorView& x : a.in) inputs.push_back(x.data);
    own::add_n(device().stream(),
               {.dtype = a.out[0].dtype,
                .inputs = inputs,
                .y = a.out[0].data,
                .elements = a.out[0].elements()});
  });
}

Prepared prepare_cast(const NodeView&, const Capabilities&) {
  return launch_on_device([](const Args& a) {
    own::cast(device().stream(),
              {.from = a.in[0].dtype,
               .to = a.out[0].dtype,
               .x = a.in[0].data,
               .y = a.out[0].data,
               .elements = a.out[0].elements()});
  });
}

/// outer, channels and inner of an op with a data_format.
struct Channels {
  std::int64_t outer, channels, inner;
};

Channels channels_of(const NodeView& node) {
  const Shape& x = node.input(0).shape;
  const bool last = node.attrs().get<std::string>("data_format") == "NHWC";
  const std::size_t axis = last ? x.rank() - 1 : 1;
  return {x.elements(0, axis), x[axis], x.elements(axis + 1, x.rank())};
}

Prepared prepare_bias_add(const NodeView& node, const Capabilities&) {
  const Channels c = channels_of(node);
  return launch_on_device([c](const Args& a) {
    own::bias_add(device().stream(),
                  {.dtype = a.in[0].dtype,
                   .x = a.in[0].data,
                   .bias = a.in[1].data,
                   .y = a.out[0].data,
                   .outer = c.outer,
                   .channels = c.channels,
                   .inner = c.inner});
  });
}

Prepared prepare_bias_grad(const NodeView& node, const Capabilities&) {
  const Channels c = channels_of(node);
  own::BiasGradParams p{.dtype = node.input(0).dtype,
                        .outer = c.outer,
                        .channels = c.channels,
                        .inner = c.inner,
                        .tickets = tickets()};
  return launch_on_device(
      [p](const Args& a) mutable {
        p.dy = a.in[0].data;
        p.dbias = a.out[0].data;
        p.workspace = a.workspace;
        own::bias_grad(device().stream(), p);
      },
      own::bias_grad_workspace(p));
}

Prepared prepare_reduce(const NodeView& node, const Capabilities&) {
  own::ReduceParams p{.reduction = own::reduction_of(node.node.op).value(),
                      .dtype = node.input(0).dtype,
                      .index = node.output().dtype,
                      .shape = node.input(0).shape,
                      .tickets = tickets()};
  const std::vector<std::int64_t> axes = node.constant(1).value();
  for (std::int64_t axis : axes) {
    const auto rank = static_cast<std::int64_t>(p.shape.rank());
    p.axes |= 1U << (axis < 0 ? axis + rank : axis);
  }
  return launch_on_device(
      [p](const Args& a) mutable {
        p.x = a.in[0].data;
        p.y = a.out[0].data;
        p.workspace = a.workspace;
        own::reduce(device().stream(), p);
      },
      own::reduce_workspace(p));
}

Prepared prepare_l2_loss(const NodeView& node, const Capabilities&) {
  own::L2LossParams p{.dtype = node.input(0).dtype,
                      .elements = node.input(0).shape.elements(),
                      .tickets = tickets()};
  return launch_on_device(
      [p](const Args& a) mutable {
        p.x = a.in[0].data;
        p.y = a.out[0].data;
        p.workspace = a.workspace;
        own::l2_loss(device().stream(), p);
      },
      own::l2_loss_workspace(p));
}

Prepared prepare_in_top_k(const NodeView&, const Capabilities&) {
  return launch_on_device([](const Args& a) {
    own::in_top_k(device().stream(),
                  {.index = a.in[1].dtype,
                   .scores = a.in[0].as<float>(),
                   .targets = a.in[1].data,
                   .k = a.in[2].data,
                   .y = a.out[0].as<bool>(),
                   .rows = a.in[0].shape[0],
                   .classes = a.in[0].shape[1]});
  });
}

Prepared prepare_softmax(const NodeView& node, const Capabilities&) {
  const bool logarithm = node.node.op == "LogSoftmax";
  return launch_on_device([logarithm](const Args& a) {
    const Shape& x = a.in[0].shape;
    own::softmax(device().stream(),
                 {.dtype = a.in[0].dtype,
                  .x = a.in[0].data,
                  .y = a.out[0].data,
                  .rows = x.elements(0, x.rank() - 1),
                  .classes = x.back(),
                  .logarithm = logarithm});
  });
}

Prepared prepare_cross_entropy(const NodeView&, const Capabilities&) {
  return launch_on_device([](const Args& a) {
    own::cross_entropy(device().stream(),
                       {.dtype = a.in[0].dtype,
                        .logits = a.in[0].data,
                        .labels = a.in[1].data,
                        .loss = a.out[0].data,
                        .gradient = a.out[1].data,
                        .rows = a.in[0].shape[0],
                        .classes = a.in[0].shape[1]});
  });
}

Prepared prepare_sparse_cross_entropy(const NodeView&, const Capabilities&) {
  return launch_on_device([](const Args& a) {
    own::sparse_cross_entropy(device().stream(),
                              {.dtype = a.in[0].dtype,
                               .label = a.in[1].dtype,
                               .logits = a.in[0].data,
                               .labels = a.in[1].data,
                               .loss = a.out[0].data,
                               .gradient = a.out[1].data,
                               .rows = a.in[0].shape[0],
                               .classes = a.in[0].shape[1]});
  });
}

}  // namespace

std::vector<Kernel> elementwise_rows() {
  std::vector<Kernel> rows{
      {"AddN", "cuda/add_n", any, prepare_add_n},
      {"BiasAdd", "cuda/bias_add", any, prepare_bias_add},
      {"BiasAddGrad", "cuda/bias_grad", any, prepare_bias_grad},
      {"Cast", "cuda/cast", any, prepare_cast},
      {"ClipByValue", "cuda/clip", any, prepare_clip},
      {"FusedElementwise", "cuda/fused_elementwise", any, prepare_fused},
      {"InTopKV2", "cuda/in_top_k", any, prepare_in_top_k},
      {"L2Loss", "cuda/l2_loss", any, prepare_l2_loss},
      {"LogSoftmax", "cuda/softmax", any, prepare_softmax},
      {"Select", "cuda/select", any, prepare_select},
      {"SelectV2", "cuda/select", any, prepare_select},
      {"Softmax", "cuda/softmax", any, prepare_softmax},
      {"SoftmaxCrossEntropyWithLogits", "cuda/cross_entropy", any, prepare_cross_entropy},
      {"SparseSoftmaxCrossEntropyWithLogits",
       "cuda/sparse_cross_entropy",
       any,
       prepare_sparse_cross_entropy},
  };
  for (const graph::OpDef& op : graph::op_table().all()) {
    if (op.infer == nullptr) continue;
    if (own::unary_of(op.name) != nullptr)
      rows.push_back({op.name, "cuda/unary", any, prepare_unary});
    if (own::binary_of(op.name) != nullptr)
      rows.push_back({op.name, "cuda/binary", any, prepare_binary});
    if (own::reduction_of(op.name)) rows.push_back({op.name, "cuda/reduce", any, prepare_reduce});
  }
  return rows;
}

}  // namespace halfstep::testing
