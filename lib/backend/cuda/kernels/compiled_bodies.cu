#include <algorithm>
#include <string_view>
#include <utility>

#include "backend/cuda/kernels/device/body.h"

namespace halfstep::backend::cuda::kernels {
namespace {

/// A body with its dtypes, for which the compiler makes a kernel of its own. An interpreted body
/// takes 1.5 to 2.5 times as long as its bytes on an H200: 72 us for the dropout of mnist_cnn at
/// 1,024 samples in float16, which moves 76 MB.
struct KnownBody {
  static constexpr std::size_t k_max = 6;

  std::size_t inputs = 0, steps = 0, outputs = 0;
  std::array<DType, k_max> input{};
  std::array<bool, k_max> one{};  ///< the input is one element
  std::array<FusedStep, k_max> step{};
  std::array<std::size_t, k_max> output{};  ///< numbers of steps
};

/// Inputs, then ops in the notation of the attribute `body` of a FusedElementwise; T is float32,
/// float16 or bfloat16, and _1 an input of one element. Dropout alone and after a ReLU, its
/// gradient alone and before that of a ReLU, the gradient of a ReLU after a sum, and the ends of
/// the dense layers of a transformer.
constexpr std::array<std::string_view, 8> k_known_bodies{
    "int64 float32_1 T T_1 | RandomUniformFromOrdinal x0 : float32 ; GreaterEqual t0 x1 : bool ; "
    "Mul x2 x3 : T ; Cast t1 : T ; Mul t2 t3 : T -> t3 t4",
    "T int64 float32_1 T_1 | Relu x0 : T ; RandomUniformFromOrdinal x1 : float32 ; "
    "GreaterEqual t1 x2 : bool ; Mul t0 x3 : T ; Cast t2 : T ; Mul t3 t4 : T -> t0 t4 t5",
    "T T T_1 | Mul x0 x1 : T ; Mul t0 x2 : T -> t1",
    "T T T_1 T | Mul x0 x1 : T ; Mul t0 x2 : T ; ReluGrad t1 x3 : T -> t2",
    "T T T | AddV2 x0 x1 : T ; ReluGrad t0 x2 : T -> t1",
    "T T_1 T | BroadcastTo x0 : T ; RealDiv t0 x1 : T ; ReluGrad t1 x2 : T -> t2",
    "T T | BiasAdd x0 x1 : T ; Gelu t0 : T -> t0 t1",
    "T T T | BiasAdd x0 x1 : T ; AddV2 x2 t0 : T -> t1",
};

constexpr DType dtype_in(std::string_view word, DType t) {
  if (word == "float32") return DType::float32;
  if (word == "int64") return DType::int64;
  return word == "bool" ? DType::boolean : t;
}

/// The body of a text of k_known_bodies. Not a constant expression for a text with an unknown op.
constexpr KnownBody known_body(std::string_view text, DType t) {
  const auto next = [&] {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size() < text.size() ? word.size() + 1 : word.size());
    return word;
  };
  KnownBody body;
  for (std::string_view word = next(); word != "|"; word = next()) {
    const std::size_t dtype_end = std::min(word.find('_'), word.size());
    body.one[body.inputs] = dtype_end < word.size();
    body.input[body.inputs++] = dtype_in(word.substr(0, dtype_end), t);
  }
  const auto value = [&](std::string_view word) {
    const std::size_t number = static_cast<std::size_t>(word[1] - '0');
    return word[0] == 'x' ? number : body.inputs + number;
  };
  for (std::string_view end; end != "->"; end = next()) {
    FusedStep& step = body.step[body.steps++];
    step.function = number_of(next()).value();
    std::size_t operands = 0;
    for (std::string_view word = next(); word != ":"; word = next()) {
      step.operands[operands++] = static_cast<std::uint8_t>(value(word));
    }
    step.dtype = dtype_in(next(), t);
  }
  while (!text.empty()) body.output[body.outputs++] = value(next()) - body.inputs;
  return body;
}

template <std::size_t index, class T>
inline constexpr KnownBody k_known_body = known_body(k_known_bodies[index], dtype_of<T>());

struct KnownSource {
  const void* data;
  bool whole;  ///< has the elements of the result
};

struct KnownArguments {
  std::int64_t elements;  ///< a multiple of k_body_width
  KnownSource source[KnownBody::k_max];
  Walk<1> walk[KnownBody::k_max];
  void* sink[KnownBody::k_max];
  float alpha[KnownBody::k_max];
  std::uint64_t seed[KnownBody::k_max], stream[KnownBody::k_max];
};
static_assert(sizeof(KnownArguments) <= 4096);

/// Calls f(integral_constant<std::size_t, n>) for n in [0, count).
template <std::size_t count, class F>
__device__ inline void unrolled(F&& f) {
  [&]<std::size_t... n>(std::index_sequence<n...>) {
    (f(std::integral_constant<std::size_t, n>{}), ...);
  }
  (std::make_index_sequence<count>{});
}

template <std::size_t index, class T>
__global__ void HALFSTEP_BLOCK_OF(256, 4) known_kernel(KnownArguments a) {
  // A constant in host memory: device code copies those parts of it that it needs.
  constexpr std::size_t k_first_step = k_known_body<index, T>.inputs;  // its value
  for (std::int64_t first = thread_of_grid() * k_body_width; first < a.elements;
       first += threads_of_grid() * k_body_width) {
    ThreadValues value[k_first_step + k_known_body<index, T>.steps];
    unrolled<k_first_step>([&](auto n) {
      constexpr DType k_dtype = k_known_body<index, T>.input[n];
      // The ordinal of random numbers is read by themselves.
      if constexpr (k_dtype != DType::int64) {
        with_type(k_dtype, [&]<class S>(Type<S>) {
          const KnownSource& source = a.source[n];
          const S* data = static_cast<const S*>(source.data);
          if constexpr (k_known_body<index, T>.one[n]) {
            for (int i = 0; i < k_body_width; ++i) value[n][i] = static_cast<float>(load(*data));
          } else {
            const std::int64_t offset = source.whole ? first : a.walk[n].at(first).of[0];
            const auto pack = load_pack<S, k_body_width>(data + offset);
            for (int i = 0; i < k_body_width; ++i) {
              value[n][i] = static_cast<float>(load(pack.element[i]));
            }
          }
        });
      }
    });
    unrolled<k_known_body<index, T>.steps>([&](auto n) {
      constexpr FusedStep k_step = k_known_body<index, T>.step[n];
      constexpr std::size_t k_x0 = k_step.operands[0], k_x1 = k_step.operands[1],
                            k_x2 = k_step.operands[2];
      ThreadValues& y = value[k_first_step + n];
      if constexpr (k_step.function == k_random) {
        uniform(a.source[k_x0].data, a.seed[n], a.stream[n], first, y);
      } else {
        apply_function<k_step.function, k_step.function + 1>(
            k_step.function, a.alpha[n], value[k_x0], value[k_x1], value[k_x2], y);
        round_to(k_step.dtype, y);
      }
    });
    unrolled<k_known_body<index, T>.outputs>([&](auto n) {
      constexpr std::size_t k_from = k_known_body<index, T>.output[n];
      constexpr DType k_dtype = k_known_body<index, T>.step[k_from].dtype;
      with_type(k_dtype, [&]<class S>(Type<S>) {
        Pack<S, k_body_width> pack;
        for (int i = 0; i < k_body_width; ++i) {
          pack.element[i] = store<S>(value[k_first_step + k_from][i]);
        }
        store_pack<S, k_body_width>(static_cast<S*>(a.sink[n]) + first, pack);
      });
    });
  }
}

bool same_body(const KnownBody& known, const FusedParams& p) {
  if (known.inputs != p.inputs || known.steps != p.steps || known.outputs != p.outputs) {
    return false;
  }
  for (std::size_t n = 0; n < p.inputs; ++n) {
    const bool one = p.input[n].shape.elements() == 1;
    const bool ordinal = known.input[n] == DType::int64;
    if (known.input[n] != p.input[n].dtype || (!ordinal && known.one[n] != one)) return false;
  }
  for (std::size_t n = 0; n < p.steps; ++n) {
    const FusedStep &a = known.step[n], &b = p.step[n];
    if (a.function != b.function || a.dtype != b.dtype || a.operands != b.operands) return false;
  }
  for (std::size_t n = 0; n < p.outputs; ++n) {
    if (known.output[n] != p.output[n].step) return false;
  }
  return true;
}

/// Calls f(kernel) with the compiled kernel of a body; false without one.
template <class F>
bool with_known_kernel(const FusedParams& p, F&& f) {
  const auto take = [&]<std::size_t index, class T>(Type<T>,
                                                    std::integral_constant<std::size_t, index>) {
    if (!same_body(k_known_body<index, T>, p)) return false;
    f(known_kernel<index, T>);
    return true;
  };
  return [&]<std::size_t... n>(std::index_sequence<n...>) {
    return ((take(Type<float>{}, std::integral_constant<std::size_t, n>{}) ||
             take(Type<float16>{}, std::integral_constant<std::size_t, n>{}) ||
             take(Type<bfloat16>{}, std::integral_constant<std::size_t, n>{})) ||
            ...);
  }
  (std::make_index_sequence<k_known_bodies.size()>{});
}

}  // namespace

