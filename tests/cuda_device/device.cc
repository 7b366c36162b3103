#include "cuda_device/device.h"

#include <algorithm>

#include "core/error.h"

namespace halfstep::testing {

backend::cuda::Vendor& device() {
  static const auto vendor = backend::cuda::open_vendor({.cache_folder = {}});
  return *vendor;
}

OnDevice::OnDevice(std::size_t bytes) : address_(device().allocate(bytes)), bytes_(bytes) {
  if (bytes == 0) return;
  require(address_ != nullptr, "no device memory for {} bytes", bytes);
  device().fill(address_, 0xff, bytes);
}

OnDevice::OnDevice(const TensorView& tensor) : OnDevice(tensor.bytes()) {
  device().upload(address_, tensor.data, tensor.bytes());
  device().synchronize();
}

OnDevice::~OnDevice() { device().release(address_); }

void OnDevice::read(const TensorView& tensor) const {
  require(tensor.bytes() <= bytes_, "{} bytes wanted of {}", tensor.bytes(), bytes_);
  device().download(tensor.data, address_, tensor.bytes());
  device().synchronize();
}

namespace {

const OnDevice& ticket_memory() {
  static const OnDevice memory(Tensor(DType::int32, {backend::cuda::kernels::Tickets::k_count}));
  return memory;
}

}  // namespace

std::vector<DType> dtypes() {
  std::vector<DType> all{DType::float32, DType::float16};
  if (device().device().compute_capability >= 80) all.push_back(DType::bfloat16);
  return all;
}

backend::cuda::kernels::Tickets tickets() {
  return {static_cast<unsigned*>(ticket_memory().address())};
}

bool tickets_are_zero() {
  Tensor copy(DType::int32, {backend::cuda::kernels::Tickets::k_count});
  ticket_memory().read(copy);
  const auto all = copy.span<std::int32_t>();
  return std::all_of(all.begin(), all.end(), [](std::int32_t ticket) { return ticket == 0; });
}

}  // namespace halfstep::testing
