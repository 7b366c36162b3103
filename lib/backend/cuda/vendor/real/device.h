#pragma once
// The real vendor's matmuls and convolutions, and the device state that they share.

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "backend/cuda/vendor/real/check.h"
#include "backend/cuda/vendor/real/choices.h"

namespace halfstep::backend::cuda::real {

struct Device {
  cudaStream_t stream = nullptr;
  cublasLtHandle_t cublas = nullptr;
  cudnnHandle_t cudnn = nullptr;
  Autotune autotune = Autotune::heuristic;
  Choices choices;
};

/// Device memory with the lifetime of the object. Errors: VendorError.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes);
  Scratch(Scratch&& other) noexcept : address_(std::exchange(other.address_, nullptr)) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch();
  void* address() const { return address_; }

 private:
  void* address_ = nullptr;
};

/// The index of the fastest of several functions that enqueue the same work, by the median of
/// repeated runs; failing ones are skipped. Blocks until the stream is idle. Errors: VendorError
/// when all fail.
std::size_t fastest(Device& device, const std::vector<std::function<void()>>& candidates);

/// The index of the candidate to use for `key`, of `count`: the first, or the fastest, measured now
/// or earlier. `measure` returns its index.
std::size_t choose(Device& device,
                   const std::string& key,
                   std::size_t count,
                   const std::function<std::size_t()>& measure);

/// A matmul by cuBLASLt, or nullptr when no algorithm satisfies the key. Errors: VendorError.
std::unique_ptr<Matmul> prepare_matmul(Device& device, const MatmulKey& key);

/// A convolution by cuDNN, or nullptr when no plan satisfies the key. Errors: VendorError.
std::unique_ptr<Convolution> prepare_convolution(Device& device, const ConvKey& key);

}  // namespace halfstep::backend::cuda::real
