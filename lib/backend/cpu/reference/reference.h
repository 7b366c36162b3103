#pragma once
// The reference kernels of the CPU: plain loops against which the fast kernels are tested. One file
// per op family; each returns its kernels to table.cc. Elements are loaded to float (double for
// float64), sums run in double, and each result is rounded once on store.

#include <vector>

#include "backend/kernel.h"

namespace halfstep::backend::cpu {

/// The update of a node with the ports of a FusedUpdate; `gradient` is the type of the gradient.
Prepared prepare_fused_update(const NodeView& node, const graph::TensorType& gradient);

std::vector<Kernel> ahead_kernels();
std::vector<Kernel> array_kernels();
std::vector<Kernel> attention_reference_kernels();
std::vector<Kernel> conv_kernels();
std::vector<Kernel> elementwise_kernels();
std::vector<Kernel> fused_kernels();
std::vector<Kernel> image_kernels();
std::vector<Kernel> matmul_kernels();
std::vector<Kernel> norm_kernels();
std::vector<Kernel> packed_operand_kernels();
std::vector<Kernel> pool_kernels();
std::vector<Kernel> random_kernels();
std::vector<Kernel> rnn_kernels();
std::vector<Kernel> reduce_kernels();
std::vector<Kernel> scaling_kernels();
std::vector<Kernel> select_kernels();
std::vector<Kernel> softmax_kernels();
std::vector<Kernel> state_kernels();
std::vector<Kernel> update_kernels();

}  // namespace halfstep::backend::cpu
