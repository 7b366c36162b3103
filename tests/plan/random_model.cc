#include "plan/random_model.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <span>
#include <vector>

#include "plan/pipeline.h"

namespace halfstep::plan {
namespace {

using Extents = std::vector<int>;

/// A node of the model, with the shape of a sample.
struct Made {
  std::string name;
  Extents shape;
};

class Builder {
 public:
  /// `dtypes`: whether layers may have dtypes of their own.
  Builder(std::uint32_t seed, bool dtypes)
      : random_(seed), dtypes_(dtypes), made_{{"image", {8, 8, 1}}} {}

  std::string model() {
    const int layers = between(3, 9);
    for (int i = 0; i < layers; ++i) append();
    const Made last = made_.back();
    if (last.shape.size() > 1) {
      const bool pooled = last.shape.size() < 4 && chance(0.5);
      const auto axes = last.shape.size() - 1;
      add(pooled ? fmt::format("type: global_{}_pooling{}d", pick({"average", "max"}), axes)
                 : "type: flatten",
          {pooled ? last.shape.back() : elements(last.shape)});
    }
    add(fmt::format("type: dense, units: 10{}", dtypes_ && chance(0.5) ? ", dtype: float32" : ""),
        {10});
    const bool logits = chance(0.3);
    if (!logits) add("type: softmax, dtype: float32", {10});
    return fmt::format(
        "model:\n  inputs: {{image: [8, 8, 1]}}\n  nodes:\n{}  outputs: [{}]\nloss: {}\n",
        nodes_,
        made_.back().name,
        logits ? "{type: sparse_categorical_crossentropy, from_logits: true}"
               : "sparse_categorical_crossentropy");
  }

  std::string optimizer() {
    std::string text = pick({"type: sgd, learning_rate: 0.05",
                             "type: sgd, learning_rate: 0.05, momentum: 0.9",
                             "type: adam, learning_rate: 3e-3",
                             "type: adamw, learning_rate: 3e-3",
                             "type: rmsprop, learning_rate: 1e-3",
                             "type: adagrad, learning_rate: 1e-2",
                             "type: nadam, learning_rate: 1e-3",
                             "type: lion, learning_rate: 1e-3"});
    if (chance(0.3)) text += pick({", clipnorm: 0.5", ", global_clipnorm: 1", ", clipvalue: 0.1"});
    return text;
  }

 private:
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<std::uint32_t>(high - low + 1));
  }
  bool chance(double share) { return static_cast<double>(random_()) * 0x1p-32 < share; }
  std::string pick(std::span<const std::string_view> words) {
    return std::string(words[static_cast<std::size_t>(between(0, int(words.size()) - 1))]);
  }
  std::string pick(std::initializer_list<std::string_view> words) {
    return pick(std::span(words.begin(), words.size()));
  }
  static int elements(const Extents& shape) {
    int product = 1;
    for (const int extent : shape) product *= extent;
    return product;
  }
  std::string activation() {
    if (chance(0.3)) return "";
    return fmt::format(
        ", activation: {}",
        pick({"relu", "relu", "relu", "gelu", "tanh", "sigmoid", "silu", "elu", "softplus"}));
  }
  std::string flag(std::string_view name) {
    return chance(0.3) ? fmt::format(", {}: {}", name, pick({"true", "false"})) : "";
  }

  std::string penalty() { return chance(0.15) ? ", kernel_regularizer: {l2: 1e-2}" : ""; }

  /// Appends a layer after the nodes `from`, by default the last one.
  void add(const std::string& layer, Extents shape, std::string from = "") {
    if (from.empty()) from = made_.back().name;
    const std::string name = fmt::format("n{}", made_.size());
    const bool own = dtypes_ && layer.find("dtype") == std::string::npos && chance(0.12);
    nodes_ += fmt::format(
        "    {}: {{{}{}, from: {}}}\n",
        name,
        layer,
        own ? pick({", dtype: float32", ", dtype: mixed_float16", ", dtype: mixed_bfloat16"}) : "",
        from);
    made_.push_back({name, std::move(shape)});
  }

  /// Adds the last node to an earlier one of its shape. False without such a node.
  bool merge() {
    const Extents shape = made_.back().shape;
    std::vector<std::string> others;
    for (std::size_t i = 1; i + 1 < made_.size(); ++i) {
      if (made_[i].shape == shape) others.push_back(made_[i].name);
    }
    if (others.empty()) return false;
    const std::string other = others[static_cast<std::size_t>(between(0, int(others.size()) - 1))];
    const std::string both = fmt::format("[{}, {}]", other, made_.back().name);
    if (chance(0.2)) {
      Extents wide = shape;
      wide.back() *= 2;
      add("type: concatenate", wide, both);
    } else {
      add("type: " + pick({"add", "add", "add", "multiply", "maximum", "subtract", "average"}),
          shape,
          both);
    }
    return true;
  }

