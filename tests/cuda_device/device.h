#pragma once
// The device under test: the emulated one, or a GPU of this machine.

#include <cstring>
#include <string>
#include <vector>

#include "backend/cuda/kernels/stream.h"
#include "backend/cuda/vendor/vendor.h"
#include "core/tensor.h"

namespace halfstep::testing {

/// The first device; opened once.
backend::cuda::Vendor& device();

/// Device memory, full of NaN or holding a copy of a tensor.
class OnDevice {
 public:
  explicit OnDevice(std::size_t bytes);
  explicit OnDevice(const Tensor& tensor) : OnDevice(tensor.view()) {}
  explicit OnDevice(const TensorView& tensor);
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice();

  void* address() const { return address_; }
  /// Waits for the device and copies the bytes back.
  void read(Tensor& tensor) const { read(tensor.view()); }
  void read(const TensorView& tensor) const;

 private:
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The floating dtypes that the libraries multiply in on this device: bfloat16 from Ampere on.
std::vector<DType> dtypes();

/// Tickets for kernels, all 0.
backend::cuda::kernels::Tickets tickets();
/// Whether each is 0 again. Waits for the device.
bool tickets_are_zero();

}  // namespace halfstep::testing
