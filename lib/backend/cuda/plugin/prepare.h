#pragma once
// The kernels of the plugin: conversion of a node into calls of the vendor's libraries and of own
// kernels. One file per family, which ends with its rows; plugin.cc lists the families.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/kernels/stream.h"
#include "backend/cuda/plugin/facts.h"
#include "backend/cuda/vendor/vendor.h"

namespace halfstep::backend::cuda::plugin {

/// The services that a kernel may use.
struct Machine {
  Vendor& vendor;
  Float32Math float32 = Float32Math::ieee;
  bool deterministic = true;
  kernels::Tickets tickets = {};

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
  std::string algorithm = {};             ///< of a library, "" for own kernels
  std::optional<bool> tensor_cores = {};  ///< with which the library computes
};

using Prepare = Work (*)(const Facts& node, const Machine& machine);

struct Row {
  std::string_view name;
  Prepare prepare;
};

/// An axis counted from the front; negative axes count from the end.
std::size_t axis_of(std::int64_t axis, std::size_t rank);

// The families, each in the file of its name.
std::vector<Row> ahead_rows();
std::vector<Row> array_rows();
std::vector<Row> attention_rows();
std::vector<Row> collective_rows();
std::vector<Row> elementwise_rows();
std::vector<Row> fused_product_rows();
std::vector<Row> layer_rows();
std::vector<Row> product_rows();
std::vector<Row> random_rows();
std::vector<Row> recurrent_rows();
std::vector<Row> reduce_rows();
std::vector<Row> update_rows();

}  // namespace halfstep::backend::cuda::plugin