  void append() {
    if (chance(0.3) && merge()) return;
    const Extents shape = made_.back().shape;
    if (chance(0.35)) return append_any(shape);
    if (shape.size() == 3) return append_to_image(shape);
    if (shape.size() == 2) return append_to_sequence(shape);
    append_to_vector(shape);
  }

  /// A layer that keeps the shape.
  void append_any(const Extents& shape) {
    switch (between(0, 8)) {
      case 0:
        return add("type: batch_normalization" + flag("scale") + flag("center"), shape);
      case 1:
        return add("type: layer_normalization" + flag("scale") + flag("center"), shape);
      case 2:
        return add("type: rms_normalization", shape);
      case 3:
        return add("type: dropout, rate: 0.25", shape);
      case 4:
        return add("type: gaussian_noise, stddev: 0.1", shape);
      case 5:
        return add("type: prelu", shape);
      case 6:
        return add("type: gelu", shape);
      case 7:
        return add("type: " + pick({"relu", "relu", "leaky_relu", "hard_silu", "selu", "softmax"}),
                   shape);
      default:
        return add("type: activation" +
                       fmt::format(", activation: {}", pick({"relu", "tanh", "gelu", "linear"})),
                   shape);
    }
  }

  void append_to_image(const Extents& shape) {
    const int h = shape[0], w = shape[1], c = shape[2];
    switch (between(0, 8)) {
      case 0:
      case 1:
      case 2: {
        const bool same = chance(0.6);
        const int kernel = between(1, std::min({3, h, w})), stride = between(1, 2);
        const int filters = between(1, 17);
        const auto out = [&](int extent) { return (extent - (same ? 1 : kernel)) / stride + 1; };
        const std::string rest = fmt::format(", kernel_size: {}, strides: {}, padding: {}{}{}",
                                             kernel,
                                             stride,
                                             same ? "same" : "valid",
                                             flag("use_bias"),
                                             activation());
        if (chance(0.25)) {
          return add("type: depthwise_conv2d" + rest, {out(h), out(w), c});
        }
        if (chance(0.15)) {
          return add(fmt::format("type: separable_conv2d, filters: {}", filters) + rest,
                     {out(h), out(w), filters});
        }
        return add(fmt::format("type: conv2d, filters: {}{}", filters, penalty()) + rest,
                   {out(h), out(w), filters});
      }
      case 3:
        if (h < 2 || w < 2) return append_any(shape);
        return add(fmt::format("type: {}_pooling2d", pick({"max", "average"})), {h / 2, w / 2, c});
      case 4:
        return add("type: zero_padding2d", {h + 2, w + 2, c});
      case 5:
        if (elements(shape) > 1500) return append_any(shape);
        return add("type: up_sampling2d", {2 * h, 2 * w, c});
      case 6:
        return add(
            fmt::format("type: conv2d_transpose, filters: {}, kernel_size: 2{}", c, activation()),
            {h + 1, w + 1, c});
      case 7:
        return add(fmt::format("type: reshape, target_shape: [{}, {}]", h * w, c), {h * w, c});
      default: {
        const int units = between(1, 20);
        return add(fmt::format("type: dense, units: {}{}", units, activation()), {h, w, units});
      }
    }
  }

  void append_to_sequence(const Extents& shape) {
    const int steps = shape[0], channels = shape[1];
    const bool sequences = chance(0.7);
    const auto out = [&](int units) { return sequences ? Extents{steps, units} : Extents{units}; };
    const std::string returned = sequences ? ", return_sequences: true" : "";
    const int units = between(1, 20);
    switch (between(0, 7)) {
      case 0:
        return add(fmt::format("type: {}, units: {}{}{}",
                               pick({"lstm", "gru", "simple_rnn"}),
                               units,
                               returned,
                               flag("go_backwards")),
                   out(units));
      case 1:
        return add(fmt::format("type: bidirectional, layer: {{type: {}, units: {}{}}}",
                               pick({"lstm", "gru"}),
                               units,
                               returned),
                   out(2 * units));
      case 2:
      case 3:
        return add(fmt::format("type: multi_head_attention, num_heads: {}, key_dim: {}{}{}",
                               between(1, 3),
                               between(1, 9),
                               flag("use_causal_mask"),
                               chance(0.3) ? ", dropout: 0.2" : ""),
                   shape);
      case 4:
        return add(fmt::format("type: conv1d, filters: {}, kernel_size: {}, padding: same{}",
                               units,
                               between(1, std::min(3, steps)),
                               activation()),
                   {steps, units});
      case 5:
        return add(fmt::format("type: position_embedding, sequence_length: {}", steps), shape);
      case 6:
        return add("type: permute, dims: [2, 1]", {channels, steps});
      default:
        return add(fmt::format("type: dense, units: {}{}", units, activation()), {steps, units});
    }
  }

