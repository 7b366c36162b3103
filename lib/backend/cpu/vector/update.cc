// Optimizer steps in place, one pass over memory. Formulas at the ops' definitions. Arithmetic in
// float32, one rounding per stored tensor; the unrounded slot goes into the new weight. When the
// last input `ok` is false nothing is touched.
// Stored dtypes: float32, float16, bfloat16.
// The same bits for every instruction set and number of threads.

#include <algorithm>
#include <string_view>

#include "backend/cpu/vector/convert.h"
#include "backend/cpu/vector/rows.h"
#include "core/error.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu::vector {
namespace {

constexpr std::int64_t k_grain = 16384;
constexpr int k_max_resources = 4;
constexpr std::size_t k_max_scalars = 8;

Accepts accepts_update(const NodeView& node, const Capabilities&) {
  const DType dtype = node.attrs().get<DType>("T");
  if (!is_computed(dtype)) return Accepts::no(fmt::format("no {} here", name(dtype)));
  return Accepts::yes();
}

Prepared prepare_update(const NodeView& node, const Capabilities& capabilities) {
  const Loops& l = loops(capabilities.isa);
  const std::string_view op = node.node.op;
  const UpdateRow row = *std::find_if(
      l.updates.begin(), l.updates.end(), [&](const UpdateRow& r) { return op == r.op; });
  const bool flagged = row.flag != nullptr && node.attrs().get<bool>(row.flag);
  const Update loop = flagged ? row.flagged : row.loop;
  const DType dtype = node.attrs().get<DType>("T");
  const Source source(l, dtype);
  const Sink sink(l, dtype);
  return launch([=](const Args& args) {
    const bool guarded = args.in.back().dtype == DType::boolean;
    if (guarded && !*args.in.back().as<bool>()) return;

    const auto gradient = static_cast<std::size_t>(row.gradient);
    const auto resources = static_cast<std::size_t>(row.resources);
    float scalars[k_max_scalars];
    std::size_t count = 0;
    for (std::size_t i = resources; i < args.in.size() - (guarded ? 1 : 0); ++i) {
      if (i == gradient) continue;
      float& scalar = scalars[count++];
      scalar = *source.read(args.in[i].data, 0, 1, &scalar);
    }
    parallel_for(args.in[gradient].elements(), k_grain, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float rooms[k_max_resources + 1][k_run];
      float* state[k_max_resources];
      for (std::int64_t i = begin; i < end; i += k_run) {
        const std::int64_t n = std::min(k_run, end - i);
        const float* g = source.read(args.in[gradient].data, i, n, rooms[k_max_resources]);
        for (std::size_t s = 0; s < resources; ++s) {
          // Where nothing is widened the loop works on the variable itself.
          source.read(args.in[s].data, i, n, rooms[s]);
          state[s] = sink.place(args.in[s].data, i, rooms[s]);
        }
        loop(state, g, n, scalars);
        for (std::size_t s = 0; s < resources; ++s) sink.store(args.in[s].data, i, n, state[s]);
      }
    });
  });
}

}  // namespace

std::vector<Kernel> update_kernels() {
  std::vector<Kernel> rows;
  for (const UpdateRow& row : baseline_loops().updates) {
    rows.push_back({row.op, "vector/update", accepts_update, prepare_update});
  }
  return rows;
}

}  // namespace halfstep::backend::cpu::vector
