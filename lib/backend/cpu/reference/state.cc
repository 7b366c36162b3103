// Casts, variable updates, and ops that pass their input on unchanged.
// Cast: to floats rounds once, to nearest even; to integers truncates and saturates, NaN gives 0;
// to bool is x != 0.

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"

namespace halfstep::backend::cpu {
namespace {

template <class To, class From>
To cast_element(From x) {
  const Compute<From> value = load(x);
  if constexpr (std::is_same_v<To, bool>) {
    return value != Compute<From>{};
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<Compute<From>>) {
    const double wide = static_cast<double>(value);
    if (std::isnan(wide)) return 0;
    if (wide >= static_cast<double>(std::numeric_limits<To>::max())) {
      return std::numeric_limits<To>::max();
    }
    if (wide <= static_cast<double>(std::numeric_limits<To>::min())) {
      return std::numeric_limits<To>::min();
    }
    return static_cast<To>(wide);
  } else {
    return store<To>(value);
  }
}

Prepared prepare_cast(const NodeView& node, const Capabilities&) {
  return dispatch(node.input(0).dtype, [&]<class From>(Type<From>) {
    return dispatch(node.output().dtype, [&]<class To>(Type<To>) {
      return launch([n = node.output().shape.elements()](const Args& args) {
        const From* x = args.in[0].as<From>();
        To* y = args.out[0].as<To>();
        parallel_for_each(n, k_grain, [&](std::int64_t i) { y[i] = cast_element<To>(x[i]); });
      });
    });
  });
}

/// False when the optional `ok` input is false.
bool allowed(const Args& args) { return args.in.size() < 3 || *args.in[2].as<bool>(); }

Prepared prepare_assign(const NodeView&, const Capabilities&) {
  return launch([](const Args& args) {
    if (!allowed(args) || args.in[1].bytes() == 0) return;
    std::memcpy(args.in[0].data, args.in[1].data, args.in[1].bytes());
  });
}

Prepared prepare_assign_add(const NodeView& node, const Capabilities&) {
  return dispatch_number(node.input(1).dtype, [&]<class T>(Type<T>) {
    return launch([](const Args& args) {
      if (!allowed(args)) return;
      T* x = args.in[0].as<T>();
      const T* dx = args.in[1].as<T>();
      for (std::int64_t i = 0; i < args.in[1].elements(); ++i)
        x[i] = store<T>(load(x[i]) + load(dx[i]));
    });
  });
}

Accepts value_is_number(const NodeView& node, const Capabilities&) {
  return node.input(1).dtype == DType::boolean ? Accepts::no("bool cannot be added to")
                                               : Accepts::yes();
}

Prepared prepare_moving_averages(const NodeView& node, const Capabilities&) {
  const auto momentum = node.attrs().get<std::vector<double>>("momentum");
  const auto share = node.attrs().get<std::vector<double>>("share");
  return launch([=](const Args& a) {
    const std::size_t n = momentum.size();
    if (a.in.size() > 2 * n && !*a.in[2 * n].as<bool>()) return;
    for (std::size_t t = 0; t < n; ++t) {
      auto* average = a.in[t].as<float>();
      const auto* value = a.in[n + t].as<float>();
      for (std::int64_t i = 0; i < a.in[t].elements(); ++i) {
        average[i] =
            average[i] * static_cast<float>(momentum[t]) + value[i] * static_cast<float>(share[t]);
      }
    }
  });
}

}  // namespace

std::vector<Kernel> state_kernels() {
  return {
      {"AssignAddVariableOp", "reference/assign_add_variable", value_is_number, prepare_assign_add},
      {.op = "MovingAverages",
       .name = "reference/moving_averages",
       .prepare = prepare_moving_averages},
      {.op = "AssignVariableOp", .name = "reference/assign_variable", .prepare = prepare_assign},
      {"Cast", "reference/cast", executable, prepare_cast},
      {.op = "Identity", .name = "reference/identity"},
  };
}

}  // namespace halfstep::backend::cpu
