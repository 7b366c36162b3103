#include "nn/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "graph/op_handles.h"
#include "graph/ops/fused_update.h"
#include "graph/ops/ops.h"

namespace halfstep::nn {
namespace {

using graph::Builder;
using graph::Phase;
using graph::ScopeGuard;
using graph::Value;

/// The value of 16 bits that a gradient was cast from, which is packed as well: the casts of all
/// gradients come last.
Value before_cast(Builder& b, Value gradient) {
  const graph::Node& node = b.graph().node(gradient.node);
  const bool widens = node.is(graph::ops::k_cast) && node.outputs[0].dtype == DType::float32 &&
                      is_half(b.dtype(node.inputs[0]));
  return widens ? node.inputs[0] : gradient;
}

/// Values that are added over the ranks together, in one message.
struct AllReduceBucket {
  DType dtype;
  Shard shard = {};                 ///< of the sums, where the ranks divide them
  std::vector<Value*> values = {};  ///< are set to their sums, or slices of them, by finish()
  std::int64_t bytes = 0;
  std::vector<graph::TensorType> types = {};
  Value sum = {};

  void add(Builder& b, Value& value) {
    values.push_back(&value);
    bytes += b.shape(value).elements() * static_cast<std::int64_t>(size_bytes(dtype));
  }
  void start(Builder& b, int ranks) {
    std::vector<Value> terms;
    for (const Value* value : values) {
      types.push_back(b.type(*value));
      terms.push_back(before_cast(b, *value));
    }
    sum = shard.divides()
              ? b.add("ReduceScatterStart", terms, {{"T", dtype}, {"ranks", ranks}}, "start")
              : graph::ops::start_all_reduce(b, terms, dtype, ranks);
  }
  void finish(Builder& b) const {
    const std::vector<Value> sums =
        shard.divides() ? wait_for_slices(b) : graph::ops::wait_for_all_reduce(b, sum, types);
    for (std::size_t i = 0; i < sums.size(); ++i) *values[i] = sums[i];
  }

