#include "train/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "comm/communicator.h"
#include "config/warning_codes.h"
#include "core/hash.h"
#include "core/ranges.h"
#include "core/system.h"
#include "data/value_checks.h"
#include "graph/op_handles.h"
#include "nn/class_weights.h"
#include "nn/losses/loss.h"
#include "passes/lowering.h"
#include "train/data_warnings.h"

namespace halfstep::train {
namespace {

Shape without_first(const Shape& shape) { return Shape(shape.dims().subspan(1)); }

nn::DataShape describe(const data::Dataset& dataset) {
  const TensorView labels = dataset.train.labels.view();
  return {dataset.sample_shape,
          dataset.train.images.dtype(),
          without_first(labels.shape),
          labels.dtype,
          dataset.layout ? data::stored_as(dataset.sample_shape, *dataset.layout) : "",
          mapped<graph::TensorType>(dataset.outputs, [](const data::LabelSpec& part) {
            return graph::TensorType{part.dtype, part.shape};
          })};
}

std::string mebibytes(std::size_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024.0 * 1024.0));
}

/// A node without a kernel on the device is an error of the config: a dtype that the device does
/// not support, or a layout that its libraries do not have.
void refuse_unrunnable(const graph::Graph& graph, const backend::Backend& backend) {
  if (!backend.device) return;
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    const backend::Choice choice = backend::choose(backend, {graph, node});
    if (choice.kernel != nullptr || choice.refused.empty()) continue;
    throw UserError(ErrorKind::unavailable,
                    node.origin.where,
                    fmt::format("{} ({}) cannot run on this device: {}",
                                node.name,
                                node.op,
                                choice.refused.front().second),
                    "another policy, or --device cpu");
  }
}

/// Rejects arithmetic that this backend does not have; with precision.fallback: warn, `spec` gets
/// the default instead, with a warning.
void replace_unsupported(config::RunSpec& spec,
                         const backend::Backend& backend,
                         std::vector<config::Warning>& warnings) {
  const auto replace = [&](const char* path, const char* only) {
    if (spec.precision.fallback != config::Fallback::warn) {
      throw UserError(ErrorKind::unavailable,
                      spec.where(path),
                      fmt::format("only {} is supported here", only),
                      "--allow-fallback uses it");
    }
    warnings.push_back(
        config::warning(config::k_fallback_used,
                        spec.where(path),
                        fmt::format("only {0} is supported here: {0} is used", only)));
  };
  config::PrecisionSpec& p = spec.precision;
  if (backend.capabilities.compute_capability < 80 && p.float32_math != config::Float32Math::ieee) {
    replace("precision.float32_math", "ieee");
    p.float32_math = config::Float32Math::ieee;
  }
  if (p.accumulate != DType::float32) {
    replace("precision.accumulate", "float32");
    p.accumulate = DType::float32;
  }
}

}  // namespace

void Session::check_labels() const {
  std::int64_t first = 0;
  Diagnostics diagnostics;
  for (std::size_t i = 0; i < step_spec_.outputs.size(); ++i) {
    const nn::TrainedOutput& output = step_spec_.outputs[i];
    const bool several = !data_shape_.labels.empty();
    const graph::TensorType label =
        several ? data_shape_.labels[i]
                : graph::TensorType{data_shape_.label_dtype, data_shape_.label};
    const auto limit = output.classes();
    const std::int64_t count = label.shape.elements(), begin = std::exchange(first, first + count);
    const bool floats = is_floating(label.dtype);
    const bool probabilities = output.loss->takes_probabilities() || output.loss->from_logits();
    if (!output.is_labelled() || (floats ? !probabilities || !output.has_loss : !limit)) continue;
    for (const auto& [rows, split] : {std::pair(&train_split_, "training"),
                                      std::pair(&validation_split_, "validation"),
                                      std::pair(&test_split_, "test")}) {
      if (rows->samples() == 0) continue;
      const std::string of =
          fmt::format("{}: {}{} samples", dataset_.source, output.in_message(), split);
      const std::string what =
          fmt::format("{}, for a model whose output is {}", of, to_string(output.form.shape));
      try {
        if (floats) {
          const float lowest = output.loss->label_kind() == nn::LabelKind::signs ? -1 : 0;
          data::check_probabilities(rows->labels, begin, count, lowest, of, output.loss_type);
        } else if (several) {
          data::check_indices(
              rows->labels, begin, count, *limit, what, output.loss->ignored_class());
        } else {
          const bool numbers = output.loss->label_kind() == nn::LabelKind::classes;
          data::check_labels(*rows, *limit, what, output.loss->ignored_class(), numbers);
        }
      } catch (const UserError& error) {
        for (const Problem& p : error.problems()) diagnostics.error(p.where, p.message, p.hint);
      }
    }
  }
  diagnostics.throw_if_any(ErrorKind::data);
}

