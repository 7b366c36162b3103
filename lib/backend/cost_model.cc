#include "backend/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "backend/kernel.h"
#include "core/error.h"
#include "core/system.h"
#include "graph/op_handles.h"
#include "graph/ops/window.h"

namespace halfstep::backend {
namespace {

constexpr std::array k_kinds{Workload::Kind::matmul,
                             Workload::Kind::matmul_backward_data,
                             Workload::Kind::matmul_backward_weights,
                             Workload::Kind::pack,
                             Workload::Kind::conv_forward,
                             Workload::Kind::conv_backward_data,
                             Workload::Kind::conv_backward_filter};

constexpr std::string_view k_peak = "# peak ";

/// Assumed for a float16 MatMul that is not packed, to compare it with a packed one.
constexpr std::int64_t k_default_products = 3;

std::optional<Workload> matmul_workload(const NodeView& node) {
  Workload p;
  p.kind = Workload::Kind::matmul;
  if (node.node.is(graph::ops::k_matmul)) {
    p.dtype = node.output().dtype;
    if (p.dtype == DType::float16) p.products = k_default_products;
    p.shape[0] = node.output().shape[1];
    if (node.attrs().get<bool>("transpose_a")) {
      p.kind = Workload::Kind::matmul_backward_weights;
      p.shape[1] = node.output().shape[0];
    } else {
      if (node.attrs().get<bool>("transpose_b")) p.kind = Workload::Kind::matmul_backward_data;
      p.shape[1] = node.input(0).shape[1];
    }
  } else {
    p.dtype = node.attrs().get<DType>("T");
    p.products = node.attrs().get<std::int64_t>("products");
    p.shape[0] = node.attrs().get<std::int64_t>("n");
    p.shape[1] = node.attrs().get<std::int64_t>("k");
  }
  return p;
}

std::optional<Workload> conv_workload(const NodeView& node, Workload::Kind kind) {
  const Shape& x =
      kind == Workload::Kind::conv_backward_data ? node.output().shape : node.input(0).shape;
  const Shape& filter =
      kind == Workload::Kind::conv_backward_filter ? node.output().shape : node.input(1).shape;
  const graph::ops::ConvGeometry g = graph::ops::conv_geometry(node.attrs(), x, filter);
  if (g.groups > 1) return std::nullopt;
  const graph::ops::WindowAxis& h = g.window.height;
  const graph::ops::WindowAxis& w = g.window.width;
  Workload p{.kind = kind, .dtype = node.output().dtype};
  if (p.dtype == DType::float16) p.products = node.attrs().get<std::int64_t>("float16_products");
  p.shape = {h.output * w.output, g.inputs, g.outputs, h.size * w.size, h.stride * w.stride};
  return p;
}

/// Squared distance of two shapes in log2 of their extents.
double squared_distance(const Workload::Extents& a, const Workload::Extents& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double doublings = std::log2(static_cast<double>(a[i]) / static_cast<double>(b[i]));
    sum += doublings * doublings;
  }
  return sum;
}

}  // namespace

double Workload::flops() const {
  // The stride is the last extent and does not enter the operation count.
  const double product = is_matmul(kind) || kind == Kind::pack
                             ? static_cast<double>(shape[0]) * static_cast<double>(shape[1])
                             : static_cast<double>(shape[0]) * static_cast<double>(shape[1]) *
                                   static_cast<double>(shape[2]) * static_cast<double>(shape[3]);
  return 2.0 * k_nominal_batch * product;
}

std::string_view name(Workload::Kind kind) {
  switch (kind) {
    case Workload::Kind::matmul:
      return "matmul";
    case Workload::Kind::matmul_backward_data:
      return "matmul_backward_data";
    case Workload::Kind::matmul_backward_weights:
      return "matmul_backward_weights";
    case Workload::Kind::pack:
      return "pack";
    case Workload::Kind::conv_forward:
      return "conv_forward";
    case Workload::Kind::conv_backward_data:
      return "conv_backward_data";
    case Workload::Kind::conv_backward_filter:
      return "conv_backward_filter";
  }
  return "unknown";
}

bool is_matmul(Workload::Kind kind) {
  return kind == Workload::Kind::matmul || kind == Workload::Kind::matmul_backward_data ||
         kind == Workload::Kind::matmul_backward_weights;
}

