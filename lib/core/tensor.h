#pragma once
// Dense row-major tensors: TensorView points, Tensor owns.

#include <cstddef>
#include <memory>
#include <span>

#include "core/dtype.h"
#include "core/half.h"
#include "core/shape.h"

namespace halfstep {

/// dtype, shape and address of a dense row-major tensor owned elsewhere; it must outlive the view.
/// Like a span, a const view may point to writable data.
struct TensorView {
  DType dtype = DType::float32;
  Shape shape;
  void* data = nullptr;

  std::int64_t elements() const { return shape.elements(); }
  std::size_t bytes() const {
    return static_cast<std::size_t>(shape.elements()) * size_bytes(dtype);
  }
  /// The elements as T, which must be the storage type of dtype (not checked).
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

/// Zero-filled memory aligned to a cache line, for release_zeroed(); nullptr for 0 bytes.
/// Errors: UserError(memory) when memory does not suffice.
std::byte* allocate_zeroed(std::size_t bytes);
void release_zeroed(std::byte* memory) noexcept;

/// Memory aligned to a cache line, zero-filled, owned by one object.
class AlignedBuffer {
 public:
  static constexpr std::size_t k_alignment = 64;

  AlignedBuffer() = default;
  /// Errors: UserError(memory) when memory does not suffice.
  explicit AlignedBuffer(std::size_t bytes) : data_(allocate_zeroed(bytes)), bytes_(bytes) {}
  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { release_zeroed(p); }
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t bytes_ = 0;
};

/// A dense tensor that owns its elements; zero-filled when made.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, const Shape& shape);

  DType dtype() const { return view_.dtype; }
  const Shape& shape() const { return view_.shape; }
  std::int64_t elements() const { return view_.elements(); }
  std::size_t bytes() const { return view_.bytes(); }
  TensorView view() const { return view_; }
  template <class T>
  T* as() const {
    return view_.as<T>();
  }
  /// Elements as a span; T must be the storage type of dtype.
  template <class T>
  std::span<T> span() const {
    return {view_.as<T>(), static_cast<std::size_t>(elements())};
  }
  Tensor clone() const;
  /// Reads the same elements under another shape. Errors: InternalError when their number differs.
  void reshape(const Shape& shape);

 private:
  AlignedBuffer buffer_;
  TensorView view_;
};

/// Element `i` of a floating or integer tensor as a double.
double element_as_double(const TensorView& view, std::int64_t i);

/// Copies every element with conversion; shapes may differ, element counts must agree.
/// Float to a 16-bit type rounds to nearest even.
void convert(const TensorView& from, const TensorView& to);

}  // namespace halfstep