void Session::check_indices() const {
  const std::vector<std::int64_t> limits = nn::index_limits(step_spec_.model);
  if (std::ranges::all_of(limits, [](std::int64_t limit) { return limit == 0; })) return;
  if (step_spec_.scale_of(dataset_.train.images.dtype()) != 1) {
    throw UserError(ErrorKind::config,
                    spec_.where("data"),
                    "the model takes samples as indices, but they are scaled",
                    "data.scale: 1 keeps them as they are");
  }
  std::int64_t first = 0;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const std::int64_t count = step_spec_.model.inputs[i].shape.elements();
    for (const data::SplitView* rows : {&train_split_, &validation_split_, &test_split_}) {
      if (limits[i] == 0 || rows->samples() == 0) continue;
      data::check_indices(rows->images,
                          first,
                          count,
                          limits[i],
                          fmt::format("{}: indices for a layer 'embedding'", dataset_.source));
    }
    first += count;
  }
}

void Session::check_states() const {
  const std::int64_t samples = train_split_.samples(), batch = spec_.training.batch_size;
  if (samples % batch == 0 || spec_.data.streams) return;
  for (const nn::ModelNode& node : step_spec_.model.nodes) {
    if (!node.layer->keeps_state()) continue;
    throw UserError(ErrorKind::config,
                    node.where,
                    fmt::format("a stateful layer with a changed batch size: {} training samples "
                                "in batches of {} leave {} for the last one, and the state has a "
                                "row for each sample of a batch",
                                samples,
                                batch,
                                samples % batch),
                    "data.streams: true drops them; or a batch_size that divides the samples");
  }
}

