// Random convolutions on every kernel against the reference in double, bit for bit over batch sizes
// and repeats, and with operands that are not finite. HALFSTEP_MAX_ISA limits the instruction sets
// of a process that runs these tests alone.

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include "backend/cpu/kernels.h"
#include "backend/cpu/packed/conv.h"
#include "core/philox.h"
#include "fixture.h"
#include "graph/ops/window.h"
#include "support/evaluate.h"
#include "support/kernels.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using backend::Isa;
using backend::Kernel;
using graph::ops::ConvGeometry;
using graph::ops::WindowAxis;
using Ints = std::vector<std::int64_t>;

constexpr DType k_dtypes[] = {DType::float32, DType::bfloat16, DType::float16};

Isa max_isa() {
  const char* word = std::getenv("HALFSTEP_MAX_ISA");
  return word == nullptr ? Isa::amx : backend::isa_named(word).value();
}

// --- random cases --------------------------------------------------------------------------------

struct Dice : RandomStream {
  using RandomStream::RandomStream;
  std::int64_t from(std::int64_t low, std::int64_t high) {  // both included
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool one_in(std::int64_t n) { return from(1, n) == 1; }
};

struct RandomConv {
  Shape x, filter;
  graph::Attrs attrs;
  bool depthwise = false;
  ConvGeometry g;
};

/// Channels near the sizes at which kernels change over, or any.
std::int64_t random_channels(Dice& dice) {
  constexpr std::int64_t k_usual[] = {1, 1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 33, 64, 65, 128, 130};
  return dice.one_in(3) ? dice.from(1, 130) : k_usual[dice.from(0, std::ssize(k_usual) - 1)];
}

/// At most `most` products of two numbers.
RandomConv random_conv(Dice& dice, double most) {
  for (;;) {
    RandomConv c;
    const Ints size{dice.from(1, 5), dice.from(1, 5)};
    const Ints strides{dice.from(1, 3), dice.from(1, 3)};
    const Ints dilations{dice.one_in(3) ? dice.from(1, 3) : 1,
                         dice.one_in(3) ? dice.from(1, 3) : 1};
    const std::int64_t padding = dice.from(0, 2);
    Ints image{dice.from(1, 19), dice.from(1, 19)};
    c.attrs = {{"strides", Ints{1, strides[0], strides[1], 1}},
               {"dilations", Ints{1, dilations[0], dilations[1], 1}},
               {"padding",
                std::string(padding == 0   ? "SAME"
                            : padding == 1 ? "VALID"
                                           : "EXPLICIT")}};
    Ints around(4, 0);
    if (padding == 2) {
      for (std::int64_t& p : around) p = dice.from(0, 6);
      c.attrs.set("explicit_paddings",
                  Ints{0, 0, around[0], around[1], around[2], around[3], 0, 0});
    }
    for (std::size_t i = 0; i < 2 && padding != 0; ++i) {
      const std::int64_t extent = (size[i] - 1) * dilations[i] + 1;
      image[i] = std::max(image[i], extent - around[2 * i] - around[2 * i + 1]);
    }
    std::int64_t inputs = random_channels(dice), outputs = random_channels(dice);
    std::int64_t group_inputs = inputs;
    if (dice.one_in(5)) {
      c.depthwise = true;
      outputs = dice.from(1, 3);
    } else if (dice.one_in(5)) {
      const std::int64_t groups = dice.from(2, 5);
      group_inputs = inputs = std::max<std::int64_t>(1, inputs / groups);
      inputs *= groups;
      outputs = std::max<std::int64_t>(1, outputs / groups) * groups;
    }
    c.x = {dice.from(1, 5), image[0], image[1], inputs};
    c.filter = {size[0], size[1], group_inputs, outputs};
    c.g = c.depthwise ? graph::ops::depthwise_geometry(c.attrs, c.x, c.filter)
                      : graph::ops::conv_geometry(c.attrs, c.x, c.filter);
    const double products = static_cast<double>(c.g.y_shape().elements()) *
                            static_cast<double>(size[0] * size[1] * c.g.group_inputs);
    if (products <= most) return c;
  }
}

constexpr std::string_view k_suffixes[] = {"", "Bias", "BackpropInput", "BackpropFilter"};

std::string op_of(const RandomConv& c, std::string_view suffix) {
  return (c.depthwise ? "DepthwiseConv2dNative" : "Conv2D") + std::string(suffix);
}

/// The op over operands whose elements depend on `name`.
OpCase case_of(const RandomConv& c, std::string_view suffix, std::int64_t float16_products) {
  OpCase result;
  result.op = op_of(c, suffix);
  result.attrs = c.attrs;
  if (!c.depthwise) result.attrs.set("float16_products", float16_products);
  const auto sizes = [](const Shape& s) { return ints(Ints(s.begin(), s.end())); };
  const Shape y = c.g.y_shape();
  const std::int64_t taps = c.filter[0] * c.filter[1];
  if (suffix == "BackpropInput") {
    result.inputs = {sizes(c.x), uniform(c.filter), uniform(y)};
    result.terms = taps * c.g.group_outputs;
  } else if (suffix == "BackpropFilter") {
    result.inputs = {uniform(c.x), sizes(c.filter), uniform(y)};
    result.terms = y[0] * y[1] * y[2];
  } else {
    result.inputs = {uniform(c.x), uniform(c.filter)};
    result.terms = taps * c.g.group_inputs;
    if (suffix == "Bias") {
      result.inputs.push_back(uniform({y[3]}));
      ++result.terms;
    }
  }
  const auto& strides = c.attrs.get<Ints>("strides");
  const auto& dilations = c.attrs.get<Ints>("dilations");
  result.name =
      fmt::format("{} x {} filter {} strides {} {} dilations {} {} {} before {} {} after {} {} x{}",
                  result.op,
                  to_string(c.x),
                  to_string(c.filter),
                  strides[1],
                  strides[2],
                  dilations[1],
                  dilations[2],
                  c.attrs.get<std::string>("padding"),
                  c.g.window.height.pad_before,
                  c.g.window.width.pad_before,
                  c.g.window.height.pad_after,
                  c.g.window.width.pad_after,
                  float16_products);
  return result;
}

// --- kernels -------------------------------------------------------------------------------------

Isa needed_isa(const Kernel& kernel) {
  return kernel.name.find("amx") != std::string_view::npos ? Isa::amx : Isa::avx512;
}
bool is_amx(const Kernel& kernel) { return kernel.name.starts_with("packed/conv amx"); }

/// Whether the kernel can run the node: rules that only choose the faster kernel do not count.
bool can_run(const Kernel& kernel,
             const BuiltCase& built,
             const backend::Capabilities& capabilities) {
  const backend::NodeView node{built.graph, built.graph.node(built.node)};
  if (kernel.op != node.node.op) return false;
  if (!is_amx(kernel) && !is_direct(kernel)) return bool(kernel.accepts(node, capabilities));
  if (capabilities.isa < needed_isa(kernel)) return false;
  if (is_direct(kernel)) return bool(backend::cpu::packed::accepts_direct(node));
  const DType dtype = kernel.name.ends_with("by halves") ? DType::float16 : DType::bfloat16;
  return node.output().dtype == dtype && bool(backend::cpu::packed::accepts_conv(node));
}

std::vector<Kernel> conv_kernels() {
  std::vector<Kernel> kernels;
  for (const Kernel& kernel : backend::cpu::all_kernels()) {
    if (!kernel.reference && kernel.op.find("Conv2") != std::string_view::npos) {
      kernels.push_back(kernel);
    }
  }
  return kernels;
}

std::vector<Kernel> packed_conv_kernels() {
  std::vector<Kernel> kernels;
  for (const Kernel& kernel : backend::cpu::packed_kernels()) {
    if (is_amx(kernel) || is_direct(kernel)) kernels.push_back(kernel);
  }
  return kernels;
}

Tensor run_on(const Kernel& kernel, const backend::Capabilities& capabilities, BuiltCase& built) {
  Kernel all = kernel;
  all.accepts = nullptr;  // can_run() has checked it
  return std::move(OneKernel(all, capabilities).run(built)[0]);
}

Tensor& operand(BuiltCase& built, std::size_t port) {
  return built.feeds.at(built.graph.node(built.inputs[port].node).name);
}

/// The op in double of operands rounded to `dtype`, and the sums of the terms' magnitudes.
struct Truth {
  Tensor value, magnitude;