std::optional<Workload> workload_of(const NodeView& node) {
  const std::string& op = node.node.op;
  std::optional<Workload> workload;
  if (op == graph::ops::k_matmul || op == graph::ops::k_packed_matmul ||
      op == graph::ops::k_packed_matmul_update) {
    workload = matmul_workload(node);
  } else if (op == graph::ops::k_conv2d || op == graph::ops::k_conv2d_bias) {
    workload = conv_workload(node, Workload::Kind::conv_forward);
  } else if (op == graph::ops::k_conv2d_backprop_input) {
    workload = conv_workload(node, Workload::Kind::conv_backward_data);
  } else if (op == graph::ops::k_conv2d_backprop_filter) {
    workload = conv_workload(node, Workload::Kind::conv_backward_filter);
  }
  if (workload && workload->flops() == 0) return std::nullopt;
  return workload;
}

CostModel::CostModel(std::string origin, std::vector<Sample> samples, std::vector<Peak> peaks)
    : origin_(std::move(origin)), samples_(std::move(samples)), peaks_(std::move(peaks)) {}

CostModel CostModel::parse(const std::string& text, const std::string& file) {
  CostModel model;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.starts_with("# ") && model.origin_.empty()) {
      model.origin_ = line.substr(2);
      continue;
    }
    std::istringstream fields(line);
    if (line.starts_with(k_peak)) {
      Peak peak;
      fields.ignore(std::ssize(k_peak));
      fields >> peak.threads >> peak.flops_per_second >> std::ws;
      std::getline(fields, peak.processor);
      if (peak.processor.empty() || peak.threads < 1 || !(peak.flops_per_second > 0)) {
        throw UserError(ErrorKind::data,
                        {file, number, 1, ""},
                        "not a register peak: the line holds a number of threads, operations per "
                        "second above 0 and the processor",
                        "halfstep tune writes this file anew");
      }
      model.peaks_.push_back(std::move(peak));
    }
    if (line.empty() || line.starts_with('#')) continue;
    std::string kind, dtype;
    Sample sample;
    fields >> kind >> dtype >> sample.workload.products;
    for (std::int64_t& extent : sample.workload.shape) fields >> extent;
    fields >> sample.seconds >> std::ws;
    std::getline(fields, sample.kernel);
    const auto kind_at =
        std::find_if(k_kinds.begin(), k_kinds.end(), [&](auto k) { return name(k) == kind; });
    const std::optional<DType> parsed = dtype_named(dtype);
    const auto& shape = sample.workload.shape;
    if (kind_at == k_kinds.end() || !parsed || sample.kernel.empty() || !(sample.seconds > 0) ||
        !std::isfinite(sample.seconds) ||
        std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent < 1; })) {
      throw UserError(
          ErrorKind::data,
          {file, number, 1, ""},
          "not a measurement of a kernel: a line holds a kind (matmul, matmul_backward_data, "
          "matmul_backward_weights, pack, conv_forward, conv_backward_data or "
          "conv_backward_filter), a dtype, the number of partial products, five extents of at "
          "least 1, seconds above 0 and a kernel's name",
          "halfstep tune writes this file anew");
    }
    sample.workload.kind = *kind_at;
    sample.workload.dtype = *parsed;
    model.samples_.push_back(std::move(sample));
  }
  return model;
}

std::string CostModel::text() const {
  std::string text = fmt::format("# {}\n", origin_);
  for (const Peak& p : peaks_) {
    text += fmt::format("{}{} {:.3e} {}\n", k_peak, p.threads, p.flops_per_second, p.processor);
  }
  for (const Sample& sample : samples_) {
    const Workload& p = sample.workload;
    text += fmt::format("{} {} {} {} {:.3e} {}\n",
                        name(p.kind),
                        name(p.dtype),
                        p.products,
                        fmt::join(p.shape, " "),
                        sample.seconds,
                        sample.kernel);
  }
  return text;
}