 private:
  std::vector<Value> wait_for_slices(Builder& b) const {
    std::vector<std::int64_t> counts;
    std::vector<DType> dtypes;
    for (const graph::TensorType& type : types) {
      counts.push_back(graph::ops::slice_elements(type.shape.elements(), shard.ranks));
      dtypes.push_back(type.dtype);
    }
    const int wait = b.add_node(
        "ReduceScatterWait",
        {sum},
        {{"Tresults", dtypes}, {"counts", counts}, {"rank", shard.rank}, {"ranks", shard.ranks}},
        "wait");
    std::vector<Value> slices;
    for (std::size_t i = 0; i < types.size(); ++i) slices.push_back({wait, static_cast<int>(i)});
    return slices;
  }
};

/// The size of a bucket for gradients of `bytes` in all: a quarter of them for a small model, so
/// that three buckets overlap with the backward pass. Below k_min latency dominates.
std::int64_t bucket_bytes(const config::ParallelSpec& parallel, std::int64_t bytes) {
  constexpr std::int64_t k_min = 64 << 10;
  return std::min(static_cast<std::int64_t>(parallel.bucket_mib * (1 << 20)),
                  std::max(bytes / 4, k_min));
}

graph::TensorType type_of(Builder& b, Value handle) {
  return graph::ops::variable_type(b.graph().node(handle.node));
}

/// This rank's slice of a weight, as the weight that an optimizer updates.
Weight master_of(Builder& b, const Weight& weight, const Shard& shard) {
  const graph::Variable& whole = *b.graph().variable(weight.name);
  const std::int64_t count = graph::ops::slice_elements(whole.type.shape.elements(), shard.ranks);
  const graph::Slice slice{weight.name, whole.type.shape, shard.rank * count};
  const Value handle = b.variable({.name = weight.name + "/master",
                                   .type = {weight.updated_in, {count}},
                                   .role = graph::Role::master,
                                   .initializer = whole.initializer,
                                   .layer = whole.layer,
                                   .slice = slice});
  return {weight.name, handle, b.read(handle), weight.updated_in, slice, weight.handle};
}

/// Numbers the exchanges of a step so far (attribute `order`): sums of gradients by the time at
/// which their values are computed, others by their position. The graph, unlike its lowering, has
/// the same order on ranks with shares of different sizes.
void number_messages(Builder& b, const std::vector<AllReduceBucket>& gradients) {
  std::set<std::pair<int, int>> starts;  // after the node by which they begin
  for (int id = 0; id < b.graph().size(); ++id) {
    if (graph::ops::collective_phases(b.graph().node(id)) > 0) starts.emplace(id, id);
  }
  for (const AllReduceBucket& bucket : gradients) {
    const int id = bucket.sum.node;
    starts.erase({id, id});
    starts.emplace(std::ranges::max(b.graph().node(id).inputs).node, id);
  }
  std::int64_t order = 0;
  for (const auto& [after, id] : starts) b.graph().node(id).attrs.set("order", ++order);
}

}  // namespace

bool is_sum(std::string_view fetch) { return fetch == "loss" || fetch.starts_with("metric/"); }

std::vector<Value> sum_over_ranks(Builder& b, const std::vector<Value>& values, int ranks) {
  if (ranks == 1 || values.empty()) return values;
  const Value sum = graph::ops::start_all_reduce(b, values, DType::float32, ranks);
  return graph::ops::wait_for_all_reduce(b, sum, graph::ops::types_of(b, values));
}

void all_reduce(StepBuilder& step) {
  if (step.share.ranks == 1) return;
  Builder& b = step.b;
  const config::ParallelSpec& parallel = step.spec.parallel;
  const Shard& shard = step.spec.model.shard;
  const std::string of_ranks = fmt::format("summed over {} ranks", step.share.ranks);
  std::int64_t bytes = 0;
  for (const Value& g : step.gradients) {
    bytes +=
        b.shape(g).elements() * static_cast<std::int64_t>(size_bytes(parallel.all_reduce_dtype));
  }
  const std::int64_t enough_bytes = bucket_bytes(parallel, bytes);
  std::vector<AllReduceBucket> buckets;
  {
    const ScopeGuard scope(
        b,
        step_origin(Phase::backward,
                    fmt::format("{}: gradients {}", name(parallel.all_reduce_dtype), of_ranks)),
        "all_reduce");
    // In the order in which the backward pass computes them.
    std::vector<Value*> ready;
    for (Value& g : step.gradients) ready.push_back(&g);
    std::ranges::sort(ready, {}, [&](const Value* g) { return before_cast(b, *g); });
    for (Value* g : ready) {
      if (buckets.empty() || buckets.back().bytes >= enough_bytes) {
        buckets.push_back({parallel.all_reduce_dtype, shard});
      }
      buckets.back().add(b, *g);
    }
    for (AllReduceBucket& each : buckets) each.start(b, step.share.ranks);
    number_messages(b, buckets);
    b.origin().reason = "float32: loss, metrics and moving statistics " + of_ranks;
    buckets.push_back({DType::float32});
    AllReduceBucket& scalars = buckets.back();
    for (auto& [fetch, value] : b.graph().fetches()) {
      if (is_sum(fetch)) scalars.add(b, value);
    }
    for (Assignment& assignment : step.record.assignments) {
      if (!is_floating(b.dtype(assignment.value))) continue;
      if (!assignment.rows) {
        assignment.value = weighted_by_share(b, assignment.value, step.share);
      }
      scalars.add(b, assignment.value);
    }
    scalars.start(b, step.share.ranks);
  }
  const ScopeGuard scope(b, step_origin(Phase::unscale, of_ranks), "all_reduce");
  for (AllReduceBucket& each : buckets) each.finish(b);
  if (!shard.divides()) return;
  // One that no gradient reaches is never updated, and has a master for the sake of its bits.
  for (const Weight& weight : step.record.weights) master_of(b, weight, shard);
  for (Weight& weight : step.weights) weight = master_of(b, weight, shard);
}

WeightGather::WeightGather(StepBuilder& step) : shard_(step.spec.model.shard) {
  std::int64_t bytes = 0;
  for (const Weight& weight : step.weights) bytes += bytes_of(step.b, weight);
  enough_ = bucket_bytes(step.spec.parallel, bytes);
}

std::int64_t WeightGather::bytes_of(Builder& b, const Weight& weight) const {
  return shard_.ranks * b.shape(weight.read).elements() *
         static_cast<std::int64_t>(size_bytes(type_of(b, weight.copy).dtype));
}

void WeightGather::add(Builder& b, const Weight& weight) {
  const DType dtype = type_of(b, weight.copy).dtype;
  const std::int64_t bytes = bytes_of(b, weight);
  auto bucket = std::find_if(buckets_.begin(), buckets_.end(), [&](const Bucket& each) {
    return each.dtype == dtype && !each.start.valid();
  });
  // A large weight does not hold up those of the layers before it.
  if (bucket != buckets_.end() && bucket->bytes + bytes > enough_) {
    start(b, *bucket);
    bucket = buckets_.end();
  }
  if (bucket == buckets_.end()) bucket = buckets_.insert(bucket, {dtype});
  bucket->bytes += bytes;
  bucket->slices.push_back(b.read(weight.handle));
  bucket->copies.push_back(weight.copy);
}

void WeightGather::start(Builder& b, Bucket& bucket) const {
  const ScopeGuard scope(
      b,
      step_origin(Phase::forward,
                  fmt::format("{}: weights that the ranks divide", name(bucket.dtype))),
      "all_gather");
  bucket.start = b.add("AllGatherStart",
                       bucket.slices,
                       {{"T", bucket.dtype}, {"rank", shard_.rank}, {"ranks", shard_.ranks}},
                       "start");
}

void WeightGather::finish(Builder& b) {
  for (Bucket& bucket : buckets_) {
    if (!bucket.start.valid()) start(b, bucket);
  }
  const ScopeGuard scope(
      b, step_origin(Phase::forward, "weights that the ranks divide"), "all_gather");
  for (const Bucket& bucket : buckets_) {
    std::vector<Value> inputs{bucket.start};
    std::vector<std::int64_t> counts;
    for (const Value& copy : bucket.copies) {
      inputs.push_back(copy);
      counts.push_back(type_of(b, copy).shape.elements());
    }
    b.add_node("AllGatherWait",
               std::move(inputs),
               {{"counts", std::move(counts)}, {"ranks", shard_.ranks}},
               "wait");
  }
}

}  // namespace halfstep::nn