bool has_compiled_body(const FusedParams& p) {
  return with_known_kernel(p, [](auto) {});
}

bool launch_compiled_body(Stream stream,
                          const FusedParams& p,
                          const Source* sources,
                          const Walk<1>* walks) {
  KnownArguments arguments{};
  arguments.elements = p.shape.elements();
  if (arguments.elements % k_body_width != 0) return false;
  for (std::size_t n = 0; n < std::min(p.inputs, KnownBody::k_max); ++n) {
    const bool one = p.input[n].shape.elements() == 1;
    if (sources[n].load_mode != (one ? LoadMode::broadcast : LoadMode::pack)) return false;
    arguments.source[n] = {sources[n].data, sources[n].whole};
    arguments.walk[n] = walks[n];
  }
  for (std::size_t n = 0; n < std::min(p.steps, KnownBody::k_max); ++n) {
    arguments.alpha[n] = p.step[n].alpha;
    arguments.seed[n] = p.step[n].seed;
    arguments.stream[n] = p.step[n].stream;
    if (n < p.outputs) arguments.sink[n] = p.output[n].data;
  }
  return with_known_kernel(p, [&](auto kernel) {
    launch(kernel, grid_of(arguments.elements / k_body_width), stream, arguments);
  });
}

}  // namespace halfstep::backend::cuda::kernels
