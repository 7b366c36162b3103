#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>

#include "core/parallel.h"
#include "fixture.h"
#include "update_cases.h"

namespace halfstep::testing {
namespace {

using graph::Attrs;
using graph::Value;
using Element = UpdateElement;
using Case = UpdateCase;

/// The graph of one update whose scalars, gradient and `ok` can be rewritten between runs.
struct Update {
  Fixture fixture;
  std::vector<Value> handles, scalars;
  Value gradient, ok;

  Update(const Case& c, DType dtype, const Shape& shape, bool guarded = true) {
    std::vector<Value> inputs;
    for (int i = 0; i <= c.slots; ++i) {
      handles.push_back(
          fixture.variable("v" + std::to_string(i), initial_state(dtype, shape, c, i)));
      inputs.push_back(handles.back());
    }
    const auto add_scalars = [&](const std::vector<double>& all) {
      for (double value : all) {
        scalars.push_back(fixture.input(tensor(dtype, {}, {value})));
        inputs.push_back(scalars.back());
      }
    };
    add_scalars(c.before({}, 1));
    gradient = fixture.input(random_tensor(dtype, shape, 100));
    inputs.push_back(gradient);
    add_scalars(c.after({}, 1));
    if (guarded) {
      ok = fixture.input(tensor(DType::boolean, {}, {1}));
      inputs.push_back(ok);
    }
    fixture.b().add_node(c.op, inputs, c.attrs);
  }

  void step(const Case& c, int t) {
    std::vector<double> all = c.before({}, t);
    const std::vector<double> after = c.after({}, t);
    all.insert(all.end(), after.begin(), after.end());
    const DType dtype = fixture.held(gradient).dtype();
    for (std::size_t i = 0; i < all.size(); ++i) {
      fixture.held(scalars[i]) = tensor(dtype, {}, {all[i]});
    }
    fixture.held(gradient) =
        random_tensor(dtype, fixture.held(gradient).shape(), 100 + static_cast<unsigned>(t));
    fixture.run();
  }

