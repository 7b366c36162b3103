#pragma once
// Prepared matmuls and convolutions of a vendor's libraries.

#include <cstddef>
#include <string>

#include "backend/cuda/vendor/conv_key.h"
#include "backend/cuda/vendor/matmul_key.h"

namespace halfstep::backend::cuda {

/// A prepared matmul. Not copyable; must not outlive its Vendor.
class Matmul {
 public:
  struct Operands {
    const void* a = nullptr;
    const void* b = nullptr;
    void* c = nullptr;
    void* bias = nullptr;     ///< [n] of dtype `out`: read or written, by epilogue
    void* mask = nullptr;     ///< fused_mask_bytes(m, n): read or written, by epilogue
    bool accumulate = false;  ///< add to the value of c (in `out`, before the epilogue)
  };
  virtual ~Matmul() = default;
  virtual std::size_t workspace_bytes() const = 0;
  /// The chosen algorithm ("algorithm 66 tile 20 ..."), and whether it uses tensor cores.
  virtual std::string description() const = 0;
  virtual bool uses_tensor_cores() const = 0;
  /// Enqueues it. `workspace` is aligned to k_alignment and in use until the matmul has completed.
  /// Errors: VendorError.
  virtual void run(const Operands& operands, void* workspace) = 0;
};

/// A prepared convolution. Not copyable; must not outlive its Vendor.
class Convolution {
 public:
  struct Operands {
    void* x = nullptr;       ///< written by input_gradient, else read
    void* filter = nullptr;  ///< [O,h,w,C/groups]; written by filter_gradient, else read
    void* y = nullptr;       ///< written by forward; the gradients read dy here
    const void* bias = nullptr;
  };
  virtual ~Convolution() = default;
  virtual std::size_t workspace_bytes() const = 0;
  virtual std::string description() const = 0;
  virtual bool uses_tensor_cores() const = 0;
  /// Enqueues it. Errors: VendorError.
  virtual void run(const Operands& operands, void* workspace) = 0;
};

}  // namespace halfstep::backend::cuda
