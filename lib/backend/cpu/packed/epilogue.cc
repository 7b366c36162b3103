#include "backend/cpu/packed/epilogue.h"

#include "core/dispatch.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu::packed {

Epilogue::Epilogue(const NodeView& node, const BlockKernels& blocks)
    : m_(node.attrs().get<std::int64_t>("m")),
      n_(node.attrs().get<std::int64_t>("n")),
      dtype_(node.attrs().get<DType>("T")),
      as_a_{m_, n_, graph::ops::operand_format(node.attrs())},
      as_columns_{n_, m_, as_a_.format},
      relu_(node.attrs().get<std::string>("activation") == "Relu"),
      outputs_(node.attrs().get<std::string>("forms")),
      block_epilogue_(blocks.of(as_a_.format).epilogue),
      fence_(blocks.fence) {
  std::size_t port = 2;
  if (node.attrs().get<bool>("bias")) bias_port_ = port++;
  if (node.attrs().get<bool>("mask")) mask_port_ = port++;
}

std::size_t Epilogue::workspace_bytes() const {
  const std::int64_t rows = (bias_port_ != 0 ? 1 : 0) + (has('s') ? as_a_.panels() : 0);
  return static_cast<std::size_t>(rows * as_columns_.panels() * k_block_size) * sizeof(float);
}

Epilogue::Bound::Bound(const Epilogue& epilogue, const Args& args, std::byte* workspace)
    : f_(epilogue), args_(args) {
  auto* scratch = reinterpret_cast<float*>(workspace);
  const std::int64_t padded = f_.as_columns_.panels() * k_block_size;
  if (f_.bias_port_ != 0) {
    bias_ = scratch;
    scratch += padded;
    convert(args.in[f_.bias_port_], {DType::float32, {f_.n_}, bias_});
    std::fill(bias_ + f_.n_, bias_ + padded, 0.0F);
  }
  if (f_.has('s')) column_sums_ = scratch;
  if (f_.mask_port_ != 0) mask_ = args.in[f_.mask_port_].as<std::uint32_t>();
}

template <class T>
T* Epilogue::Bound::result(char output) const {
  const std::size_t i = f_.outputs_.find(output);
  return i == std::string::npos ? nullptr : args_.out[i].as<T>();
}

void Epilogue::Bound::apply(const float* accumulators, std::int64_t i, std::int64_t j) const {
  const std::int64_t row = i * k_block_size;
  const std::int64_t column = j * k_block_size;
  const std::int64_t block = i * f_.as_columns_.panels() + j;
  const std::int64_t at = row * f_.n_ + column;
  const auto at_offset = [](auto* base, std::int64_t offset) {
    return base == nullptr ? nullptr : base + offset;
  };
  const std::int64_t byte_offset = at * static_cast<std::int64_t>(size_bytes(f_.dtype_));
  const std::int64_t column_offset = f_.as_columns_.k_block_offset(j, i);
  f_.block_epilogue_({.accumulators = accumulators,
                      .rows = std::min(k_block_size, f_.m_ - row),
                      .columns = std::min(k_block_size, f_.n_ - column),
                      .bias = at_offset(bias_, column),
                      .relu = f_.relu_,
                      .mask = at_offset(mask_, block * k_block_size),
                      .stride = f_.n_,
                      .rounded = at_offset(result('r'), byte_offset),
                      .widened = at_offset(result<float>('f'), at),
                      .unrounded = at_offset(result<float>('g'), at),
                      .as_a = at_offset(result('A'), f_.as_a_.k_block_offset(i, j)),
                      .as_a_transposed = at_offset(result('T'), column_offset),
                      .as_b = at_offset(result('B'), column_offset),
                      .stream = f_.as_a_.bytes() >= k_streamed_bytes,
                      .column_sums = at_offset(column_sums_, block * k_block_size),
                      .signs = at_offset(result<std::uint32_t>('M'), block * k_block_size),
                      .max_norm = at_offset(result<std::uint16_t>('n'), block)});
}

void Epilogue::Bound::complete_part() const { f_.fence_(); }

void Epilogue::Bound::complete() const {
  if (column_sums_ == nullptr) return;
  const std::int64_t padded = f_.as_columns_.panels() * k_block_size;
  dispatch_floating(f_.dtype_, [&]<class T>(Type<T>) {
    T* y = result<T>('s');
    parallel_for(f_.n_, 1024, [&](std::int64_t begin, std::int64_t end) {
      // In the order of row panels, so the result does not depend on the number of threads; the
      // sums are accumulated in the first one.
      for (std::int64_t i = 1; i < f_.as_a_.panels(); ++i) {
        const float* next = column_sums_ + i * padded;
        for (std::int64_t j = begin; j < end; ++j) column_sums_[j] += next[j];
      }
      for (std::int64_t j = begin; j < end; ++j) {
        y[j] = static_cast<T>(static_cast<Compute<T>>(column_sums_[j]));
      }
    });
  });
}

}  // namespace halfstep::backend::cpu::packed