  Element element(std::size_t i) {
    Element e;
    double* parts[] = {&e.w, &e.a, &e.b, &e.c};
    for (std::size_t h = 0; h < handles.size(); ++h) {
      *parts[h] = element_as_double(fixture.held(handles[h]).view(), static_cast<std::int64_t>(i));
    }
    return e;
  }
};

TEST_CASE("updates: each step is the formula in double, stored once") {
  const Shape shape{3, 5};
  for (const Case& c : update_cases()) {
    CAPTURE(c.name);
    for (const DType dtype : k_floating) {
      CAPTURE(name(dtype));
      Update update(c, dtype, shape);
      for (int t = 1; t <= 6; ++t) {
        CAPTURE(t);
        std::vector<Element> want;
        const Tensor g = random_tensor(dtype, shape, 100 + static_cast<unsigned>(t));
        for (std::size_t i = 0; i < 15; ++i) {
          want.push_back(c.step(
              update.element(i), element_as_double(g.view(), static_cast<std::int64_t>(i)), {}, t));
        }
        update.step(c, t);
        const double unit = epsilon(dtype == DType::float64 ? DType::float64 : DType::float32);
        for (std::size_t i = 0; i < 15; ++i) {
          const Element got = update.element(i);
          const double pairs[][2] = {
              {got.w, want[i].w}, {got.a, want[i].a}, {got.b, want[i].b}, {got.c, want[i].c}};
          for (const auto& [is, should] : pairs) {
            // About ten operations on numbers of size 1; beta to the power t is rounded to dtype
            // on its way in.
            const double powers = c.slots == 2 && is_half(dtype) ? 8 * epsilon(dtype) : 0;
            CAPTURE(should);
            CHECK(std::abs(is - should) <= rounding(dtype, should) + 64 * unit + powers);
          }
        }
      }
    }
  }
}

TEST_CASE("updates: with ok = false every byte stays as it is") {
  const Shape shape{7, 3};
  for (const Case& c : update_cases()) {
    CAPTURE(c.name);
    for (const DType dtype : k_floating) {
      CAPTURE(name(dtype));
      Update update(c, dtype, shape);
      update.fixture.held(update.ok) = tensor(DType::boolean, {}, {0});
      std::vector<Tensor> before;
      for (const Value& handle : update.handles) {
        before.push_back(update.fixture.held(handle).clone());
      }
      Tensor& g = update.fixture.held(update.gradient);
      g = tensor(dtype, shape, std::vector<double>(21, std::numeric_limits<double>::quiet_NaN()));
      update.fixture.run();
      for (std::size_t i = 0; i < before.size(); ++i) {
        const Tensor& after = update.fixture.held(update.handles[i]);
        CHECK(std::memcmp(after.view().data, before[i].view().data, after.bytes()) == 0);
      }
    }
  }
}

TEST_CASE("updates: without ok and with ok = true the same bits, on every number of threads") {
  const Shape shape{100'003};
  const int threads_before = thread_count();
  for (const Case& c : update_cases()) {
    CAPTURE(c.name);
    std::vector<std::vector<double>> first;
    for (int threads : {1, 2, 3}) {
      set_thread_count(threads);
      Update update(c, DType::float32, shape, threads != 2);
      update.step(c, 1);
      std::vector<std::vector<double>> got;
      for (const Value& handle : update.handles) got.push_back(values(update.fixture.held(handle)));
      if (first.empty()) first = got;
      CHECK(got == first);
    }
  }
  set_thread_count(threads_before);
}

TEST_CASE("updates: an unguarded NaN reaches the weight, and only its own element") {
  for (const Case& c : update_cases()) {
    CAPTURE(c.name);
    Update update(c, DType::float32, {9}, false);
    update.fixture.held(update.gradient).as<float>()[4] = std::numeric_limits<float>::quiet_NaN();
    update.fixture.run();
    for (std::size_t i = 0; i < 9; ++i) {
      CHECK(std::isnan(update.element(i).w) == (i == 4));
    }
  }
}

TEST_CASE("fused update: the same bits as widening, unscaling, the update, and packing after it") {
  const Shape shape{77, 4200};  // parts of blocks, and more columns than are packed at a time
  for (const backend::Backend& device : {backend::cpu_reference(), backend::cpu_backend(2)}) {
    CAPTURE(device.name);
    for (const Case& c : update_cases()) {
      CAPTURE(c.name);
      for (const DType dtype : {DType::bfloat16, DType::float16}) {
        CAPTURE(name(dtype));
        Fixture apart(device), fused(device);
        std::vector<Value> want, got;
        const Tensor gradient = random_tensor(dtype, shape, 100);
        const auto inputs = [&](Fixture& fixture, std::vector<Value>& handles, Value g) {
          for (int i = 0; i <= c.slots; ++i) {
            handles.push_back(fixture.variable("v" + std::to_string(i),
                                               initial_state(DType::float32, shape, c, i)));
          }
          std::vector<Value> all = handles;
          for (double x : c.before({}, 1)) all.push_back(fixture.b().scalar(DType::float32, x));
          all.push_back(g);
          for (double x : c.after({}, 1)) all.push_back(fixture.b().scalar(DType::float32, x));
          return all;
        };
        graph::Builder& b = apart.b();
        const Value factor = b.scalar(DType::float32, 0.375);
        const Value g = b.cast(apart.input(gradient.clone()), DType::float32);
        b.add_node(c.op, inputs(apart, want, b.add("Mul", {g, factor})), c.attrs);

        std::vector<Value> all = inputs(fused, got, fused.input(gradient.clone()));
        all.push_back(fused.b().scalar(DType::float32, 0.375));
        Attrs attrs = c.attrs;
        attrs.set("rule", c.op);
        attrs.set("packed", std::int64_t{2});
        std::vector<Value> packed;
        std::vector<Attrs> packings;
        for (const bool transpose : {false, true}) {
          packings.push_back(
              {{"dtype", dtype}, {"side", std::string("b")}, {"transpose", transpose}});
          packed.push_back(fused.b().add("PackedVariable", {got[0]}, packings.back()));
          all.push_back(packed.back());
        }
        fused.b().add_node("FusedUpdate", all, attrs);
        apart.run();
        fused.run();
        const auto same = [](const Tensor& x, const Tensor& y) {
          return x.bytes() == y.bytes() &&
                 std::memcmp(x.view().data, y.view().data, x.bytes()) == 0;
        };
        for (std::size_t i = 0; i < want.size(); ++i) {
          CHECK(same(apart.held(want[i]), fused.held(got[i])));
        }
        for (std::size_t i = 0; i < packed.size(); ++i) {
          Fixture after(device);
          const Value w = after.input(fused.held(got[0]).clone());
          CHECK(same(fused.result(packed[i]),
                     after.evaluate(after.b().add("PackOperand", {w}, packings[i]))));
        }
      }
    }
  }
}

TEST_CASE("centered rmsprop: a variance that rounds below zero counts as zero") {
  Fixture fixture;
  // The same gradient over and over: its mean square and squared mean differ by rounding alone.
  const auto scalar = [&](double x) { return fixture.b().scalar(DType::float32, x); };
  std::vector<Value> handles;
  for (double start : {1.0, 300.0, 89999.9921875, 0.0}) {
    handles.push_back(fixture.variable("v" + std::to_string(handles.size()),
                                       tensor(DType::float32, {1}, {start})));
  }
  fixture.b().add_node("ResourceApplyCenteredRMSProp",
                       {handles[0],
                        handles[1],
                        handles[2],
                        handles[3],
                        scalar(0.5),
                        scalar(0.9),
                        scalar(0),
                        scalar(1e-6),
                        fixture.input(tensor(DType::float32, {1}, {300}))});
  fixture.run();
  const double w = values(fixture.held(handles[0]))[0];
  CHECK(w == doctest::Approx(1 - 0.5 * 300 / std::sqrt(1e-6)).epsilon(1e-6));
}

TEST_CASE("updates: the average of a gradient that is zero ends at zero, not at a subnormal") {
  for (const bool reference : {true, false}) {
    CAPTURE(reference);
    Fixture fixture = reference ? Fixture() : Fixture(backend::cpu_backend(1));
    const auto scalar = [&](double x) { return fixture.b().scalar(DType::float32, x); };
    const Value w = fixture.variable("w", tensor(DType::float32, {1}, {1}));
    const Value average = fixture.variable("average", tensor(DType::float32, {1}, {1}));
    const Value gradient = fixture.input(Tensor(DType::float32, {1}));
    fixture.b().add_node("ResourceApplyKerasRMSProp",
                         {w, average, scalar(1e-3), scalar(0.9), scalar(1e-7), gradient});
    // 0.9^830 is the smallest normal number. With subnormal results 4 * 2^-149 would stay for ever,
    // as 0.9 of it rounds to it again.
    for (int i = 0; i < 1100; ++i) fixture.run();
    CHECK(values(fixture.held(average))[0] == 0);
    CHECK(values(fixture.held(w))[0] == 1);
    const volatile float smallest = std::numeric_limits<float>::min();
    CHECK(smallest / 2 > 0);  // other arithmetic of the thread is as before
  }
}

TEST_CASE("updates: a learning rate of 2^-14 moves a float32 weight of one") {
  Fixture fixture;
  const Value w = fixture.variable("w", tensor(DType::float32, {1}, {1}));
  fixture.b().add_node("ResourceApplyGradientDescent",
                       {w,
                        fixture.b().scalar(DType::float32, 0x1p-14),
                        fixture.input(tensor(DType::float32, {1}, {1}))});
  fixture.run();
  CHECK(values(fixture.held(w))[0] == 1 - 0x1p-14);
}

TEST_CASE("updates: shapes and dtypes that do not fit are refused") {
  Fixture fixture;
  const Value w = fixture.variable("w", Tensor(DType::float32, {3}));
  const Value half = fixture.variable("half", Tensor(DType::float16, {2}));
  const Value lr = fixture.b().scalar(DType::float32, 1);
  const Value g = fixture.input(Tensor(DType::float32, {2}));
  CHECK_THROWS_WITH_AS(fixture.b().add_node("ResourceApplyGradientDescent", {w, lr, g}),
                       doctest::Contains("variable 'var' is float32 [3], its gradient float32 [2]"),
                       UserError);
  CHECK_THROWS_AS(fixture.b().add_node("ResourceApplyGradientDescent", {half, lr, g}), UserError);
  const Value w2 = fixture.variable("w2", Tensor(DType::float32, {2}));
  CHECK_THROWS_WITH_AS(fixture.b().add_node("ResourceApplyGradientDescent", {w2, g, g}),
                       doctest::Contains("'alpha' must be one number, got shape [2]"),
                       UserError);
}

}  // namespace
}  // namespace halfstep::testing