  Truth(const OpCase& c, DType dtype) {
    BuiltCase wide = build(c, DType::float64, dtype);
    value = std::move(run(wide, backend::cpu_reference())[0]);
    for (auto& [name, tensor] : wide.feeds) {
      for (double& x : tensor.span<double>()) x = std::abs(x);
    }
    magnitude = std::move(run(wide, backend::cpu_reference())[0]);
  }
};

/// One rounding on store, one float32 rounding per term, and the error of x3: a low part is at most
/// 2^-9 of its value, so low times low is at most 2^-18 of the result; so is the error of a low
/// part that is rounded itself.
std::string misses(const Tensor& got,
                   const Truth& want,
                   std::int64_t terms,
                   std::int64_t products) {
  const double relative = static_cast<double>((terms + 1) * products) * epsilon(DType::float32) +
                          (products == 3 ? 0x1p-17 : 0);
  std::string text;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double w = want.value.as<double>()[i], g = element_as_double(got.view(), i);
    const double allowed = tolerance(got.dtype(), DType::float32, 0, 0, w) +
                           relative * (1 + epsilon(got.dtype())) * want.magnitude.as<double>()[i];
    if (std::abs(g - w) <= allowed) continue;
    if (++count <= 3) text += fmt::format("  {}: got {}, want {}, allowed {}\n", i, g, w, allowed);
  }
  return count == 0 ? "" : fmt::format("{} of {} missed\n{}", count, got.elements(), text);
}

