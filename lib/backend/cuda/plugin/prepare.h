#pragma once
// The kernels of the plugin: conversion of a node into calls of the vendor's libraries and of own
// kernels. One file per family, which ends with its kernels; prepare.cc lists the families.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/kernels/stream.h"
#include "backend/cuda/plugin.h"
#include "backend/cuda/vendor/vendor.h"
#include "backend/kernel.h"

namespace halfstep::backend::cuda::plugin {

/// Opens a device. Errors: those of Gpu.
std::shared_ptr<Gpu> open_gpu(const DeviceOptions& options);

/// The device that a kernel is prepared for.
struct DeviceContext {
  Vendor& vendor;
  Float32Math float32 = Float32Math::ieee;
  bool deterministic = true;
  kernels::Tickets tickets = {};

  Stream stream() const { return vendor.stream(); }
};

struct PreparedKernel {
  std::function<void(const Args&)> run;  ///< enqueues the launches; addresses are the device's
  std::size_t workspace_bytes = 0;
  std::string algorithm = {};             ///< of a library, "" for own kernels
  std::optional<bool> tensor_cores = {};  ///< with which the library computes
};

using Prepare = PreparedKernel (*)(const NodeView& node, const DeviceContext& context);

/// A kernel of backend/cuda/kernel_table.h by name.
struct Implementation {
  std::string_view name;
  Prepare prepare;
};
const std::vector<Implementation>& implementations();
/// Errors: InternalError for a name that no kernel has.
Prepare implementation(std::string_view kernel);

/// The integers of input `i`, whose kernel requires a constant. Errors: InternalError without them.
std::vector<std::int64_t> constant_input(const NodeView& node, std::size_t i);
/// The types of all inputs.
std::vector<graph::TensorType> input_types(const NodeView& node);

// The families, each in the file of its name.
std::vector<Implementation> array_kernels();
std::vector<Implementation> attention_kernels();
std::vector<Implementation> collective_kernels();
std::vector<Implementation> elementwise_kernels();
std::vector<Implementation> fused_matmul_kernels();
std::vector<Implementation> layer_kernels();
std::vector<Implementation> matmul_kernels();
std::vector<Implementation> random_kernels();
std::vector<Implementation> recurrent_kernels();
std::vector<Implementation> reduce_kernels();
std::vector<Implementation> step_kernels();
std::vector<Implementation> update_kernels();

}  // namespace halfstep::backend::cuda::plugin