std::optional<double> CostModel::seconds(std::string_view kernel, const Workload& workload) const {
  double weights = 0, logarithms = 0;
  for (const Sample& sample : samples_) {
    const Workload& measured = sample.workload;
    if (measured.kind != workload.kind || measured.dtype != workload.dtype ||
        (measured.products != 0 && measured.products != workload.products) ||
        sample.kernel != kernel) {
      continue;
    }
    const double squared = squared_distance(measured.shape, workload.shape);
    if (squared == 0) return sample.seconds;
    const double weight = 1 / (squared * squared);
    weights += weight;
    logarithms += weight * std::log(sample.seconds / measured.flops());
  }
  if (weights == 0) return std::nullopt;
  return workload.flops() * std::exp(logarithms / weights);
}

std::vector<CostModel::Prediction> CostModel::predictions(const Workload& workload) const {
  std::vector<Prediction> all;
  for (const Sample& sample : samples_) {
    const auto known = [&](const Prediction& p) { return p.kernel == sample.kernel; };
    if (std::any_of(all.begin(), all.end(), known)) continue;
    if (const auto predicted = seconds(sample.kernel, workload)) {
      all.push_back({sample.kernel, *predicted});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Prediction& a, const Prediction& b) {
    return a.seconds < b.seconds;
  });
  return all;
}

Accepts packing_pays(const NodeView& matmul,
                     const NodeView& packed,
                     std::string_view kernel,
                     const Capabilities& capabilities) {
  std::optional<Workload> workload = workload_of(matmul);
  if (!workload) return Accepts::no("an empty matmul");
  workload->products = packed.attrs().get<std::int64_t>("products");
  const CostModel& costs = cost_model(capabilities);
  std::optional<double> seconds = costs.seconds(kernel, *workload);
  if (!seconds) {
    // A resumed run keeps the choices of its table, in which this kernel may be missing.
    if (!costs.predictions(*workload).empty()) return Accepts::no("not measured, as others were");
    const graph::Attrs& attrs = packed.attrs();
    return attrs.get<std::int64_t>("n") >= 16 && attrs.get<std::int64_t>("k") >= 32
               ? Accepts::yes()
               : Accepts::no("too small to pack, by rule: nothing was measured here");
  }
  /// The time to pack k_nominal_batch rows of `columns` values.
  const auto packing = [&](std::int64_t columns) {
    Workload pass = *workload;
    pass.kind = Workload::Kind::pack;
    pass.shape = {1, columns, 1, 1, 1};
    const auto times = costs.predictions(pass);
    return times.empty() ? 0.0 : times.front().seconds;
  };
  const auto launched = [&](std::size_t operand) {
    return packed.is_produced_by(operand, graph::ops::k_pack_operand);
  };
  const bool weights_gradient = workload->kind == Workload::Kind::matmul_backward_weights;
  if (launched(0)) *seconds += packing(workload->shape[1]);
  // A weight of k x n values takes as long to pack as a batch with k n / k_nominal_batch columns.
  if (launched(1)) {
    *seconds += packing(
        weights_gradient
            ? workload->shape[0]
            : std::max<std::int64_t>(1, workload->shape[0] * workload->shape[1] / k_nominal_batch));
  }
  // Bias and activation, or the mask of its gradient, run in the epilogue of a PackedMatMul and as
  // a separate pass over the result of other kernels, which takes about as long as packing the
  // result.
  const double pass = weights_gradient ? 0 : packing(workload->shape[0]);
  for (const CostModel::Prediction& other : costs.predictions(*workload)) {
    if (other.kernel.starts_with("packed/") || other.seconds + pass >= *seconds) continue;
    return Accepts::no(fmt::format("predicted {:.3g} us with packing, {} {:.3g} us",
                                   *seconds * 1e6,
                                   other.kernel,
                                   (other.seconds + pass) * 1e6));
  }
  return Accepts::yes();
}

std::string processor_name(const Capabilities& capabilities) {
  return fmt::format("{} {}", name(capabilities.isa), cpu_model());
}

const CostModel::Peak* register_peak(const Capabilities& capabilities) {
  const std::string processor = processor_name(capabilities);
  for (const CostModel::Peak& peak : cost_model(capabilities).peaks()) {
    if (peak.threads == capabilities.threads && peak.processor == processor) return &peak;
  }
  return nullptr;
}

const CostModel& cost_model(const Capabilities& capabilities) {
  return capabilities.costs ? *capabilities.costs : shipped_cost_model(capabilities.isa);
}

}  // namespace halfstep::backend
