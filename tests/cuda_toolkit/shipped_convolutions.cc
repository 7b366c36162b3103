#include "cuda_toolkit/shipped_convolutions.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "backend/kernel.h"
#include "config/load.h"
#include "nn/step_graph.h"
#include "support/paths.h"

namespace halfstep::testing {
namespace {

namespace cuda = backend::cuda;

/// Samples of a last batch.
constexpr std::int64_t k_tail = 37;

graph::Graph step(const std::filesystem::path& file, const std::string& policy, bool tail) {
  Diagnostics diagnostics;
  config::RunSpec spec =
      config::parse_run_spec(config::load_file(file.string(), diagnostics), diagnostics);
  spec.precision.policy = policy;
  const nn::StepSpec step = nn::read_step_spec(spec, diagnostics);
  diagnostics.throw_if_any();
  nn::DataShape data{step.model.inputs.front().shape, DType::uint8, {}, DType::int32};
  const Shape& output = step.outputs.at(0).form.shape;
  data.label = Shape(output.dims().first(output.rank() - 1));  // a class at each position
  return nn::build_step(step, data, tail ? k_tail : spec.training.batch_size, nn::Purpose::train);
}

/// The shapes of x and filter, from the tensors or from the constants that stand for them.
cuda::ConvKey key_of(const backend::NodeView& node) {
  const auto shape = [&](std::size_t i) {
    const auto given = node.constant(i);
    return given ? Shape(*given) : node.input(i).shape;
  };
  return cuda::conv_key(node.node.op, node.attrs(), shape(0), shape(1), node.output().dtype);
}

}  // namespace

std::vector<cuda::ConvKey> shipped_convolutions() {
  std::vector<cuda::ConvKey> keys;
  std::set<std::string> seen;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() / "configs")) {
    if (entry.path().extension() != ".yaml") continue;
    for (const char* policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
      for (const bool tail : {false, true}) {
        const graph::Graph graph = step(entry.path(), policy, tail);
        for (int id = 0; id < graph.size(); ++id) {
          const graph::Node& node = graph.node(id);
          if (node.op.find("onv2") == std::string::npos) continue;
          cuda::ConvKey key = key_of({graph, node});
          if (seen.insert(to_string(key)).second) keys.push_back(key);
        }
      }
    }
  }
  return keys;
}

}  // namespace halfstep::testing