// --- tests ---------------------------------------------------------------------------------------

/// `count` random nodes, each on every kernel that can run it; returns how many runs of each family
/// of kernels that were: packed on AMX, packed in float32, oneDNN.
struct Runs {
  int amx = 0, direct = 0, onednn = 0;
};
Runs check_random(std::uint64_t seed, int count, double most) {
  Dice dice(seed, 0);
  Runs runs;
  for (int i = 0; i < count; ++i) {
    const RandomConv conv = random_conv(dice, most);
    const DType dtype = k_dtypes[dice.from(0, 2)];
    const std::string_view suffix = k_suffixes[dice.from(0, 3)];
    if (conv.depthwise && suffix == "Bias") continue;
    const std::int64_t products = dtype == DType::float16 && !conv.depthwise ? dice.from(3, 4) : 3;
    const OpCase c = case_of(conv, suffix, products);
    const auto threads = static_cast<int>(dice.from(1, 4));
    const backend::Backend cpu = backend::cpu_backend(threads, max_isa());
    std::optional<Truth> want;
    for (const Kernel& kernel : conv_kernels()) {
      for (Isa isa = Isa::baseline; isa <= cpu.capabilities.isa;
           isa = static_cast<Isa>(static_cast<int>(isa) + 1)) {
        backend::Capabilities capabilities = cpu.capabilities;
        capabilities.isa = isa;
        const bool packed = is_amx(kernel) || is_direct(kernel);
        // oneDNN keeps to the process's instruction set.
        if (!packed && isa != cpu.capabilities.isa) continue;
        BuiltCase narrow = build(c, dtype);
        if (!can_run(kernel, narrow, capabilities)) continue;
        CAPTURE(c.name);
        CAPTURE(kernel.name);
        CAPTURE(name(dtype));
        CAPTURE(name(isa));
        CAPTURE(threads);
        if (!want) want.emplace(c, dtype);
        const bool halves = kernel.name.ends_with("by halves");
        const Tensor got = run_on(kernel, capabilities, narrow);
        const std::string text = misses(got, *want, c.terms, halves ? products : 1);
        CHECK_MESSAGE(text.empty(), text);
        // The same bits again: nothing is read that was not written.
        const Tensor again = run_on(kernel, capabilities, narrow);
        const Comparison same = compare_bits(again.view(), got.view());
        CHECK_MESSAGE(same, same.text);
        ++(is_amx(kernel) ? runs.amx : is_direct(kernel) ? runs.direct : runs.onednn);
      }
    }
  }
  backend::cpu_backend(2, max_isa());
  return runs;
}

