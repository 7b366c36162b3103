#pragma once
// The kernels of the plugin: conversion of a node into calls of the vendor's libraries and of own
// kernels. One file per family; table.cc lists them all.

#include <functional>
#include <string_view>

#include "backend/cuda/plugin/facts.h"
#include "backend/cuda/vendor/vendor.h"

namespace halfstep::backend::cuda::plugin {

/// The services that a kernel may use.
struct Machine {
  Vendor& vendor;
  Float32Math float32 = Float32Math::ieee;
  bool deterministic = true;

  Stream stream() const { return vendor.stream(); }
};

/// Device addresses of one launch, one per input and output of the node.
struct Addresses {
  const void* const* in = nullptr;
  void* const* out = nullptr;
  std::byte* workspace = nullptr;

  /// Input `i` as a T; variables are written through their input.
  template <class T>
  const T* input(std::size_t i) const {
    return static_cast<const T*>(in[i]);
  }
  template <class T>
  T* variable(std::size_t i) const {
    return const_cast<T*>(static_cast<const T*>(in[i]));
  }
  template <class T>
  T* output(std::size_t i = 0) const {
    return static_cast<T*>(out[i]);
  }
};

struct Work {
  std::function<void(const Addresses&)> run;
  std::size_t workspace_bytes = 0;
};

using Prepare = Work (*)(const Facts& node, const Machine& machine);

struct Row {
  std::string_view name;
  Prepare prepare;
};

/// The kernels of this plugin.
std::span<const Row> rows();

/// An axis counted from the front; negative axes count from the end.
std::size_t axis_of(std::int64_t axis, std::size_t rank);

// ahead.cc
Work prepare_gather_batch(const Facts& node, const Machine& machine);
Work prepare_keep_state(const Facts& node, const Machine& machine);
Work prepare_log_scalars(const Facts& node, const Machine& machine);
// array.cc
Work prepare_broadcast(const Facts& node, const Machine& machine);
Work prepare_concat(const Facts& node, const Machine& machine);
Work prepare_fill(const Facts& node, const Machine& machine);
Work prepare_gather(const Facts& node, const Machine& machine);
Work prepare_one_hot(const Facts& node, const Machine& machine);
Work prepare_pad(const Facts& node, const Machine& machine);
Work prepare_reverse(const Facts& node, const Machine& machine);
Work prepare_segment_sum(const Facts& node, const Machine& machine);
Work prepare_shape(const Facts& node, const Machine& machine);
Work prepare_slice(const Facts& node, const Machine& machine);
Work prepare_split(const Facts& node, const Machine& machine);
Work prepare_tile(const Facts& node, const Machine& machine);
Work prepare_transpose(const Facts& node, const Machine& machine);
// elementwise.cc
Work prepare_add_n(const Facts& node, const Machine& machine);
Work prepare_binary(const Facts& node, const Machine& machine);
Work prepare_cast(const Facts& node, const Machine& machine);
Work prepare_clip(const Facts& node, const Machine& machine);
Work prepare_select(const Facts& node, const Machine& machine);
Work prepare_unary(const Facts& node, const Machine& machine);
// layer.cc
Work prepare_avg_pool(const Facts& node, const Machine& machine);
Work prepare_avg_pool_grad(const Facts& node, const Machine& machine);
Work prepare_batch_norm(const Facts& node, const Machine& machine);
Work prepare_batch_norm_grad(const Facts& node, const Machine& machine);
Work prepare_bias_add(const Facts& node, const Machine& machine);
Work prepare_bias_grad(const Facts& node, const Machine& machine);
Work prepare_cross_entropy(const Facts& node, const Machine& machine);
Work prepare_max_pool(const Facts& node, const Machine& machine);
Work prepare_max_pool_grad(const Facts& node, const Machine& machine);
Work prepare_softmax(const Facts& node, const Machine& machine);
Work prepare_sparse_cross_entropy(const Facts& node, const Machine& machine);
// fused_product.cc
Work prepare_fused_product(const Facts& node, const Machine& machine);
// product.cc
Work prepare_batch_matmul(const Facts& node, const Machine& machine);
Work prepare_convolution(const Facts& node, const Machine& machine);
Work prepare_matmul(const Facts& node, const Machine& machine);
// random.cc
Work prepare_random_flip(const Facts& node, const Machine& machine);
Work prepare_random_translation(const Facts& node, const Machine& machine);
Work prepare_uniform(const Facts& node, const Machine& machine);
// reduce.cc
Work prepare_in_top_k(const Facts& node, const Machine& machine);
Work prepare_l2_loss(const Facts& node, const Machine& machine);
Work prepare_reduce(const Facts& node, const Machine& machine);
// update.cc
Work prepare_all_finite(const Facts& node, const Machine& machine);
Work prepare_assign(const Facts& node, const Machine& machine);
Work prepare_assign_add(const Facts& node, const Machine& machine);
Work prepare_learning_rate(const Facts& node, const Machine& machine);
Work prepare_loss_scale(const Facts& node, const Machine& machine);
Work prepare_update(const Facts& node, const Machine& machine);

}  // namespace halfstep::backend::cuda::plugin