Session::Session(const config::RunSpec& spec,
                 const data::Dataset& dataset,
                 const backend::Backend& backend,
                 nn::Purpose purpose,
                 std::set<std::string, std::less<>> skipped_passes)
    : spec_(spec),
      dataset_(dataset),
      backend_(backend),
      purpose_(purpose),
      skipped_passes_(std::move(skipped_passes)),
      data_shape_(describe(dataset)),
      arena_(backend.memory),
      trace_arena_(backend.memory) {
  if (ranks() != nullptr && spec_.parallel.batch_of == config::BatchOf::rank) {
    spec_.training.batch_size *= ranks()->size();
  }
  std::vector<config::Warning> replaced;
  replace_unsupported(spec_, backend_, replaced);
  if (backend_.device && !spec_.precision.target) spec_.precision.target = DType::float16;
  Diagnostics diagnostics;
  step_spec_ = nn::read_step_spec(spec_, diagnostics);
  if (diagnostics.empty() && purpose == nn::Purpose::train) {
    step_spec_.class_weights =
        nn::read_class_weights(spec_, step_spec_.outputs, dataset_.class_names_of(0), diagnostics);
  }
  diagnostics.throw_if_any();
  if (ranks() != nullptr && spec_.parallel.shard == config::ShardOf::optimizer) {
    step_spec_.model.shard = {ranks()->rank(), ranks()->size()};
  }
  split_data();

  if (purpose == nn::Purpose::train) check_states();

  const std::int64_t batch = main_batch();
  prepared_ = prepare(purpose, share(purpose, batch));
  refuse_unrunnable(prepared_.graph, backend_);
  if (purpose != nn::Purpose::predict) check_labels();
  check_indices();
  warnings_ = spec_.warnings;
  warnings_.insert(warnings_.end(), replaced.begin(), replaced.end());
  warnings_.insert(warnings_.end(), prepared_.warnings.begin(), prepared_.warnings.end());
  for (config::Warning& warning : nn::graph_warnings(spec_, step_spec_, prepared_.graph)) {
    warnings_.push_back(std::move(warning));
  }
  const RunData run{spec_,
                    step_spec_,
                    data_shape_,
                    dataset_,
                    {{purpose == nn::Purpose::predict ? "" : "training", &train_split_},
                     {"validation", &validation_split_},
                     {"test", &test_split_}}};
  const auto warn = [this](std::vector<config::Warning> found) {
    std::ranges::move(found, std::back_inserter(warnings_));
  };
  warn(half_input_warnings(run, prepared_.graph));
  if (purpose == nn::Purpose::train) warn(training_data_warnings(run));
  std::size_t state_bytes = 0;
  for (const graph::Variable& v : prepared_.graph.variables()) {
    state_bytes += static_cast<std::size_t>(v.type.shape.elements()) * size_bytes(v.type.dtype);
  }
  check_memory(state_bytes);
  state_ = std::make_unique<plan::State>(prepared_.graph, step_spec_.seed, backend_.memory);

  plan(purpose, batch);
  if (purpose != nn::Purpose::train) return;
  if (is_divided()) {
    const graph::Graph gathers = passes::prune_to(prepared_.graph, graph::ops::k_all_gather_wait);
    gather_plan_ = std::make_unique<plan::Plan>(plan::compile(gathers, backend_, lowering()));
    check_memory(gather_plan_->arena_bytes());
    trace_arena_.reserve(gather_plan_->arena_bytes());
  }
  const std::int64_t tail = spec_.data.streams ? 0 : train_split_.samples() % batch;
  if (tail > 0) plan(nn::Purpose::train, tail);
  // Plans of evaluations too, so that the memory need of a run is known before its first step.
  for (const data::SplitView* rows : {&validation_split_, &test_split_}) {
    if (rows->samples() == 0) continue;
    plan(nn::Purpose::evaluate, std::min(evaluation_batch(), rows->samples()));
  }
}

void Session::split_data() {
  const data::SplitView all = data::view(dataset_.train);
  const std::int64_t cut = data::validation_split_at(
      all.samples(), spec_.data.validation_split, spec_.where("data.validation_split"));
  train_split_ = data::slice(all, 0, cut);
  validation_split_ = data::slice(all, cut, all.samples());
  test_split_ = data::view(dataset_.test);
  data::check_batch_size(
      spec_.training.batch_size, train_split_.samples(), spec_.where("training.batch_size"));
}

std::string Session::training_data_hash() const {
  Hasher hasher;
  for (const TensorView* view : {&train_split_.images, &train_split_.labels}) {
    hasher.add(name(view->dtype)).add(to_string(view->shape));
    hasher.add({static_cast<const std::byte*>(view->data), view->bytes()});
  }
  if (train_split_.weighted()) {
    hasher.add({train_split_.weights.as<const std::byte>(), train_split_.weights.bytes()});
  }
  return hasher.hex();
}

std::int64_t Session::evaluation_batch() const {
  return spec_.training.validation_batch_size.value_or(spec_.training.batch_size);
}

std::int64_t Session::main_batch() const {
  return purpose_ == nn::Purpose::train ? spec_.training.batch_size : evaluation_batch();
}

plan::Plan& Session::plan(nn::Purpose purpose, std::int64_t batch) {
  std::unique_ptr<plan::Plan>& entry = plans_[{purpose, batch}];
  if (entry) return *entry;
  entry =
      std::make_unique<plan::Plan>(plan::compile(graph_for(purpose, batch), backend_, lowering()));
  if (entry->arena_bytes() > arena_.bytes()) {
    check_memory(entry->arena_bytes() - arena_.bytes(), purpose == nn::Purpose::train ? batch : 0);
    arena_.reserve(entry->arena_bytes());
    for (auto& [key, other] : plans_) {
      if (other) other->bind(*state_, arena_);
    }
  } else {
    entry->bind(*state_, arena_);
  }
  return *entry;
}

