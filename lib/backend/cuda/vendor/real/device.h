#pragma once
// The real vendor's matmuls and convolutions, and the device state that they share.

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
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
  std::size_t l2_bytes = 0;
  Choices choices;
  /// The faults that trials of engines found, by convolution, engine and knobs; "": none.
  std::map<std::string, std::string> trials = {};
};

/// Device memory with the lifetime of the object. Errors: VendorError.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes);
  Scratch(Scratch&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(other.bytes_) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch();
  void* address() const { return address_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* address_ = nullptr;
  std::size_t bytes_;
};

/// Memory for an operand of a trial.
struct TrialOperand {
  TrialOperand(std::int64_t elements, DType of_dtype)
      : memory(static_cast<std::size_t>(elements) * size_bytes(of_dtype)), dtype(of_dtype) {}
  void* address() const { return memory.address(); }

  Scratch memory;
  DType dtype;
};

/// Fills the operands with values in [-1, 1), since a GPU's clock depends on the bits
/// that change.
void fill_random(const Device& device, std::initializer_list<const TrialOperand*> operands);
/// Fills an operand with values, repeated; blocks.
void fill_repeated(const Device& device,
                   const TrialOperand& operand,
                   std::span<const float> values);
/// Enqueues: fills the operands with NaN.
void fill_nan(const Device& device, std::initializer_list<const TrialOperand*> operands);
/// An element of an operand; blocks.
double element(const Device& device, const TrialOperand& operand, std::int64_t i);
/// Whether the first and the last element are NaN; blocks.
bool is_nan(const Device& device, const TrialOperand& operand);

/// The index of the fastest of several functions that enqueue the same work, by the median of
/// repeated runs, each after the second-level cache was overwritten; failing ones are skipped.
/// Blocks until the stream is idle. Errors: VendorError when all fail.
std::size_t fastest(Device& device, const std::vector<std::function<void()>>& candidates);

/// The index of the candidate to use for `key`, of `count`: the first, or the fastest, measured now
/// or earlier. `measure` returns its index; where it finds no memory, the first is used.
std::size_t choose(Device& device,
                   const std::string& key,
                   std::size_t count,
                   const std::function<std::size_t()>& measure);

/// A matmul by cuBLASLt, or nullptr when no algorithm satisfies the key. Errors: VendorError.
std::unique_ptr<Matmul> prepare_matmul(Device& device, const MatmulKey& key);

/// A convolution by cuDNN, or nullptr when no plan satisfies the key. Errors: VendorError.
std::unique_ptr<Convolution> prepare_convolution(Device& device, const ConvKey& key);

}  // namespace halfstep::backend::cuda::real
