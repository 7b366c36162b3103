#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/explanation.h"

namespace halfstep::analysis {
namespace {

struct Pair {
  std::string_view key;
  std::string_view text;
};

template <std::size_t N>
std::string_view find(const std::array<Pair, N>& pairs, std::string_view key) {
  const auto it = std::ranges::find(pairs, key, &Pair::key);
  return it == pairs.end() ? "" : it->text;
}

constexpr std::array k_dtypes{Pair{"float32", "f32"},
                              Pair{"float16", "f16"},
                              Pair{"bfloat16", "bf16"},
                              Pair{"float64", "f64"},
                              Pair{"uint8", "u8"},
                              Pair{"int32", "i32"},
                              Pair{"int64", "i64"},
                              Pair{"resource", "-"},
                              Pair{"", "-"}};

/// Short forms of long names.
constexpr std::array k_ops{
    Pair{"SparseSoftmaxCrossEntropyWithLogits", "softmax cross-entropy"},
    Pair{"SoftmaxCrossEntropyWithLogits", "softmax cross-entropy"},
    Pair{"RandomUniformFromOrdinal", "RandomUniform"},
    Pair{"DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dInput"},
    Pair{"DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dFilter"},
    Pair{"Conv3DBackpropInputV2", "Conv3DBackpropInput"},
    Pair{"Conv3DBackpropFilterV2", "Conv3DBackpropFilter"},
};

/// The result of a gradient op, by its type.
constexpr std::array k_gradients{Pair{"BiasAddGrad", "bias gradient"},
                                 Pair{"Conv2DBackpropInput", "input gradient"},
                                 Pair{"DepthwiseConv2dNativeBackpropInput", "input gradient"},
                                 Pair{"Conv3DBackpropInputV2", "input gradient"},
                                 Pair{"Conv2DBackpropFilter", "weight gradient"},
                                 Pair{"Conv3DBackpropFilterV2", "weight gradient"},
                                 Pair{"DepthwiseConv2dNativeBackpropFilter", "weight gradient"}};

/// Reasons that mention no other op.
constexpr std::array k_reasons{Pair{"allow_seed", "allow list: always 16-bit"},
                               Pair{"forced", "level unsafe_force_all"},
                               Pair{"preserved", "a result of the step"},
                               Pair{"existing_cast", "only 16-bit ops read it"}};

/// The part after the last '/'.
std::string leaf(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

/// "kernel" of "dense_1/kernel/read-0-CastToBf16-0-AutoMixedPrecision" and "dense_1/kernel/Cast".
std::string cast_of(const ExplainedOp& op) {
  std::string name = op.info.name;
  const std::size_t inserted = name.find("-0-CastTo");
  if (inserted != std::string::npos) {
    name.erase(inserted);
  } else {
    const std::size_t slash = name.rfind('/');
    if (slash == std::string::npos) return "input";
    name.erase(slash);
  }
  if (name.ends_with("/read")) name.erase(name.size() - 5);
  if (name == op.info.layer || name.starts_with("input/")) return "input";
  return leaf(name);
}

std::string op_name(const ExplainedOp& op) {
  const std::string_view text = find(k_ops, op.info.type);
  return text.empty() ? op.info.type : std::string(text);
}

/// "dense_2's MatMul", "dense_2's bias gradient", "the loss's Mean".
std::string describe(const ExplainedOp& op) {
  if (op.info.phase == "loss") return "the loss's " + op_name(op);
  if (op.info.layer.empty()) return fmt::format("{} ({})", op_name(op), op.info.phase);
  if (op.info.phase != "backward") return fmt::format("{}'s {}", op.info.layer, op_name(op));
  const std::string_view gradient = find(k_gradients, op.info.type);
  return gradient.empty() ? fmt::format("{}'s backward {}", op.info.layer, op_name(op))
                          : fmt::format("{}'s {}", op.info.layer, gradient);
}

/// The reason for an op about which no rule decided.
std::string undecided(const Explanation& e, const ExplainedOp& op) {
  if (op.list.empty()) return "on no list: left alone";
  if (op.list == "clear") return "touches no 16-bit op";
  return e.rewrite.infer_follows ? "not right after a 16-bit op" : "not between two allow ops";
}

/// The matrix unit used by the libraries' matmuls on a GPU, which their entries do not name; ""
/// otherwise.
std::string_view gpu_unit(const Explanation& e, const ExplainedOp& op) {
  const auto dtype = dtype_named(op.info.compute_dtype);
  const std::string& kernel = op.info.kernel;
  const bool library = kernel.starts_with("cublaslt/") || kernel.starts_with("cudnn/");
  if (!is_gpu(e.arch) || !library || !dtype) return "";
  const std::optional<MatrixUnit> unit = matrix_unit(e.arch, *dtype);
  return unit ? unit->name : "CUDA cores";
}

}  // namespace

std::string megabytes(double bytes) {
  if (bytes < 999.5) return fmt::format("{:.0f} B", bytes);
  if (bytes < 999.5e3) return fmt::format("{:.3g} kB", bytes / 1e3);
  return fmt::format("{:.3g} MB", bytes / 1e6);
}

std::string short_dtype(std::string_view dtype) {
  const std::string_view text = find(k_dtypes, dtype);
  return std::string(text.empty() ? dtype : text);
}

std::string short_name(const ExplainedOp& op) {
  return op.cast ? "cast " + cast_of(op) : op_name(op);
}

std::string group_name(const ExplainedOp& op) {
  if (!op.info.layer.empty()) return op.info.layer;
  return op.info.phase == "update" || op.info.phase == "clip" ? "optimizer" : op.info.phase;
}

std::string short_reason(const Explanation& e, const ExplainedOp& op) {
  if (op.cast) return fmt::format("moves {}", megabytes(op.cast_bytes));
  if (op.step == "policy") return op.info.reason;
  const std::string_view fixed = find(k_reasons, op.step);
  if (!fixed.empty()) return std::string(fixed);
  const ExplainedOp* cause = op.cause.empty() ? nullptr : e.find(op.cause);
  const std::string other = cause == nullptr ? op.cause : describe(*cause);
  if (op.step == "deny_spread") {
    return other.empty() ? "deny list: never 16-bit" : "denied by " + other;
  }
  if (op.step == "between_allows") return "leads to " + other;
  if (op.step == "infer_after_allow") return "follows " + other;
  if (op.step == "clear_spread") return "joined to " + other;
  if (op.step == "none" && !other.empty()) return "reads what is denied: " + other;
  return op.step == "none" ? undecided(e, op) : op.info.reason;
}

std::string short_kernel(const Explanation& e, const ExplainedOp& op) {
  if (!op.fused_into.empty()) {
    const ExplainedOp* into = e.find(op.fused_into);
    return fmt::format("in {}", into == nullptr ? leaf(op.fused_into) : op_name(*into));
  }
  if (op.info.kernel.empty()) return "-";
  const std::string_view unit = gpu_unit(e, op);
  return unit.empty() ? op.info.kernel : fmt::format("{} on {}", op.info.kernel, unit);
}

}  // namespace halfstep::analysis
