#include "core/dtype.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <ostream>
#include <set>
#include <string_view>

#include "core/dispatch.h"
#include "core/error.h"
#include "core/half.h"

namespace halfstep {
namespace {

TEST_CASE("dtype: every dtype has a name that reads back, and they all differ") {
  std::set<std::string_view> names;
  for (DType dtype : all_dtypes()) {
    CAPTURE(name(dtype));
    CHECK(dtype_named(name(dtype)) == dtype);
    CHECK(names.insert(name(dtype)).second);
  }
  CHECK(names.size() == 23);
}

TEST_CASE("dtype: the table is in the order of the enum") {
  for (std::size_t i = 0; i < all_dtypes().size(); ++i) {
    CHECK(static_cast<std::size_t>(all_dtypes()[i]) == i);
  }
}

TEST_CASE("dtype: names of TensorFlow, its short forms, and nothing else") {
  CHECK(dtype_named("half") == DType::float16);
  CHECK(dtype_named("float") == DType::float32);
  CHECK(dtype_named("double") == DType::float64);
  CHECK(dtype_named("bool") == DType::boolean);
  CHECK(dtype_named("qint32") == DType::qint32);
  for (std::string_view text : {"", "Float32", "f32", "float32 ", "boolean"}) {
    CAPTURE(text);
    CHECK_FALSE(dtype_named(text).has_value());
  }
}

TEST_CASE("dtype: sizes are those of the storage types") {
  CHECK(size_bytes(DType::float32) == sizeof(float));
  CHECK(size_bytes(DType::float64) == sizeof(double));
  CHECK(size_bytes(DType::float16) == sizeof(float16));
  CHECK(size_bytes(DType::bfloat16) == sizeof(bfloat16));
  CHECK(size_bytes(DType::int8) == 1);
  CHECK(size_bytes(DType::int32) == 4);
  CHECK(size_bytes(DType::int64) == 8);
  CHECK(size_bytes(DType::boolean) == sizeof(bool));
  CHECK(size_bytes(DType::complex128) == 16);
  CHECK(size_bytes(DType::string) == 0);
}

TEST_CASE("dtype: the classes floating, half and quantized") {
  for (DType dtype : all_dtypes()) {
    CAPTURE(name(dtype));
    const std::string_view text = name(dtype);
    CHECK(is_floating(dtype) == (text.find("float") != std::string_view::npos));
    CHECK(is_half(dtype) == (text == "float16" || text == "bfloat16"));
    CHECK(is_quantized(dtype) ==
          (text.starts_with("q")));  // qint8, quint8, qint16, quint16, qint32
  }
}

TEST_CASE("dtype: epsilon is the step above one, max_finite the number below infinity") {
  const auto step = []<class T>(T one, T next) {
    return static_cast<double>(float(next)) - static_cast<double>(float(one));
  };
  const float16 h(1.0F);
  const bfloat16 b(1.0F);
  CHECK(epsilon(DType::float16) == step(h, float16::of_bits(h.bits + 1)));
  CHECK(epsilon(DType::bfloat16) == step(b, bfloat16::of_bits(b.bits + 1)));
  CHECK(epsilon(DType::float32) == static_cast<double>(std::numeric_limits<float>::epsilon()));
  CHECK(epsilon(DType::float64) == std::numeric_limits<double>::epsilon());
  CHECK(max_finite(DType::float16) == static_cast<double>(float(float16::of_bits(0x7bff))));
  CHECK(max_finite(DType::bfloat16) == static_cast<double>(float(bfloat16::of_bits(0x7f7f))));
  CHECK(max_finite(DType::float32) == static_cast<double>(std::numeric_limits<float>::max()));
  CHECK(max_finite(DType::float64) == std::numeric_limits<double>::max());
  CHECK_THROWS_AS(epsilon(DType::int32), InternalError);
  CHECK_THROWS_AS(max_finite(DType::string), InternalError);
}

TEST_CASE("dtype: a set holds what was put in, and forgets what was taken out") {
  DTypeSet set{DType::float16, DType::qint32};
  for (DType dtype : all_dtypes()) {
    CHECK(set.contains(dtype) == (dtype == DType::float16 || dtype == DType::qint32));
  }
  set.erase(DType::float16);
  CHECK(set == DTypeSet{DType::qint32});
  CHECK((set | DTypeSet{DType::float32}) == DTypeSet{DType::float32, DType::qint32});
  set.erase(DType::qint32);
  CHECK(set.empty());
}

TEST_CASE("dispatch: each dtype meets its own storage type, foreign ones an error") {
  const DTypeSet known{DType::float32,
                       DType::float64,
                       DType::float16,
                       DType::bfloat16,
                       DType::int32,
                       DType::int64,
                       DType::uint8,
                       DType::boolean};
  for (DType dtype : all_dtypes()) {
    CAPTURE(name(dtype));
    const auto answer = []<class T>(Type<T>) { return dtype_of<T>(); };
    if (known.contains(dtype)) {
      CHECK(dispatch(dtype, answer) == dtype);
    } else {
      CHECK_THROWS_AS(dispatch(dtype, answer), InternalError);
    }
    if (is_floating(dtype)) {
      CHECK(dispatch_floating(dtype, answer) == dtype);
    } else {
      CHECK_THROWS_AS(dispatch_floating(dtype, answer), InternalError);
    }
  }
}

}  // namespace
}  // namespace halfstep
