// Ops with their signatures, lists and kernels.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "backend/cpu/kernels.h"
#include "backend/cuda/kernel_table.h"
#include "core/ranges.h"
#include "graph/ops/ops.h"
#include "precision/lists.h"
#include "reference/reference.h"

namespace halfstep::app {
namespace {

std::string port_text(const graph::Port& port) {
  const std::string type = port.fixed ? std::string(name(*port.fixed)) : port.type_attr;
  const std::string typed = port.ref ? fmt::format("Ref({})", type) : type;
  return fmt::format("{}{}: {}{}",
                     port.name,
                     port.optional ? "?" : "",
                     port.count_attr.empty() ? "" : port.count_attr + "*",
                     typed);
}

std::string ports_text(const std::vector<graph::Port>& ports) {
  const auto texts = mapped<std::string>(ports, port_text);
  return fmt::format("({})", fmt::join(texts, ", "));
}

std::string types_text(const graph::OpDef& op) {
  std::vector<std::string> texts;
  for (const graph::TypeAttr& attr : op.types) {
    std::vector<std::string_view> dtypes;
    for (const DType dtype : all_dtypes()) {
      if (attr.allowed.contains(dtype)) dtypes.push_back(name(dtype));
    }
    const bool any = dtypes.size() == all_dtypes().size();
    texts.push_back(fmt::format("{}: {}{}",
                                attr.name,
                                attr.is_list ? "list of " : "",
                                any ? "any dtype" : fmt::format("{}", fmt::join(dtypes, ", "))));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// "cuda infer, bf16 infer, cpu infer, fp16_cpu infer", and equal lists once: "infer".
std::string lists_text(std::string_view op) {
  using precision::Mode;
  constexpr precision::LibraryVersions k_newest{.cuda = 99'990, .cudnn = 99'990};
  static const auto k_lists = [&] {
    std::vector<std::pair<Mode, precision::OpLists>> lists;
    for (std::size_t i = 0; i < precision::names_of(Mode()).size(); ++i) {
      const auto mode = static_cast<Mode>(i);
      lists.emplace_back(mode,
                         precision::make_lists(mode, k_newest, precision::Level::standard, {}));
    }
    return lists;
  }();
  std::vector<std::string> each;
  std::set<std::string_view> different;
  for (const auto& [mode, lists] : k_lists) {
    const auto list = lists.of(op);
    const std::string_view word = list ? name(*list) : "none";
    different.insert(word);
    each.push_back(fmt::format("{} {}", name(mode), word));
  }
  if (different.size() == 1) return std::string(*different.begin());
  return fmt::format("{}", fmt::join(each, ", "));
}

std::string kernels_text(std::span<const backend::Kernel> kernels, std::string_view op) {
  std::vector<std::string_view> names;
  for (const backend::Kernel& kernel : kernels) {
    const bool listed = contains(names, kernel.name);
    if (kernel.op == op && !listed) names.push_back(kernel.name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

Entry op_entry(const graph::OpDef& op) {
  Entry entry{.kind = kinds::k_op, .name = op.name, .prefixes = {"op", "ops"}};
  entry.facts.push_back(
      {"signature", fmt::format("{} -> {}", ports_text(op.inputs), ports_text(op.outputs))});
  if (!op.types.empty()) entry.facts.push_back({"dtypes", types_text(op)});
  entry.facts.push_back({"lists", lists_text(op.name)});
  entry.facts.push_back({"gradient", op.gradient == nullptr ? "none" : "yes"});
  entry.facts.push_back({"on a CPU", kernels_text(backend::cpu::all_kernels(), op.name)});
  entry.facts.push_back({"on a GPU", kernels_text(backend::cuda::kernel_table(), op.name)});
  return entry;
}

}  // namespace

Topic ops_topic() {
  Topic topic{.name = "ops",
              .title = "Ops",
              .doc = "ops of a graph: signature, lists of the rewrite, kernels",
              .text =
                  "A training step is a graph of these ops, named as TensorFlow's where TensorFlow "
                  "has them. `lists` is the list that the automatic rewrite has an op on, by mode "
                  "where the modes differ; an op on none keeps float32, and no conversion passes "
                  "through it. A node runs on the first of an op's kernels that accepts its "
                  "dtypes, shapes and instruction set, or on the one with the least predicted "
                  "time: `halfstep explain CONFIG` says which. Ops that are only read from written "
                  "graphs, for `halfstep explain --graph`, have no kernels and are not listed."};
  for (const graph::OpDef& op : graph::op_table().all()) {
    if (op.infer != nullptr) topic.entries.push_back(op_entry(op));
  }
  return topic;
}

}  // namespace halfstep::app