TEST_CASE("conv: random convolutions on every kernel agree with the reference") {
  const Runs runs = check_random(1, 80, 4e5);
  const Isa isa = backend::cpu_backend(2, max_isa()).capabilities.isa;
  CHECK(runs.onednn > 30);
  if (isa >= Isa::amx) CHECK(runs.amx > 15);
  if (isa >= Isa::avx512) CHECK(runs.direct > 3);
}

// oneDNN copies the operand of a strided filter of one tap to one without strides, into its
// workspace.
TEST_CASE("conv: strided filters of one tap on every kernel agree with the reference") {
  const backend::Backend cpu = backend::cpu_backend(2, max_isa());
  for (const Ints& strides :
       {Ints{1, 2}, Ints{1, 3}, Ints{2, 1}, Ints{3, 1}, Ints{2, 2}, Ints{3, 2}}) {
    for (const Ints& image :
         {Ints{1, 6}, Ints{1, 7}, Ints{3, 5}, Ints{10, 6}, Ints{19, 3}, Ints{4, 32}}) {
      for (const Ints& channels :
           {Ints{1, 3}, Ints{2, 33}, Ints{5, 8}, Ints{8, 8}, Ints{9, 9}, Ints{16, 40}}) {
        for (const std::string_view suffix : k_suffixes) {
          RandomConv c;
          c.attrs = {{"strides", Ints{1, strides[0], strides[1], 1}},
                     {"dilations", Ints{1, 1, 1, 1}},
                     {"padding", std::string("VALID")}};
          c.x = {3, image[0], image[1], channels[0]};
          c.filter = {1, 1, channels[0], channels[1]};
          c.g = graph::ops::conv_geometry(c.attrs, c.x, c.filter);
          const OpCase of = case_of(c, suffix, 3);
          CAPTURE(of.name);
          const Truth want(of, DType::float32);
          for (const Kernel& kernel : conv_kernels()) {
            BuiltCase built = build(of, DType::float32);
            if (!can_run(kernel, built, cpu.capabilities)) continue;
            CAPTURE(kernel.name);
            const std::string text =
                misses(run_on(kernel, cpu.capabilities, built), want, of.terms, 1);
            CHECK_MESSAGE(text.empty(), text);
          }
        }
      }
    }
  }
}

TEST_CASE("conv: many random convolutions on every kernel agree with the reference" *
          doctest::test_suite("slow")) {
  for (std::uint64_t seed = 2; seed < 12; ++seed) {
    CAPTURE(seed);
    check_random(seed, 300, 4e6);
  }
}

/// The case over image n alone: the same filter, and its rows of the operands with images.
BuiltCase image_of(const BuiltCase& all,
                   const RandomConv& conv,
                   std::string_view suffix,
                   DType dtype,
                   std::int64_t n) {
  RandomConv one = conv;
  one.x = {1, conv.x[1], conv.x[2], conv.x[3]};
  one.g.batch = 1;
  BuiltCase built = build(case_of(one, suffix, 3), dtype);
  for (auto& [name, tensor] : built.feeds) {
    const Tensor& from = all.feeds.find(name)->second;
    const bool images = tensor.shape() != from.shape();
    const auto* bytes = static_cast<const std::byte*>(from.view().data);
    std::memcpy(tensor.view().data,
                bytes + (images ? static_cast<std::size_t>(n) * tensor.bytes() : 0),
                tensor.bytes());
  }
  return built;
}

