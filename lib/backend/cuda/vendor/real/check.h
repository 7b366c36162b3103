#pragma once
// Every call into an NVIDIA library goes through check(): a status other than success becomes a
// VendorError with the call's name and the library's message.

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <string_view>

#include "backend/cuda/vendor/vendor.h"

namespace halfstep::backend::cuda::real {

void check(cudaError_t status, std::string_view call);
void check(cublasStatus_t status, std::string_view call);
void check(cudnnStatus_t status, std::string_view call);

/// 13000 -> "13.0".
std::string cuda_version(int number);
/// Of cuBLAS, cuDNN or NCCL: 22809 -> "2.28.9".
std::string library_version(std::size_t number);

}  // namespace halfstep::backend::cuda::real
