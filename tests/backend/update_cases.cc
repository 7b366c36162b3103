#include "update_cases.h"

#include <cmath>

#include "fixture.h"

namespace halfstep::testing {
namespace {

using Element = UpdateElement;
using Hyper = UpdateNumbers;

std::vector<double> none(const Hyper&, int) { return {}; }

std::vector<double> adam_scalars(const Hyper& h, int t) {
  return {std::pow(h.beta1, t), std::pow(h.beta2, t), h.lr, h.beta1, h.beta2, h.epsilon};
}

Element adam(Element e, double g, const Hyper& h, int t, bool nesterov) {
  const double m = h.beta1 * e.a + (1 - h.beta1) * g;
  const double v = h.beta2 * e.b + (1 - h.beta2) * g * g;
  const double alpha = h.lr * std::sqrt(1 - std::pow(h.beta2, t)) / (1 - std::pow(h.beta1, t));
  const double direction = nesterov ? h.beta1 * m + (1 - h.beta1) * g : m;
  return {e.w - alpha * direction / (std::sqrt(v) + h.epsilon), m, v};
}

/// The update of each op without the attribute that all of them have.
std::vector<UpdateCase> rules() {
  return {
      {"sgd",
       "ResourceApplyGradientDescent",
       0,
       [](const Hyper& h, int) { return std::vector<double>{h.lr}; },
       none,
       [](Element e, double g, const Hyper& h, int) { return Element{e.w - h.lr * g}; }},
      {"momentum",
       "ResourceApplyKerasMomentum",
       1,
       [](const Hyper& h, int) { return std::vector<double>{h.lr}; },
       [](const Hyper& h, int) { return std::vector<double>{h.momentum}; },
       [](Element e, double g, const Hyper& h, int) {
         const double a = h.momentum * e.a - h.lr * g;
         return Element{e.w + a, a};
       }},
      {"nesterov",
       "ResourceApplyKerasMomentum",
       1,
       [](const Hyper& h, int) { return std::vector<double>{h.lr}; },
       [](const Hyper& h, int) { return std::vector<double>{h.momentum}; },
       [](Element e, double g, const Hyper& h, int) {
         const double a = h.momentum * e.a - h.lr * g;
         return Element{e.w + h.momentum * a - h.lr * g, a};
       },
       {{"use_nesterov", true}}},
      {"rmsprop",
       "ResourceApplyKerasRMSProp",
       1,
       [](const Hyper& h, int) {
         return std::vector<double>{h.lr, h.rho, h.epsilon};
       },
       none,
       [](Element e, double g, const Hyper& h, int) {
         const double s = h.rho * e.a + (1 - h.rho) * g * g;
         return Element{e.w - h.lr * g / std::sqrt(s + h.epsilon), s};
       }},
      {"rmsprop with momentum",
       "ResourceApplyRMSProp",
       2,
       [](const Hyper& h, int) {
         return std::vector<double>{h.lr, h.rho, h.momentum, h.epsilon};
       },
       none,
       [](Element e, double g, const Hyper& h, int) {
         const double s = h.rho * e.a + (1 - h.rho) * g * g;
         const double m = h.momentum * e.b + h.lr * g / std::sqrt(s + h.epsilon);
         return Element{e.w - m, s, m};
       }},
      {"centered rmsprop",
       "ResourceApplyCenteredRMSProp",
       3,
       [](const Hyper& h, int) {
         return std::vector<double>{h.lr, h.rho, h.momentum, h.epsilon};
       },
       none,
       [](Element e, double g, const Hyper& h, int) {
         const double mean = h.rho * e.a + (1 - h.rho) * g;
         const double s = h.rho * e.b + (1 - h.rho) * g * g;
         const double m = h.momentum * e.c + h.lr * g / std::sqrt(s - mean * mean + h.epsilon);
         return Element{e.w - m, mean, s, m};
       }},
      {"adam",
       "ResourceApplyAdam",
       2,
       adam_scalars,
       none,
       [](Element e, double g, const Hyper& h, int t) { return adam(e, g, h, t, false); }},
      {"adam with nesterov",
       "ResourceApplyAdam",
       2,
       adam_scalars,
       none,
       [](Element e, double g, const Hyper& h, int t) { return adam(e, g, h, t, true); },
       {{"use_nesterov", true}}},
      {"adamw",
       "ResourceApplyAdamW",
       2,
       [](const Hyper& h, int t) {
         std::vector<double> all = adam_scalars(h, t);
         all.insert(all.begin() + 3, h.decay);
         return all;
       },
       none,
       [](Element e, double g, const Hyper& h, int t) {
         e.w -= e.w * h.decay * h.lr;
         return adam(e, g, h, t, false);
       }},
      {"adagrad",
       "ResourceApplyAdagradV2",
       1,
       [](const Hyper& h, int) {
         return std::vector<double>{h.lr, h.epsilon};
       },
       none,
       [](Element e, double g, const Hyper& h, int) {
         const double a = e.a + g * g;
         return Element{e.w - h.lr * g / std::sqrt(a + h.epsilon), a};
       }},
      {"adagrad with fixed slots",
       "ResourceApplyAdagradV2",
       1,
       [](const Hyper& h, int) {
         return std::vector<double>{h.lr, h.epsilon};
       },
       none,
       [](Element e, double g, const Hyper& h, int) {
         return Element{e.w - h.lr * g / std::sqrt(e.a + h.epsilon), e.a};
       },
       {{"update_slots", false}}},
  };
}

}  // namespace

std::vector<UpdateCase> update_cases() {
  std::vector<UpdateCase> cases = rules();
  const std::size_t plain = cases.size();
  for (std::size_t i = 0; i < plain; ++i) {
    UpdateCase decayed = cases[i];
    decayed.name += ", weight decay";
    decayed.attrs.set("weight_decay", UpdateNumbers().decay);
    decayed.step = [step = cases[i].step](Element e, double g, const Hyper& h, int t) {
      e.w -= e.w * h.decay * h.lr;
      return step(e, g, h, t);
    };
    cases.push_back(std::move(decayed));
  }
  return cases;
}

Tensor initial_state(DType dtype, const Shape& shape, const UpdateCase& c, int handle) {
  if (handle == 0) return random_tensor(dtype, shape, 1);
  const bool centered = c.slots == 3;
  if (centered && handle == 1) return random_tensor(dtype, shape, 2, -0.25, 0.25);
  return random_tensor(dtype, shape, 2 + static_cast<unsigned>(handle), 0.5, 1);
}

}  // namespace halfstep::testing
