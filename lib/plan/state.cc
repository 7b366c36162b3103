#include "plan/state.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

#include "core/error.h"
#include "core/hash.h"
#include "core/parallel.h"
#include "core/philox.h"
#include "plan/memory.h"

namespace halfstep::plan {
namespace {

/// Whether a variable is part of the model itself.
bool in_model(graph::Role role) {
  return role == graph::Role::weight || role == graph::Role::statistic;
}

/// A float32 copy of a floating tensor.
Tensor in_float32(const Tensor& tensor) {
  Tensor values(DType::float32, tensor.shape());
  convert(tensor.view(), values.view());
  return values;
}

/// A standard normal by the Box-Muller transform.
double normal(RandomStream& random) {
  const double u = (static_cast<double>(random.next()) + 0.5) * 0x1p-32;
  const double v = static_cast<double>(random.next()) * 0x1p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

/// One element of a distribution of independent elements.
double draw(const graph::Initializer& init, RandomStream& random) {
  using Kind = graph::Initializer::Kind;
  if (init.kind == Kind::constant) return init.a;
  if (init.kind == Kind::uniform) {
    return init.a + (init.b - init.a) * static_cast<double>(random.next()) * 0x1p-32;
  }
  double z = normal(random);
  while (init.kind == Kind::truncated_normal && std::abs(z) > 2) z = normal(random);
  return init.a + init.b * z;
}

/// Makes the contiguous vectors of `x` orthonormal by the modified Gram-Schmidt process. Runs it
/// twice, since the error after one pass grows with the square of the matrix's condition number.
void orthonormalize(std::vector<double>& x, std::int64_t vectors, std::int64_t length) {
  const auto vector = [&](std::int64_t i) { return x.data() + i * length; };
  const auto dot = [&](const double* a, const double* b) {
    return std::inner_product(a, a + length, b, 0.0);
  };
  for (int pass = 0; pass < 2; ++pass) {
    for (std::int64_t i = 0; i < vectors; ++i) {
      double* unit = vector(i);
      const double norm = std::sqrt(dot(unit, unit));
      for (std::int64_t k = 0; k < length; ++k) unit[k] /= norm;
      const std::int64_t grain = 1 + (1 << 16) / length;
      parallel_for(vectors - i - 1, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t j = i + 1 + begin; j < i + 1 + end; ++j) {
          const double share = dot(unit, vector(j));
          for (std::int64_t k = 0; k < length; ++k) vector(j)[k] -= share * unit[k];
        }
      });
    }
  }
}

/// Fills `values` with a random matrix whose rows (if there are fewer of them) or columns are
/// orthonormal, times `gain`; all axes but the last one are rows. Source: Saxe et al. 2014.
void orthogonal(const Tensor& values, double gain, RandomStream& random) {
  if (values.elements() == 0) return;
  const std::int64_t columns = values.shape().rank() == 0 ? 1 : values.shape().back();
  const std::int64_t rows = values.elements() / columns;
  const bool of_rows = rows < columns;
  const std::int64_t vectors = std::min(rows, columns), length = std::max(rows, columns);
  std::vector<double> x(static_cast<std::size_t>(values.elements()));
  for (double& each : x) each = normal(random);
  orthonormalize(x, vectors, length);
  float* to = values.span<float>().data();
  for (std::int64_t i = 0; i < vectors; ++i) {
    for (std::int64_t k = 0; k < length; ++k) {
      to[of_rows ? i * columns + k : k * columns + i] =
          static_cast<float>(gain * x[static_cast<std::size_t>(i * length + k)]);
    }
  }
}

}  // namespace

void initialize(const Tensor& tensor,
                const graph::Initializer& init,
                std::uint64_t seed,
                std::string_view name) {
  Tensor values(DType::float32, tensor.shape());
  RandomStream random(mix(seed, init.seed), name_key(name.data(), name.size()));
  const std::span<float> all = values.span<float>();
  if (init.kind == graph::Initializer::Kind::orthogonal) {
    orthogonal(values, init.a, random);
  } else {
    for (float& x : all) x = static_cast<float>(draw(init, random));
  }
  const auto size = static_cast<std::int64_t>(all.size());
  for (std::int64_t i = std::max<std::int64_t>(init.ones_begin, 0);
       i < std::min(init.ones_end, size);
       ++i) {
    all[static_cast<std::size_t>(i)] = 1;
  }
  convert(values.view(), tensor.view());
}

void copy_slice(const Tensor& full, const graph::Slice& slice, const Tensor& to) {
  std::memset(to.view().data, 0, to.bytes());
  const std::int64_t count = std::min(to.elements(), full.elements() - slice.begin);
  if (count <= 0) return;
  TensorView from = full.view(), target = to.view();
  from.shape = target.shape = Shape{count};
  from.data =
      full.as<std::byte>() + slice.begin * static_cast<std::int64_t>(size_bytes(from.dtype));
  convert(from, target);
}

State::State(const graph::Graph& graph, std::uint64_t seed, std::shared_ptr<backend::Memory> memory)
    : memory_(std::move(memory)) {
  const std::size_t alignment = memory_->alignment();
  std::size_t bytes = 0;
  for (const graph::Variable& variable : graph.variables()) {
    Tensor tensor(variable.type.dtype, variable.type.shape);
    if (variable.role == graph::Role::master) {
      const Tensor full(variable.type.dtype, variable.slice->full_shape);
      initialize(full, variable.initializer, seed, variable.slice->tensor);
      copy_slice(full, *variable.slice, tensor);
    } else {
      initialize(tensor, variable.initializer, seed, variable.name);
    }
    index_.emplace(variable.name, entries_.size());
    entries_.push_back({variable, std::move(tensor), bytes});
    bytes += aligned(entries_.back().tensor.bytes(), alignment);
  }
  versions_.assign(entries_.size(), 1);
  if (memory_->is_host()) return;
  device_ = backend::Buffer(memory_, bytes);
  to_device();
}

