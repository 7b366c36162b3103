// Ops around a training step that a device runs without the host. Formulas at the ops' definitions.

#include <cstring>

#include "backend/cpu/reference/reference.h"

namespace halfstep::backend::cpu {
namespace {

/// to[i] = rows[order[i]].
void gather(const TensorView& rows, const std::int32_t* order, const TensorView& to) {
  const std::size_t bytes = to.bytes() / static_cast<std::size_t>(to.shape[0]);
  for (std::int64_t i = 0; i < to.shape[0]; ++i) {
    std::memcpy(
        static_cast<std::byte*>(to.data) + static_cast<std::size_t>(i) * bytes,
        static_cast<const std::byte*>(rows.data) + static_cast<std::size_t>(order[i]) * bytes,
        bytes);
  }
}

Prepared prepare_gather(const NodeView& node, const Capabilities&) {
  const std::int64_t batch = node.attrs().get<std::int64_t>("batch");
  const std::int64_t steps = node.attrs().get<std::int64_t>("steps");
  return launch([=](const Args& a) {
    const std::int64_t first = *a.in[2].as<std::int64_t>() % steps * batch;
    gather(a.in[0], a.in[1].as<std::int32_t>() + first, a.out[0]);
  });
}

Prepared prepare_next(const NodeView& node, const Capabilities&) {
  const std::int64_t batch = node.attrs().get<std::int64_t>("batch");
  const std::int64_t steps = node.attrs().get<std::int64_t>("steps");
  const auto scales = node.attrs().get<std::vector<double>>("scales");
  return launch([=](const Args& a) {
    const std::int64_t first = ++*a.in[0].as<std::int64_t>() % steps * batch;
    for (std::size_t i = 0; i < a.out.size(); ++i) {
      const TensorView &rows = a.in[i + 2], &batch_rows = a.out[i];
      const std::int32_t* order = a.in[1].as<std::int32_t>() + first;
      if (rows.dtype == batch_rows.dtype) {
        gather(rows, order, batch_rows);
        continue;
      }
      const Tensor stored(rows.dtype, batch_rows.shape), wide(DType::float32, batch_rows.shape);
      gather(rows, order, stored.view());
      convert(stored.view(), wide.view());
      for (float& x : wide.span<float>()) x *= static_cast<float>(scales[i]);
      convert(wide.view(), batch_rows);
    }
  });
}

/// in: the log, the ordinal, the values.
void log_scalars(std::span<const TensorView> in, std::int64_t slots) {
  constexpr std::size_t k_cell = 8;
  const std::size_t values = in.size() - 2;
  const auto slot = static_cast<std::size_t>(*in[1].as<std::int64_t>() % slots);
  std::byte* cell = static_cast<std::byte*>(in[0].data) + slot * values * k_cell;
  for (const TensorView& value : in.subspan(2)) {
    std::memcpy(cell, value.data, value.bytes());
    cell += k_cell;
  }
}

Prepared prepare_log(const NodeView& node, const Capabilities&) {
  const std::int64_t slots = node.attrs().get<std::int64_t>("slots");
  return launch([=](const Args& a) { log_scalars(a.in, slots); });
}

Prepared prepare_keep(const NodeView& node, const Capabilities&) {
  const std::int64_t slots = node.attrs().get<std::int64_t>("slots");
  return launch([=](const Args& a) {
    log_scalars(a.in.subspan(4), slots);
    bool& taken = *a.in[1].as<bool>();
    if (*a.in[3].as<bool>() || taken) return;
    std::memcpy(a.in[0].data, a.in[2].data, a.in[2].bytes());
    taken = true;
  });
}

}  // namespace

std::vector<Kernel> ahead_kernels() {
  return {
      {.op = "GatherBatch", .name = "reference/gather_batch", .prepare = prepare_gather},
      {.op = "NextBatch", .name = "reference/next_batch", .prepare = prepare_next},
      {.op = "LogScalars", .name = "reference/log_scalars", .prepare = prepare_log},
      {.op = "KeepState", .name = "reference/keep_state", .prepare = prepare_keep},
  };
}

}  // namespace halfstep::backend::cpu
