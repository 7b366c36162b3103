#include "backend/cuda/vendor/real/check.h"

#include <fmt/format.h>

#include <array>

namespace halfstep::backend::cuda::real {
namespace {

Failure failure_of(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return Failure::out_of_memory;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInvalidDevice:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoKernelImageForDevice:
      return Failure::unavailable;
    default:
      return Failure::failed;
  }
}

}  // namespace

void check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  const std::string text =
      fmt::format("{}: {} ({})", call, cudaGetErrorString(status), cudaGetErrorName(status));
  // The runtime keeps errors that are not sticky until they are read.
  (void)cudaGetLastError();
  throw VendorError(failure_of(status), text);
}

void check(cublasStatus_t status, std::string_view call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw VendorError(status == CUBLAS_STATUS_ALLOC_FAILED ? Failure::out_of_memory : Failure::failed,
                    fmt::format("{}: {}", call, cublasLtGetStatusName(status)));
}

void check(cudnnStatus_t status, std::string_view call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> words{};
  cudnnGetLastErrorString(words.data(), words.size());
  const bool memory = status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
                      status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  throw VendorError(memory ? Failure::out_of_memory : Failure::failed,
                    fmt::format("{}: {} ({})", call, cudnnGetErrorString(status), words.data()));
}

std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

std::string library_version(std::size_t number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

}  // namespace halfstep::backend::cuda::real