void Session::gather_weights() {
  if (!gather_plan_) return;
  gather_plan_->bind(*state_, trace_arena_);
  gather_plan_->run();
}

plan::Plan* Session::trace_plan(std::int64_t batch) {
  plan::Plan& run = plan(nn::Purpose::train, batch);
  if (!run.hides_values() && ranks() == nullptr) return &run;
  std::unique_ptr<plan::Plan>& entry = trace_plans_[batch];
  if (!entry) {
    plan::Lowering plain = lowering();
    plain.hides_values = false;
    BatchShare alone = share(nn::Purpose::train, batch);
    alone.ranks = 1;
    entry = std::make_unique<plan::Plan>(
        plan::compile(prepare(nn::Purpose::train, alone).graph, backend_, plain));
  }
  if (entry->arena_bytes() > trace_arena_.bytes()) {
    if (entry->arena_bytes() > backend_.memory->available_bytes()) return nullptr;
    trace_arena_.reserve(entry->arena_bytes());
  }
  entry->bind(*state_, trace_arena_);
  entry->copy_inputs(run);
  return entry.get();
}

BatchShare Session::share(nn::Purpose purpose, std::int64_t batch) const {
  if (purpose != nn::Purpose::train || ranks() == nullptr) return batch;
  return {batch, ranks()->rank(), ranks()->size()};
}

Prepared Session::prepare(nn::Purpose purpose, const BatchShare& batch) const {
  return plan::build_step(step_spec_, data_shape_, batch, purpose, spec_, {skipped_passes_});
}

graph::Graph Session::graph_for(nn::Purpose purpose, std::int64_t batch) const {
  if (purpose == purpose_ && batch == main_batch()) return prepared_.graph;
  return prepare(purpose, share(purpose, batch)).graph;
}

plan::Lowering Session::lowering() const {
  plan::Lowering lowering;
  lowering.float16_products = spec_.precision.float16_gemm == config::Float16Gemm::exact ? 4 : 3;
  lowering.passes.skip = skipped_passes_;
  return lowering;
}

void Session::check_memory(std::size_t needed, std::int64_t batch) const {
  const std::uint64_t left = backend_.memory->available_bytes();
  if (needed <= left) return;
  std::string hint = "a smaller batch or model needs less";
  for (std::int64_t smaller = batch / 2; smaller > 0; smaller /= 2) {
    const plan::Plan plan =
        plan::compile(graph_for(nn::Purpose::train, smaller), backend_, lowering());
    // The last batch and evaluation have plans of their own, with constants, over the same arena.
    constexpr std::size_t k_plans = 4;
    if (plan.arena_bytes() + k_plans * plan.constant_bytes() > left) continue;
    hint = fmt::format("a batch of {} would fit", smaller);
    break;
  }
  throw UserError(ErrorKind::memory,
                  spec_.where("training.batch_size"),
                  fmt::format("the step needs {} more, {} are {}",
                              mebibytes(needed),
                              mebibytes(left),
                              backend_.device ? "free on the device" : "left to this process"),
                  hint);
}

MemoryUse Session::memory() const {
  MemoryUse use;
  use.state_bytes = state_->bytes() + state_->derived_bytes();
  use.arena_bytes = arena_.bytes();
  for (const data::Split* split : {&dataset_.train, &dataset_.test}) {
    use.data_bytes += split->images.bytes() + split->labels.bytes();
    if (split->weighted()) use.data_bytes += split->weights.bytes();
  }
  use.peak_rss_bytes = halfstep::peak_rss_bytes();
  const backend::MemoryPeak device = backend_.memory->peak();
  use.device_allocated_bytes = device.allocated;
  use.device_in_use_bytes = device.in_use;
  return use;
}

}  // namespace halfstep::train
