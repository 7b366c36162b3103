#pragma once
// The language of the kernels: a subset of CUDA that nvcc compiles for the device and any C++
// compiler for this processor. No other file distinguishes the two.
//
//   thread(), block(), row(), threads(), blocks()   threadIdx.x, blockIdx.x, blockIdx.y,
//                                                   blockDim.x, gridDim.x
//   sync_block()                                    __syncthreads()
//   shuffle_xor(x, lanes)                           __shfl_xor_sync(), over whole warps
//   is_last_block(ticket, count)                    whether `count` blocks have called it, this one
//                                                   last; the other blocks' writes are visible then
//   HALFSTEP_SHARED(T, name, count)                 an array that the block's threads share
//   HALFSTEP_ROLLED                                 before a loop that must not be unrolled
//   store_at_once(p, value)                         *p = value, in words of up to 16 bytes
//   launch(kernel, grid, stream, arguments...)      kernel<<<...>>>(arguments...)
//
// is_last_block() is called by all threads of a block, and returns the same to all of them. A
// ticket is 0 before and after a kernel, so that one array serves all launches of a stream.
//
// A kernel that is declared __global__ void HALFSTEP_BLOCK_OF(threads, blocks) has at most so many
// threads in a block, and needs no more than so many blocks on a multiprocessor: without it nvcc
// saves registers, and a thread waits for one load before it issues the next.
//
// Barriers, shuffles and is_last_block() must be reached by all threads of a block or warp, and
// only in a kernel whose grid is declared as `cooperates`.

#include "backend/cuda/kernels/shim/grid.h"
#include "backend/cuda/kernels/stream.h"
#include "core/half.h"

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <bit>
#include <cstddef>

#define HALFSTEP_SHARED(type, name, count) __shared__ type name[count]
#define HALFSTEP_ROLLED _Pragma("unroll 1")
#define HALFSTEP_BLOCK_OF(threads, blocks) __launch_bounds__(threads, blocks)

namespace halfstep::backend::cuda::kernels {

__device__ inline unsigned thread() { return threadIdx.x; }
__device__ inline unsigned threads() { return blockDim.x; }
__device__ inline std::int64_t block() { return blockIdx.x; }
__device__ inline std::int64_t blocks() { return gridDim.x; }
__device__ inline std::int64_t row() { return blockIdx.y; }

__device__ inline void sync_block() { __syncthreads(); }

template <class T>
__device__ T shuffle_xor(T x, unsigned lanes) {
  return __shfl_xor_sync(~0U, x, static_cast<int>(lanes));
}

__device__ inline bool is_last_block(unsigned* ticket, std::int64_t count) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(ticket, 1U) + 1 == static_cast<unsigned>(count);
    if (last) *ticket = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
}

__device__ inline float to_float(float16 x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ inline float to_float(bfloat16 x) { return static_cast<float>(x); }

__device__ inline float16 to_float16(float x) {
  return float16::of_bits(__half_as_ushort(__float2half_rn(x)));
}

__device__ inline bfloat16 to_bfloat16(float x) {
  return bfloat16::of_bits(__bfloat16_as_ushort(__float2bfloat16_rn(x)));
}

/// nvcc may store the elements of a struct, or of a vector type, one by one.
template <class T>
__device__ inline void store_at_once(T* p, const T& value) {
  struct Words {
    unsigned word[(sizeof(T) + sizeof(unsigned) - 1) / sizeof(unsigned)];
  };
  if constexpr (sizeof(T) % sizeof(uint4) == 0) {
    const auto words = std::bit_cast<Words>(value);
    for (std::size_t i = 0; i < sizeof(T) / sizeof(uint4); ++i) {
      const unsigned* w = words.word + 4 * i;
      asm volatile(
          "st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(reinterpret_cast<uint4*>(p) + i),
          "r"(w[0]),
          "r"(w[1]),
          "r"(w[2]),
          "r"(w[3])
          : "memory");
    }
  } else if constexpr (sizeof(T) == sizeof(uint2)) {
    const auto words = std::bit_cast<Words>(value);
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(words.word[0]), "r"(words.word[1])
                 : "memory");
  } else if constexpr (sizeof(T) == sizeof(unsigned)) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"(std::bit_cast<unsigned>(value))
                 : "memory");
  } else {
    *p = value;
  }
}

/// Errors: LaunchError.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...),
            const Grid& grid,
            Stream stream,
            Arguments... arguments) {
  if (grid.blocks == 0 || grid.rows == 0) return;
  const dim3 size(static_cast<unsigned>(grid.blocks), static_cast<unsigned>(grid.rows));
  kernel<<<size, grid.threads, 0, static_cast<cudaStream_t>(stream)>>>(arguments...);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) {
    throw LaunchError(std::string("a kernel was not launched: ") + cudaGetErrorString(error));
  }
}

}  // namespace halfstep::backend::cuda::kernels

#else

#define __global__
#define __device__
#define HALFSTEP_ROLLED
#define HALFSTEP_BLOCK_OF(threads, blocks)
#define HALFSTEP_SHARED(type, name, count) \
  type* const name = ::halfstep::backend::cuda::kernels::shim::shared<type>(count)

#include "backend/cuda/kernels/shim/cpu.h"

#endif
