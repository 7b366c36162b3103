#pragma once
// A descriptor of cuDNN's graph interface: attributes are set, then it is finalized.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backend/cuda/vendor/real/check.h"

namespace halfstep::backend::cuda::real {

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &raw_), "cudnnBackendCreateDescriptor");
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { cudnnBackendDestroyDescriptor(raw_); }

  cudnnBackendDescriptor_t raw() const { return raw_; }

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type,
                  std::span<const T> values) {
    check(cudnnBackendSetAttribute(
              raw_, name, type, static_cast<std::int64_t>(values.size()), values.data()),
          "cudnnBackendSetAttribute");
    return *this;
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& v) {
    return set(name, type, std::span<const T>(&v, 1));
  }
  Descriptor& integers(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    return set(name, CUDNN_TYPE_INT64, values);
  }
  Descriptor& integer(cudnnBackendAttributeName_t name, std::int64_t value) {
    return set(name, CUDNN_TYPE_INT64, value);
  }
  Descriptor& dtype(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    return set(name, CUDNN_TYPE_DATA_TYPE, value);
  }
  /// Refers to `other`, which lives as long as this one.
  Descriptor& refer(cudnnBackendAttributeName_t name, std::shared_ptr<const Descriptor> other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other->raw_);
    referred_.push_back(std::move(other));
    return *this;
  }
  void finalize() { check(cudnnBackendFinalize(raw_), "cudnnBackendFinalize"); }

  /// Reads up to values.size() values of an attribute; returns their number.
  template <class T>
  std::int64_t get(cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type,
                   std::span<T> values) const {
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(
              raw_, name, type, static_cast<std::int64_t>(values.size()), &count, values.data()),
          "cudnnBackendGetAttribute");
    return count;
  }
  std::int64_t integer(cudnnBackendAttributeName_t name) const {
    std::int64_t value = 0;
    get(name, CUDNN_TYPE_INT64, std::span(&value, 1));
    return value;
  }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
  std::vector<std::shared_ptr<const Descriptor>> referred_;
};

using DescriptorPtr = std::shared_ptr<const Descriptor>;

}  // namespace halfstep::backend::cuda::real
