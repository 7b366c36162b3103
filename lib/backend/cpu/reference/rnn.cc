// RNN and RNNGrad (graph/ops/recurrent.cc) sample by sample, all arithmetic in double, one rounding
// on store. h is rounded to T after each step, c to U. Bit-identical for every number of threads.

#include <algorithm>
#include <cmath>
#include <string>

#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "graph/ops/recurrent.h"

namespace halfstep::backend::cpu {
namespace {

using graph::ops::RnnGeometry;
using graph::ops::RnnMode;

/// An activation and its derivative as a function of the result.
struct Activation {
  double (*f)(double x);
  double (*slope)(double y);
};

double identity(double x) { return x; }
double relu(double x) { return x < 0 ? 0 : x; }
double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
double hyperbolic_tangent(double x) { return std::tanh(x); }

Activation activation(const NodeView& node, std::string_view attr) {
  const std::string& name = node.attrs().get<std::string>(attr);
  if (name == "Tanh") return {hyperbolic_tangent, [](double y) { return 1 - y * y; }};
  if (name == "Sigmoid") return {sigmoid, [](double y) { return y * (1 - y); }};
  if (name == "Relu") return {relu, [](double y) { return y > 0 ? 1.0 : 0.0; }};
  return {identity, [](double) { return 1.0; }};
}

/// Stores element `i`, rounded to T, and returns it as stored.
template <class T>
double put(T* to, std::int64_t i, double x) {
  to[i] = store<T>(x);
  return load_sum(to[i]);
}

struct Rnn {
  RnnGeometry g;
  Activation cell, gate;
  bool masked = false;
  std::size_t taken = 0;  ///< input number of the mask of time steps; 0: none

