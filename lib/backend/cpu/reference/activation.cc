// Activations and their gradients, elementwise in float (double for float64), rounded once.
// Comparisons are written so that NaN propagates.

#include <cmath>

#include "backend/cpu/reference/elementwise.h"
#include "backend/cpu/reference/reference.h"

namespace halfstep::backend::cpu {
namespace {

// Klambauer et al., "Self-normalizing neural networks", NeurIPS 2017.
constexpr double k_selu_scale = 1.0507009873554804934193349852946;
constexpr double k_selu_scale_alpha = 1.7580993408473768599402175208123;

template <class F>
Kernel forward(std::string_view op, std::string_view name, F f) {
  return map_row<1, Domain::floating>(op, name, f);
}

template <class F>
Kernel backward(std::string_view op, std::string_view name, F f) {
  return map_row<2, Domain::floating>(op, name, f);
}

/// 1 / (1 + exp(-x)) without overflow on either side.
template <class C>
C sigmoid(C x) {
  const C e = std::exp(x < 0 ? x : -x);
  return (x < 0 ? e : C(1)) / (C(1) + e);
}

Prepared prepare_leaky_relu(const NodeView& node, const Capabilities&) {
  const double alpha = node.attrs().get<double>("alpha");
  return dispatch_floating(node.input(0).dtype, [&]<class T>(Type<T>) {
    const auto a = static_cast<Compute<T>>(alpha);
    return elementwise<T, T, 1>(node, [a](auto x) { return x > 0 ? x : a * x; });
  });
}

Prepared prepare_leaky_relu_grad(const NodeView& node, const Capabilities&) {
  const double alpha = node.attrs().get<double>("alpha");
  return dispatch_floating(node.input(0).dtype, [&]<class T>(Type<T>) {
    const auto a = static_cast<Compute<T>>(alpha);
    return elementwise<T, T, 2>(node, [a](auto dy, auto x) { return x > 0 ? dy : a * dy; });
  });
}

}  // namespace

std::vector<Kernel> activation_kernels() {
  return {
      forward("Elu", "reference/elu", [](auto x) { return x < 0 ? std::expm1(x) : x; }),
      backward("EluGrad",
               "reference/elu_grad",
               [](auto dy, auto y) { return y < 0 ? (y + 1) * dy : dy; }),
      {"LeakyRelu", "reference/leaky_relu", executable, prepare_leaky_relu, 0b1},
      {"LeakyReluGrad", "reference/leaky_relu_grad", executable, prepare_leaky_relu_grad, 0b11},
      map_row<1, Domain::number>(
          "Relu", "reference/relu", [](auto x) { return x < 0 ? decltype(x){} : x; }),
      map_row<1, Domain::number>("Relu6",
                                 "reference/relu6",
                                 [](auto x) {
                                   using C = decltype(x);
                                   return x < 0 ? C{} : (x > 6 ? C(6) : x);
                                 }),
      map_row<2, Domain::number>(
          "Relu6Grad",
          "reference/relu6_grad",
          [](auto dy, auto y) { return y > 0 && y < 6 ? dy : decltype(dy){}; }),
      map_row<2, Domain::number>("ReluGrad",
                                 "reference/relu_grad",
                                 [](auto dy, auto y) { return y > 0 ? dy : decltype(dy){}; }),
      forward("Selu",
              "reference/selu",
              [](auto x) {
                using C = decltype(x);
                return x < 0 ? C(k_selu_scale_alpha) * std::expm1(x) : C(k_selu_scale) * x;
              }),
      backward("SeluGrad",
               "reference/selu_grad",
               [](auto dy, auto y) {
                 using C = decltype(y);
                 return y < 0 ? dy * (y + C(k_selu_scale_alpha)) : dy * C(k_selu_scale);
               }),
      forward("Sigmoid", "reference/sigmoid", [](auto x) { return sigmoid(x); }),
      backward("SigmoidGrad",
               "reference/sigmoid_grad",
               [](auto y, auto dy) { return dy * y * (1 - y); }),
      forward(
          "Softplus",
          "reference/softplus",
          [](auto x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }),
      backward("SoftplusGrad",
               "reference/softplus_grad",
               [](auto dy, auto x) { return dy * sigmoid(x); }),
      forward("Softsign", "reference/softsign", [](auto x) { return x / (1 + std::abs(x)); }),
      backward("SoftsignGrad",
               "reference/softsign_grad",
               [](auto dy, auto x) {
                 const auto d = 1 + std::abs(x);
                 return dy / (d * d);
               }),
      forward("Tanh", "reference/tanh", [](auto x) { return std::tanh(x); }),
      backward("TanhGrad", "reference/tanh_grad", [](auto y, auto dy) { return dy * (1 - y * y); }),
  };
}

}  // namespace halfstep::backend::cpu