State::State(std::vector<Entry> entries)
    : memory_(backend::host_memory()), entries_(std::move(entries)) {
  for (std::size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].variable.name, i);
  versions_.assign(entries_.size(), 1);
}

void State::to_host() const {
  if (memory_->is_host()) return;
  for (const Entry& entry : entries_) {
    memory_->download(
        device_.data() + entry.offset, entry.tensor.view().data, entry.tensor.bytes());
  }
}

void State::mark_written() {
  for (std::uint64_t& version : versions_) ++version;
}

void State::to_device() {
  mark_written();
  if (memory_->is_host()) return;
  for (const Entry& entry : entries_) {
    memory_->upload(entry.tensor.view().data, device_.data() + entry.offset, entry.tensor.bytes());
  }
}

void State::save_device(const backend::Buffer& copy) const {
  require(
      copy.bytes() == device_.bytes(), "{} bytes for a state of {}", copy.bytes(), device_.bytes());
  memory_->copy(device_.data(), copy.data(), copy.bytes());
}

void State::restore_device(const backend::Buffer& copy) {
  require(
      copy.bytes() == device_.bytes(), "{} bytes for a state of {}", copy.bytes(), device_.bytes());
  memory_->copy(copy.data(), device_.data(), copy.bytes());
  mark_written();
}

void State::reset_states() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.variable.role != graph::Role::state) continue;
    std::memset(entry.tensor.view().data, 0, entry.tensor.bytes());
    ++versions_[i];
    if (!memory_->is_host()) {
      memory_->upload(
          entry.tensor.view().data, device_.data() + entry.offset, entry.tensor.bytes());
    }
  }
}

std::size_t State::index_of(std::string_view name) const {
  const auto it = index_.find(name);
  require(it != index_.end(), "no variable '{}'", name);
  return it->second;
}

std::uint64_t& State::version(std::string_view name) { return versions_[index_of(name)]; }

State::Derived& State::derived(const std::string& name,
                               std::string_view variable,
                               std::size_t bytes) {
  const auto [it, first] = derived_.try_emplace(name);
  if (first) {
    it->second.buffer = backend::Buffer(memory_, bytes);
    it->second.version = &version(variable);
  }
  require(it->second.buffer.bytes() == bytes, "'{}' has two sizes", name);
  return it->second;
}

std::size_t State::derived_bytes() const {
  std::size_t bytes = 0;
  for (const auto& [name, derived] : derived_) bytes += derived.buffer.bytes();
  return bytes;
}

TensorView State::view(std::string_view name) const {
  const Entry& found = entries_[index_of(name)];
  TensorView view = found.tensor.view();
  if (!memory_->is_host()) view.data = device_.data() + found.offset;
  return view;
}

const Tensor& State::tensor(std::string_view name) const { return entries_[index_of(name)].tensor; }

bool State::contains(std::string_view name) const { return index_.contains(name); }

std::size_t State::bytes() const {
  std::size_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.tensor.bytes();
  return bytes;
}

std::string State::hash(bool all) const {
  to_host();
  Hasher hasher;
  for (const auto& [name, index] : index_) {
    const Entry& entry = entries_[index];
    if (!all && !in_model(entry.variable.role)) continue;
    hasher.add(name).add(to_string(entry.tensor.shape()));
    if (is_floating(entry.tensor.dtype())) {
      hasher.add(std::as_bytes(in_float32(entry.tensor).span<float>()));
    } else {
      hasher.add({static_cast<const std::byte*>(entry.tensor.view().data), entry.tensor.bytes()});
    }
  }
  return hasher.hex();
}

bool State::finite() const {
  to_host();
  for (const Entry& entry : entries_) {
    if (!in_model(entry.variable.role) || !is_floating(entry.tensor.dtype())) continue;
    const Tensor values = in_float32(entry.tensor);
    const auto span = values.span<float>();
    if (!std::all_of(span.begin(), span.end(), [](float x) { return std::isfinite(x); }))
      return false;
  }
  return true;
}

std::string State::weights_hash() const { return hash(false); }
std::string State::full_hash() const { return hash(true); }

std::vector<Tensor> State::weights() const {
  to_host();
  std::vector<Tensor> copies;
  for (const Entry& entry : entries_) {
    if (graph::in_weights(entry.variable.role)) copies.push_back(entry.tensor.clone());
  }
  return copies;
}

void State::set_weights(const std::vector<Tensor>& weights) {
  to_host();
  std::size_t next = 0;
  for (const Entry& entry : entries_) {
    if (!graph::in_weights(entry.variable.role)) continue;
    require(next < weights.size() && weights[next].dtype() == entry.tensor.dtype() &&
                weights[next].shape() == entry.tensor.shape(),
            "weights of another model");
    const Tensor& from = weights[next++];
    if (from.bytes() > 0) std::memcpy(entry.tensor.view().data, from.view().data, from.bytes());
  }
  require(next == weights.size(), "weights of another model");
  to_device();
}

}  // namespace halfstep::plan