  bool takes(const Args& a, std::int64_t row) const {
    return taken == 0 || a.in[taken].as<bool>()[row];
  }
  /// Doubles of scratch of a sample: two rows of units and two of columns.
  std::int64_t scratch_size() const { return 2 * (g.units + g.columns()); }
  std::size_t workspace_bytes() const {
    return static_cast<std::size_t>(g.batch * scratch_size()) * sizeof(double);
  }
  double* scratch(const Args& a, std::int64_t sample) const {
    return reinterpret_cast<double*>(a.workspace) + sample * scratch_size();
  }
  std::int64_t grain() const { return 1 + k_grain / (1 + g.steps * g.units * g.columns()); }
};

/// The forward pass of one sample; scratch: h and the recurrent matmul's operand of units, r of
/// columns.
template <class T, class U>
void forward(const Rnn& p, const Args& a, std::int64_t sample, double* scratch) {
  const RnnGeometry& g = p.g;
  const std::int64_t n = g.units;
  double *h = scratch, *operand = h + n, *r = operand + n;
  const bool lstm = g.mode == RnnMode::lstm, reset_before = g.mode == RnnMode::gru_reset_before;
  const T* kernel = a.in[1].as<T>();
  const T* bias = a.in[2].as<T>();
  U* last_c = a.out[1].as<U>() + (lstm ? sample * n : 0);
  for (std::int64_t j = 0; j < n; ++j) {
    h[j] = load_sum(a.in[3].as<T>()[sample * n + j]);
    if (lstm) last_c[j] = a.in[4].as<U>()[sample * n + j];
  }
  for (std::int64_t step = 0; step < g.steps; ++step) {
    const std::int64_t row = sample * g.steps + g.position(step);
    const T* x = a.in[0].as<T>() + row * g.columns();
    T* gates = a.out[2].as<T>() + (g.training ? row * g.saved * n : 0);
    for (std::int64_t j = 0; j < g.columns(); ++j) r[j] = load_sum(bias[j]);
    for (std::int64_t k = 0; k < n; ++k) {
      double s = h[k];
      if (p.masked) s = load_sum(store<T>(s * load_sum(a.in[5].as<T>()[sample * n + k])));
      if (g.training) put(a.out[4].as<T>(), row * n + k, s);
      operand[k] = s;
      for (std::int64_t j = 0; j < g.state_columns(); ++j) {
        r[j] += s * load_sum(kernel[k * g.columns() + j]);
      }
    }
    const bool takes = p.takes(a, row);
    const auto z = [&](std::int64_t gate, std::int64_t j) {
      return load_sum(x[gate * n + j]) + r[gate * n + j];
    };
    const auto save = [&](std::int64_t gate, std::int64_t j, double y) {
      if (g.training) put(gates, gate * n + j, takes ? y : 0);
    };
    for (std::int64_t k = 0; reset_before && k < n; ++k) {
      r[n + k] = p.gate.f(z(1, k));
      operand[k] = load_sum(store<T>(r[n + k] * operand[k]));
      for (std::int64_t j = 2 * n; j < 3 * n; ++j) {
        r[j] += operand[k] * load_sum(kernel[k * g.columns() + j]);
      }
    }
    for (std::int64_t j = 0; j < n; ++j) {
      double y = 0;
      if (lstm) {
        const double in = p.gate.f(z(0, j)), forget = p.gate.f(z(1, j)), out = p.gate.f(z(3, j));
        const double candidate = p.cell.f(z(2, j));
        const double before = load_sum(last_c[j]);
        const double c = put(last_c, j, takes ? forget * before + in * candidate : before);
        y = out * p.cell.f(c);
        save(0, j, in);
        save(1, j, forget);
        save(2, j, candidate);
        save(3, j, out);
        if (g.training) put(a.out[3].as<U>(), row * n + j, c);
      } else if (g.is_gru()) {
        const double update = p.gate.f(z(0, j));
        const double reset = reset_before ? r[n + j] : p.gate.f(z(1, j));
        const double candidate =
            p.cell.f(load_sum(x[2 * n + j]) + (reset_before ? 1 : reset) * r[2 * n + j]);
        y = update * h[j] + (1 - update) * candidate;
        save(0, j, update);
        save(1, j, reset);
        save(2, j, candidate);
        save(3, j, reset_before ? operand[j] : r[2 * n + j]);
      } else {
        y = p.cell.f(z(0, j));
      }
      h[j] = put(a.out[0].as<T>(), row * n + j, takes ? y : h[j]);
    }
  }
}

/// The gradients of the gates of one sample at one time step. `dh` holds the gradient of h[t]; on
/// return that part of the gradient of h[t - 1] that bypasses the matmul. `dc`: the gradient of c
/// of an lstm; of a gru_reset_before that of the matmul's operand through the candidate.
template <class T, class U>
void gate_gradients(const Rnn& p,
                    const Args& a,
                    std::int64_t sample,
                    std::int64_t step,
                    double* dh,
                    double* dc,
                    double* dx,
                    double* dr) {
  const RnnGeometry& g = p.g;
  const std::int64_t n = g.units;
  const std::int64_t row = sample * g.steps + g.position(step);
  const std::int64_t before = sample * g.steps + g.position(step - 1);
  const T* gates = a.in[6].as<T>() + row * g.saved * n;
  const bool takes = p.takes(a, row);
  const bool reset_before = g.mode == RnnMode::gru_reset_before;
  if (!takes) {
    std::fill_n(dx, g.columns(), 0.0);
    std::fill_n(dr, g.columns(), 0.0);
    if (reset_before) std::fill_n(dc, n, 0.0);
  }
  for (std::int64_t j = 0; takes && j < n; ++j) {
    const auto gate = [&](std::int64_t i) -> double { return load_sum(gates[i * n + j]); };
    if (g.mode == RnnMode::lstm) {
      const double c = load_sum(a.in[7].as<U>()[row * n + j]);
      const double previous = step == 0 ? load_sum(a.in[4].as<U>()[sample * n + j])
                                        : load_sum(a.in[7].as<U>()[before * n + j]);
      const double y = p.cell.f(c);
      const double of_c = dc[j] + dh[j] * gate(3) * p.cell.slope(y);
      dx[j] = of_c * gate(2) * p.gate.slope(gate(0));
      dx[n + j] = of_c * previous * p.gate.slope(gate(1));
      dx[2 * n + j] = of_c * gate(0) * p.cell.slope(gate(2));
      dx[3 * n + j] = dh[j] * y * p.gate.slope(gate(3));
      dc[j] = of_c * gate(1);
      dh[j] = 0;
    } else if (g.is_gru()) {
      const double previous = step == 0 ? load_sum(a.in[3].as<T>()[sample * n + j])
                                        : load_sum(a.in[5].as<T>()[before * n + j]);
      const double candidate = dh[j] * (1 - gate(0)) * p.cell.slope(gate(2));
      dx[j] = dh[j] * (previous - gate(2)) * p.gate.slope(gate(0));
      dx[n + j] = reset_before ? 0 : candidate * gate(3) * p.gate.slope(gate(1));
      dx[2 * n + j] = candidate;
      dr[2 * n + j] = candidate * gate(1);
      dh[j] *= gate(0);
    } else {
      dx[j] = dh[j] * p.cell.slope(load_sum(a.in[5].as<T>()[row * n + j]));
      dh[j] = 0;
    }
  }
  const T* kernel = a.in[2].as<T>();
  for (std::int64_t k = 0; reset_before && takes && k < n; ++k) {
    double sum = 0;
    for (std::int64_t j = 2 * n; j < 3 * n; ++j) {
      sum += load_sum(store<T>(dx[j])) * load_sum(kernel[k * g.columns() + j]);
    }
    const double previous = step == 0 ? load_sum(a.in[3].as<T>()[sample * n + k])
                                      : load_sum(a.in[5].as<T>()[before * n + k]);
    const double mask = p.masked ? load_sum(a.in[8].as<T>()[sample * n + k]) : 1;
    const double reset = load_sum(gates[n + k]);
    dx[n + k] = sum * load_sum(store<T>(previous * mask)) * p.gate.slope(reset);
    dc[k] = sum * reset;
  }
  T* of_projections = a.out[0].as<T>() + row * g.columns();
  const std::int64_t shared = g.mode == RnnMode::gru ? 2 * n : g.columns();
  for (std::int64_t j = 0; j < g.columns(); ++j) {
    const double rounded = put(of_projections, j, dx[j]);
    if (j < shared) dr[j] = rounded;
    if (g.mode == RnnMode::gru) dr[j] = put(a.out[1].as<T>(), row * g.columns() + j, dr[j]);
  }
}

/// The backward pass of one sample; scratch: dh and dc of units, dx and dr of columns.
template <class T, class U>
void backward(const Rnn& p, const Args& a, std::int64_t sample, double* scratch) {
  const RnnGeometry& g = p.g;
  const std::int64_t n = g.units;
  const bool lstm = g.mode == RnnMode::lstm;
  const T* kernel = a.in[2].as<T>();
  double *dh = scratch, *dc = dh + n, *dx = dc + n, *dr = dx + g.columns();
  for (std::int64_t j = 0; j < n; ++j) {
    dh[j] = 0;
    dc[j] = lstm ? load_sum(a.in[1].as<U>()[sample * n + j]) : 0;
  }
  for (std::int64_t step = g.steps; step-- > 0;) {
    const std::int64_t row = sample * g.steps + g.position(step);
    for (std::int64_t j = 0; j < n; ++j) dh[j] += load_sum(a.in[0].as<T>()[row * n + j]);
    gate_gradients<T, U>(p, a, sample, step, dh, dc, dx, dr);
    for (std::int64_t k = 0; k < n; ++k) {
      double sum = g.mode == RnnMode::gru_reset_before ? dc[k] : 0;
      for (std::int64_t j = 0; j < g.state_columns(); ++j) {
        sum += dr[j] * load_sum(kernel[k * g.columns() + j]);
      }
      dh[k] += p.masked ? sum * load_sum(a.in[8].as<T>()[sample * n + k]) : sum;
    }
  }
  for (std::int64_t j = 0; j < n; ++j) {
    put(a.out[2].as<T>(), sample * n + j, dh[j]);
    if (lstm) put(a.out[3].as<U>(), sample * n + j, dc[j]);
  }
}

/// `mask`: number of the optional input of that name, followed by `taken`.
Rnn rnn_of(const NodeView& node, const RnnGeometry& g, std::size_t mask) {
  return {g,
          activation(node, "activation"),
          activation(node, "recurrent_activation"),
          node.inputs() > mask,
          node.inputs() > mask + 1 ? mask + 1 : 0};
}

/// run(Type<T>, Type<U>, p, args, i, scratch) for each sample i; T: of the values, U: of the sums.
template <class Run>
Prepared each_sample(const NodeView& node, const Rnn& p, const Run& run) {
  return dispatch_with_sums(
      node.input(0).dtype, node.input(4).dtype, [&]<class T, class U>(Type<T> t, Type<U> u) {
        return launch(
            [=](const Args& a) {
              parallel_for_each(p.g.batch, p.grain(), [&](std::int64_t i) {
                run(t, u, p, a, i, p.scratch(a, i));
              });
            },
            p.workspace_bytes());
      });
}

Prepared prepare_rnn(const NodeView& node, const Capabilities&) {
  const Rnn p = rnn_of(node, graph::ops::rnn_geometry(node.attrs(), node.input(0).shape), 5);
  return each_sample(node, p, []<class T, class U>(Type<T>, Type<U>, const auto&... args) {
    forward<T, U>(args...);
  });
}

Prepared prepare_rnn_grad(const NodeView& node, const Capabilities&) {
  const Rnn p = rnn_of(node, graph::ops::rnn_grad_geometry(node.attrs(), node.input(0).shape), 8);
  return each_sample(node, p, []<class T, class U>(Type<T>, Type<U>, const auto&... args) {
    backward<T, U>(args...);
  });
}

}  // namespace

std::vector<Kernel> rnn_kernels() {
  return {
      {"RNN", "reference/rnn", executable, prepare_rnn},
      {"RNNGrad", "reference/rnn_grad", executable, prepare_rnn_grad},
  };
}

}  // namespace halfstep::backend::cpu
