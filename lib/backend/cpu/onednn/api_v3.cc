// oneDNN 3: a primitive descriptor is constructed from its arguments.

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "backend/cpu/onednn/api.h"
#include "backend/cpu/onednn/program.h"

namespace halfstep::backend::cpu::onednn {

using dnnl::algorithm;

namespace {

/// The implementation, or the next one whose name does not contain all of `parts`.
template <class PrimitiveDesc>
PrimitiveDesc without(std::initializer_list<std::string_view> parts, PrimitiveDesc how) {
  const auto named_so = [&] {
    const std::string name = how.impl_info_str();
    return std::all_of(parts.begin(), parts.end(), [&](std::string_view part) {
      return name.find(part) != std::string::npos;
    });
  };
  while (named_so() && how.next_impl()) {
  }
  return how;
}

/// Another implementation in place of brgemm with AMX, where that runs past `terms` consecutive
/// bfloat16 values: oneDNN 3.7 extends sums to a multiple of 32 terms and multiplies the values
/// that follow, of the next row or pixel, by zero. That is NaN for an infinity or NaN there.
template <class PrimitiveDesc>
PrimitiveDesc without_overread(dnnl::memory::dim terms,
                               const dnnl::memory::desc& operand,
                               PrimitiveDesc how) {
  constexpr dnnl::memory::dim k_extended_to = 32;
  if (operand.get_data_type() != dnnl::memory::data_type::bf16) return how;
  if (terms < k_extended_to || terms % k_extended_to == 0) return how;
  return without({"brg", "amx"}, std::move(how));
}

/// Another implementation in place of brgemm for a result that is one column wide, with a stride
/// between columns: oneDNN 3.7 computes the first row of each such image, and takes the wrong rows
/// of the operand for the others.
template <class PrimitiveDesc>
PrimitiveDesc without_strided_column(const ConvDescs& t, const ConvWindow& w, PrimitiveDesc how) {
  const bool strided_column = t.y.get_dims()[3] == 1 && w.strides[1] > 1;
  return strided_column ? without({"brg"}, std::move(how)) : how;
}

/// Whether each pixel of the result is a sum over one pixel of the operand.
bool is_pointwise(const ConvDescs& t) {
  const dnnl::memory::dims w = t.w.get_dims();
  return w[w.size() - 1] == 1 && w[w.size() - 2] == 1;
}

}  // namespace

dnnl::convolution_forward::primitive_desc convolution_forward(const ConvDescs& t,
                                                              const ConvWindow& w) {
  dnnl::convolution_forward::primitive_desc how(engine(),
                                                dnnl::prop_kind::forward_training,
                                                algorithm::convolution_direct,
                                                t.x,
                                                t.w,
                                                t.bias,
                                                t.y,
                                                w.strides,
                                                w.dilations,
                                                w.before,
                                                w.after,
                                                attributes());
  if (is_pointwise(t)) how = without_overread(t.x.get_dims()[1], t.x, std::move(how));
  return without_strided_column(t, w, std::move(how));
}

dnnl::convolution_backward_data::primitive_desc convolution_backward_data(
    const ConvDescs& t,
    const ConvWindow& w,
    const dnnl::convolution_forward::primitive_desc& forward) {
  dnnl::convolution_backward_data::primitive_desc how(engine(),
                                                      algorithm::convolution_direct,
                                                      t.x,
                                                      t.w,
                                                      t.y,
                                                      w.strides,
                                                      w.dilations,
                                                      w.before,
                                                      w.after,
                                                      forward,
                                                      attributes());
  return is_pointwise(t) ? without_overread(t.y.get_dims()[1], t.y, std::move(how)) : how;
}

dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(
    const ConvDescs& t,
    const ConvWindow& w,
    const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine(),
          algorithm::convolution_direct,
          t.x,
          t.w,
          t.y,
          w.strides,
          w.dilations,
          w.before,
          w.after,
          forward,
          attributes()};
}

dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine,
                                    const dnnl::memory::desc& a,
                                    const dnnl::memory::desc& b,
                                    const dnnl::memory::desc& y,
                                    const dnnl::primitive_attr& attributes) {
  dnnl::matmul::primitive_desc how(engine, a, b, y, attributes);
  // The rows of a transposed operand are not contiguous, and are copied.
  const bool rows =
      a.get_format_kind() == dnnl::memory::format_kind::blocked && a.get_strides().back() == 1;
  return rows ? without_overread(a.get_dims().back(), a, std::move(how)) : how;
}

dnnl::cpu_isa unlimited_isa() { return dnnl::cpu_isa::isa_default; }

}  // namespace halfstep::backend::cpu::onednn