TEST_CASE("conv: an image's results do not depend on the batch it is in") {
  Dice dice(77, 0);
  for (int i = 0; i < 200; ++i) {
    RandomConv conv = random_conv(dice, 4e5);
    if (conv.x[0] == 1) continue;
    const DType dtype = k_dtypes[dice.from(0, 2)];
    const std::string_view suffix = k_suffixes[dice.from(0, 2)];
    if (conv.depthwise && suffix == "Bias") continue;
    const auto threads = static_cast<int>(dice.from(1, 3));
    const backend::Backend cpu = backend::cpu_backend(threads, max_isa());
    const OpCase c = case_of(conv, suffix, 3);
    BuiltCase all = build(c, dtype);
    for (const Kernel& kernel : conv_kernels()) {
      if (!can_run(kernel, all, cpu.capabilities)) continue;
      // oneDNN's code for AVX2 sums in an order that depends on the number of images.
      if (cpu.capabilities.isa < Isa::avx512 && kernel.name.starts_with("onednn/")) continue;
      CAPTURE(c.name);
      CAPTURE(kernel.name);
      CAPTURE(name(dtype));
      CAPTURE(threads);
      const Tensor want = run_on(kernel, cpu.capabilities, all);
      const std::int64_t n = dice.from(0, conv.x[0] - 1);
      BuiltCase alone = image_of(all, conv, suffix, dtype, n);
      REQUIRE(can_run(kernel, alone, cpu.capabilities));
      const Tensor got = run_on(kernel, cpu.capabilities, alone);
      auto* image =
          static_cast<std::byte*>(want.view().data) + static_cast<std::size_t>(n) * got.bytes();
      const Comparison same = compare_bits(got.view(), {dtype, got.shape(), image});
      CHECK_MESSAGE(same, same.text);
    }
  }
  backend::cpu_backend(2, max_isa());
}

/// Whether a window meets a pixel at output (i, j).
bool meets_pixel(const ConvGeometry& g, std::int64_t i, std::int64_t j) {
  const auto axis = [](const WindowAxis& a, std::int64_t o) {
    for (std::int64_t k = 0; k < a.size; ++k) {
      if (a.inside(a.cell(o, k))) return true;
    }
    return false;
  };
  return axis(g.window.height, i) && axis(g.window.width, j);
}

TEST_CASE(
    "packed conv: numbers that are not finite make results so where, and only if, they count") {
  const std::vector<Kernel> kernels = packed_conv_kernels();
  Dice dice(99, 0);
  const backend::Backend cpu = backend::cpu_backend(2, max_isa());
  constexpr double k_values[] = {HUGE_VAL, -HUGE_VAL, std::numeric_limits<double>::quiet_NaN()};
  for (int i = 0; i < 400; ++i) {
    const RandomConv conv = random_conv(dice, 2e5);
    const DType dtype = k_dtypes[dice.from(1, 2)];
    const std::string_view suffix = k_suffixes[dice.from(0, 3)];
    if (conv.depthwise || conv.g.groups > 1) continue;
    const OpCase c = case_of(conv, suffix, dice.from(3, 4));
    const std::size_t ports[] = {
        suffix == "BackpropInput" ? std::size_t{1} : std::size_t{0},
        suffix == "BackpropInput" || suffix == "BackpropFilter" ? std::size_t{2} : std::size_t{1}};
    const std::size_t port = ports[dice.from(0, 1)];
    const bool of_y = port == 2, of_filter = port == 1;
    const bool of_x = !of_y && !of_filter;
    BuiltCase narrow = build(c, dtype), wide = build(c, DType::float64, dtype);
    const Shape shape = operand(narrow, port).shape();
    std::vector<bool> channel(static_cast<std::size_t>(shape[3]));
    for (std::int64_t count = dice.from(1, 2); count > 0; --count) {
      const std::int64_t at = dice.from(0, shape.elements() - 1);
      const std::int64_t row = at / shape[3] / shape[2] % shape[1],
                         column = at / shape[3] % shape[2];
      // A dy whose window is in the padding is multiplied by its zeros.
      if (of_y && !meets_pixel(conv.g, row, column)) continue;
      const double value = k_values[dice.from(0, 2)];
      for (BuiltCase* built : {&narrow, &wide}) set(operand(*built, port), at, value);
      channel[static_cast<std::size_t>(at % shape[3])] = true;
    }
    const Tensor want = std::move(run(wide, backend::cpu_reference())[0]);
    bool all_finite = true;
    for (const double w : want.span<double>()) all_finite = all_finite && std::isfinite(w);
    for (const Kernel& kernel : kernels) {
      if (!can_run(kernel, narrow, cpu.capabilities)) continue;
      CAPTURE(c.name);
      CAPTURE(kernel.name);
      CAPTURE(port);
      const Tensor got = run_on(kernel, cpu.capabilities, narrow);
      std::int64_t lost = 0, needless = 0;
      for (std::int64_t k = 0; k < got.elements(); ++k) {
        const bool finite = std::isfinite(element_as_double(got.view(), k));
        const bool wanted = std::isfinite(want.as<double>()[k]);
        if (finite && !wanted) ++lost;
        if (finite || !wanted) continue;
        // Channels of the result, or of the filter's gradient, that the operand's number is in.
        const std::int64_t outputs = got.shape()[3];
        bool touched = true;
        if (suffix == "BackpropFilter") {
          touched =
              channel[static_cast<std::size_t>(of_x ? k / outputs % got.shape()[2] : k % outputs)];
        } else if (of_filter && suffix != "BackpropInput") {
          touched = channel[static_cast<std::size_t>(k % outputs)];
        } else if (of_x || of_y) {
          touched = false;
        }
        if (all_finite || !touched) ++needless;
      }
      CHECK(lost == 0);
      CHECK(needless == 0);
    }
  }
}