  void append_to_vector(const Extents& shape) {
    const int units = between(1, 70), steps = between(2, 6);
    switch (between(0, 4)) {
      case 0:
        return add(fmt::format("type: repeat_vector, n: {}", steps), {steps, shape[0]});
      case 1:
        return add(fmt::format("type: reshape, target_shape: [{}, 1]", shape[0]), {shape[0], 1});
      default:
        return add(fmt::format("type: dense, units: {}{}{}", units, activation(), penalty()),
                   {units});
    }
  }

  std::mt19937 random_;
  bool dtypes_;
  std::vector<Made> made_;
  std::string nodes_;
};

}  // namespace

RandomModel::RandomModel(std::uint32_t seed, std::string_view optimizer) {
  constexpr std::array<std::string_view, 7> k_precisions{
      "policy: float32",
      "policy: mixed_bfloat16",
      "policy: mixed_float16",
      "policy: mixed_bfloat16, grad_dtype: float32",
      "policy: float32, rewrite: auto, target: bfloat16",
      "policy: float32, rewrite: auto, target: float16",
      "policy: float16"};
  constexpr std::array<std::int64_t, 4> k_batches{1, 7, 32, 64};
  const std::string_view precision = k_precisions[seed % k_precisions.size()];
  batch = k_batches[seed / k_precisions.size() % k_batches.size()];
  // The rewrite chooses the dtypes of all layers.
  Builder builder(seed, precision.find("rewrite") == std::string_view::npos);
  const std::string layers = builder.model();
  text = fmt::format("data: {{name: synthetic_digits}}\n{}optimizer: {{{}}}\nprecision: {{{}}}\n",
                     layers,
                     optimizer.empty() ? builder.optimizer() : optimizer,
                     precision);
}

bool RandomModel::in_float32() const {
  return text.find("float16") == std::string::npos && text.find("rewrite") == std::string::npos;
}

void for_random_models(std::uint32_t first,
                       std::uint32_t last,
                       std::string_view optimizer,
                       const std::function<void(const RandomModel&)>& test) {
  if (const char* range = std::getenv("HALFSTEP_RANDOM_MODELS")) {
    char* end = nullptr;
    first = static_cast<std::uint32_t>(std::strtoul(range, &end, 10));
    last = static_cast<std::uint32_t>(std::strtoul(end, nullptr, 10));
  }
  for (std::uint32_t seed = first; seed <= last; ++seed) {
    const RandomModel model(seed, optimizer);
    CAPTURE(seed);
    CAPTURE(model.batch);
    CAPTURE(model.text);
    try {
      test(model);
    } catch (const std::exception& error) {
      FAIL_CHECK(std::string(error.what()));
    }
  }
}

void check_exact_passes(const RandomModel& model, const backend::Backend& backend) {
  const StepConfig config(model.text);
  const auto without = [&](const PassOptions& options) {
    return train(config, model.batch, backend, options);
  };
  // Nodes that nothing reads would keep fuse_attention from fusing, which is not exact; where
  // logits are padded depends on the passes before.
  const auto tested = [](const Pass& pass) {
    return pass.required.empty() && pass.exact && pass.name != "prune";
  };
  const PassOptions unpadded{.skip = {"pad_logits"}};
  PassOptions plain = unpadded;
  for (const Pass& pass : passes()) {
    if (tested(pass)) plain.skip.emplace(pass.name);
  }
  const Trained all = without(unpadded);
  if (different_elements(all, without(plain)) == 0) return;
  FAIL_CHECK("a pass changes a step");
  for (const Pass& pass : passes()) {
    if (!tested(pass)) continue;
    CAPTURE(pass.name);
    PassOptions options = unpadded;
    options.skip.emplace(pass.name);
    CHECK(different_elements(all, without(options)) == 0);
  }
}

bool trains_apart(const RandomModel& model, const backend::Backend& backend) {
  const StepConfig config(model.text);
  const Trained expected = train(config, model.batch, backend::cpu_reference());
  const double distance = relative_distance(expected, train(config, model.batch, backend));
  CHECK(distance < 1);
  const bool apart = distance > (model.in_float32() ? 1e-4 : 0.03);
  if (apart) MESSAGE("another way, by ", distance, " of it:\n", model.text);
  return apart;
}

}  // namespace halfstep::plan
