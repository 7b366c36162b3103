#include "analysis/rank_messages.h"

#include <algorithm>

#include "graph/op_handles.h"
#include "graph/ops/ops.h"
#include "train/ranks.h"

namespace halfstep::analysis {

void RankMessage::fields(Fields& f) {
  f("name", name, "node that begins it");
  f("phase", phase, "of the step");
  f("exchange", exchange, "AllReduce, ReduceScatter or AllGather");
  f("dtype", dtype, "in which it travels");
  f("numbers", numbers, "that all ranks have after it, padding included");
  f("sent_bytes", sent_bytes, "by a rank, to others");
  f("reason", reason, "for the exchange and its dtype");
  f("layers", layers, {.doc = "whose values travel, in order", .each = "one layer"});
}

void RankMessages::fields(Fields& f) {
  f("ranks", ranks, {.doc = "of which the first is explained", .min = 1});
  f("sent_bytes", sent_bytes, "of all messages");
  f("messages", messages, {.doc = "in the order in which they begin", .each = "one message"});
}

std::optional<RankMessages> rank_messages(const graph::Graph& step, bool on_gpus) {
  RankMessages all;
  for (int id = 0; id < step.size(); ++id) {
    const graph::Node& node = step.node(id);
    if (graph::ops::collective_phases(node) == 0) continue;
    const graph::TensorType& packed = node.outputs[0];
    RankMessage& message = all.messages.emplace_back();
    message.name = node.name;
    message.phase = name(node.origin.phase);
    message.exchange = node.op.substr(0, node.op.size() - std::string_view("Start").size());
    message.dtype = name(packed.dtype);
    message.numbers = packed.shape.elements();
    message.sent_bytes = train::sent_bytes(node, on_gpus);
    message.reason = node.origin.reason;
    message.of_layer = !node.origin.layer.empty();
    const auto add = [&](const std::string& layer) {
      if (layer.empty() || std::ranges::count(message.layers, layer) > 0) return;
      message.layers.push_back(layer);
    };
    add(node.origin.layer);
    for (const graph::Value& input : node.inputs) {
      const graph::Node* value = &step.node(input.node);
      // A gradient is cast for its optimizer.
      while (value->is(graph::ops::k_cast)) value = &step.node(value->inputs[0].node);
      add(value->origin.layer);
    }
    all.ranks = node.attrs.get<std::int64_t>("ranks");
    all.sent_bytes += message.sent_bytes;
  }
  return all.messages.empty() ? std::nullopt : std::optional(std::move(all));
}

}  // namespace halfstep::analysis