/// Memory that ends where no page is mapped, or begins where none is.
class Guarded {
 public:
  Guarded(std::size_t bytes, bool at_end) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inner = (bytes + page - 1) / page * page;
    size_ = inner + 2 * page;
    base_ = static_cast<std::byte*>(
        mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(base_ != MAP_FAILED);
    if (inner > 0) REQUIRE(mprotect(base_ + page, inner, PROT_READ | PROT_WRITE) == 0);
    data_ = base_ + page + (at_end ? inner - bytes : 0);
  }
  Guarded(Guarded&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), size_(other.size_), data_(other.data_) {}
  Guarded& operator=(Guarded&&) = delete;
  ~Guarded() {
    if (base_ != nullptr) munmap(base_, size_);
  }
  std::byte* data() const { return data_; }

 private:
  std::byte* base_;
  std::size_t size_ = 0;
  std::byte* data_ = nullptr;
};

TEST_CASE("packed conv: nothing outside of operands, results and workspace is touched") {
  const std::vector<Kernel> kernels = packed_conv_kernels();
  Dice dice(123, 0);
  for (int i = 0; i < 400; ++i) {
    const RandomConv conv = random_conv(dice, 1e6);
    const DType dtype = k_dtypes[dice.from(1, 2)];
    const std::string_view suffix = k_suffixes[dice.from(0, 3)];
    if (conv.depthwise || conv.g.groups > 1) continue;
    const OpCase c = case_of(conv, suffix, dice.from(3, 4));
    const backend::Backend cpu = backend::cpu_backend(static_cast<int>(dice.from(1, 3)), max_isa());
    const bool at_end = !dice.one_in(3);
    BuiltCase built = build(c, dtype);
    const graph::Node& node = built.graph.node(built.node);
    for (const Kernel& kernel : kernels) {
      if (!can_run(kernel, built, cpu.capabilities)) continue;
      INFO(c.name);
      CAPTURE(kernel.name);
      const Tensor want = run_on(kernel, cpu.capabilities, built);
      std::vector<Guarded> memory;
      std::vector<TensorView> in;
      for (const graph::Value v : node.inputs) {
        const graph::Node& from = built.graph.node(v.node);
        const Tensor x =
            from.op == "Const" ? constant_tensor(from) : built.feeds.at(from.name).clone();
        const Guarded& place = memory.emplace_back(x.bytes(), at_end);
        std::memcpy(place.data(), x.view().data, x.bytes());
        in.push_back({x.dtype(), x.shape(), place.data()});
      }
      const Guarded& result = memory.emplace_back(want.bytes(), at_end);
      const TensorView out{dtype, want.shape(), result.data()};
      const backend::Prepared prepared = kernel.prepare({built.graph, node}, cpu.capabilities);
      const Guarded& workspace =
          memory.emplace_back((prepared.workspace_bytes + 63) / 64 * 64, at_end);
      prepared.launch->run({in, {&out, 1}, workspace.data()});
      const Comparison same = compare_bits(out, want.view());
      CHECK_MESSAGE(same, same.text);
    }
  }
  backend::cpu_backend(2, max_isa());
}

}  // namespace
}  // namespace halfstep::testing
