#include "config/outputs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "config/read_value.h"
#include "core/ranges.h"

namespace halfstep::config {
namespace {

std::string key_of(std::string_view name) {
  std::string key(name);
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  std::ranges::replace_if(
      key, [&](char c) { return !is_plain(c); }, '_');
  return key;
}

/// A map from outputs: names that are none are errors.
void check_names(const Node& map, const std::vector<std::string>& names, Diagnostics& diagnostics) {
  for (const Node::Entry& entry : map.entries) {
    if (contains(names, entry.key)) continue;
    Where where = entry.where;
    where.path = map.where.path;
    diagnostics.error(std::move(where),
                      fmt::format("the model has no output '{}'", entry.key),
                      choices(entry.key, names));
  }
}

/// Reports a map in place of the names of metrics; returns those that it seems to mean, for the
/// check of names.
std::vector<Node> refuse_map(const Node& map, std::string_view wanted, Diagnostics& diagnostics) {
  std::vector<std::string> names;
  if (const Node* type = map.find("type")) {
    names.push_back(type->text);
  } else {
    names = mapped<std::string>(map.entries, &Node::Entry::key);
  }
  diagnostics.error(map.where,
                    fmt::format("{}, got a map", wanted),
                    names.empty() ? "" : fmt::format("metrics: [{}]", fmt::join(names, ", ")));
  return mapped<Node>(names,
                      [&](const std::string& name) { return Node::scalar(name, map.where); });
}

/// The names of metrics in a list of them, or one that is no list.
std::vector<Node> metric_items(const Node& value, Diagnostics& diagnostics) {
  if (value.kind == Node::Kind::scalar) return {value};
  std::vector<Node> items;
  const auto add = [&](const Node& item) {
    if (item.kind != Node::Kind::map) return items.push_back(item);
    constexpr std::string_view k_wanted = "must be the name of a metric, which has no arguments";
    std::ranges::move(refuse_map(item, k_wanted, diagnostics), std::back_inserter(items));
  };
  if (value.kind == Node::Kind::map) add(value);
  for (const Node& item : value.items) add(item);
  return items;
}

/// Those of the output `name`, in a model of one "".
std::vector<std::string> own_class_names(const RunSpec& spec, std::string_view name) {
  const NamedStrings* own = find_or_null(spec.data.class_names, name, &NamedStrings::name);
  return own != nullptr ? own->value : std::vector<std::string>();
}

/// Class names of the only output in a map, or of several in a list.
void check_class_names(const RunSpec& spec, Diagnostics& diagnostics) {
  const std::vector<NamedStrings>& given = spec.data.class_names;
  const std::vector<std::string>& names = spec.model.outputs;
  const Node* node = find_path(spec.source, "data.class_names");
  if (given.empty() || node == nullptr) return;
  const bool several = names.size() > 1;
  if (several) check_names(*node, names, diagnostics);
  if (several == !given[0].name.empty()) return;
  diagnostics.error(node->where,
                    several ? "names the classes of one output, and the model has several"
                            : "names the classes of several outputs, and the model has one",
                    several ? fmt::format("{{{}: [...]}} names those of an output", names[0])
                            : "a list names its classes");
}

void check_keys(const RunSpec& spec,
                const std::vector<TrainedOutput>& outputs,
                Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& key = outputs[i].key;
    Where where = spec.where(item_path("model.outputs", i));
    if (where.line == 0) where = spec.where("model.outputs");
    for (const std::string_view split : {"train", "val", "test"}) {
      if (key != split && !key.starts_with(metric_name(split, ""))) continue;
      diagnostics.error(where,
                        fmt::format("the metrics of an output '{}' would have the names of those "
                                    "of a split, such as {}_loss",
                                    outputs[i].name,
                                    split),
                        "give the node another name");
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (outputs[k].key != key || outputs[k].name == outputs[i].name) continue;
      diagnostics.error(where,
                        fmt::format("'{}' and '{}' would both be {} in the names of metrics",
                                    outputs[k].name,
                                    outputs[i].name,
                                    key));
    }
  }
}

}  // namespace

std::string metric_name(std::string_view key, std::string_view metric) {
  return key.empty() ? std::string(metric) : fmt::format("{}_{}", key, metric);
}

std::vector<TrainedOutput> trained_outputs(const RunSpec& spec, Diagnostics& diagnostics) {
  const bool by_name = spec.loss.type.empty() && !spec.loss.node.entries.empty();
  check_class_names(spec, diagnostics);
  if (spec.model.outputs.size() < 2) {
    if (by_name) {
      diagnostics.error(spec.loss.node.where,
                        "missing required key 'type'",
                        "a map from outputs to losses is for a model of several outputs");
    }
    if (!spec.loss_weights.empty()) {
      diagnostics.error(spec.where("loss_weights"),
                        "weighs the losses of several outputs, and the model has one");
    }
    return {{.name = "",
             .key = "",
             .loss = by_name ? Typed{} : spec.loss,
             .class_names = own_class_names(spec, "")}};
  }
  const std::vector<std::string>& names = spec.model.outputs;
  if (by_name) check_names(spec.loss.node, names, diagnostics);
  if (const Node* weights = find_path(spec.source, "loss_weights")) {
    check_names(*weights, names, diagnostics);
  }
  std::vector<TrainedOutput> outputs;
  for (const std::string& name : names) {
    TrainedOutput& output =
        outputs.emplace_back(TrainedOutput{.name = name,
                                           .key = key_of(name),
                                           .loss = spec.loss,
                                           .class_names = own_class_names(spec, name)});
    const Node* own = by_name ? spec.loss.node.find(name) : nullptr;
    output.has_loss = own == nullptr || own->kind != Node::Kind::null;
    for (const NamedNumber& given : spec.loss_weights) {
      if (given.name != name) continue;
      output.loss_weight = given.value;
      if (output.has_loss) continue;
      diagnostics.error(given.where,
                        fmt::format("weighs the loss of the output '{}', which has none", name));
    }
    if (!by_name) continue;
    output.loss = {};
    if (own == nullptr) {
      diagnostics.error(spec.loss.node.where,
                        fmt::format("has no loss of the output '{}'", name),
                        fmt::format("{}: null computes it without one", name));
    } else if (!output.has_loss) {
      output.loss.where = own->where;
    } else {
      std::optional<Typed> none;
      output.loss = read_name(*own, TypedRef{none, {}, false}, {}, diagnostics).value_or(Typed{});
    }
  }
  if (std::ranges::none_of(outputs, &TrainedOutput::has_loss)) {
    diagnostics.error(spec.loss.node.where, "no output has a loss, so there is nothing to train");
  }
  check_keys(spec, outputs, diagnostics);
  return outputs;
}

std::vector<std::string> default_metrics(const RunSpec& spec) {
  Diagnostics reported;  // by the check of the config
  std::vector<std::string> losses, metrics;
  for (const TrainedOutput& output : trained_outputs(spec, reported)) {
    if (!output.has_loss) continue;
    if (!output.key.empty()) losses.push_back(metric_name(output.key, "loss"));
    metrics.push_back(metric_name(
        output.key, is_regression(output.loss.type) ? "mean_absolute_error" : "accuracy"));
  }
  losses.insert(losses.end(), metrics.begin(), metrics.end());
  return losses;
}

void expand_metrics(Node& root, Diagnostics& diagnostics) {
  const std::vector<std::string> names = scalar_texts(find_path(root, "model.outputs"));
  Node* metrics = root.find("metrics");
  if (metrics == nullptr || metrics->kind == Node::Kind::null) return;
  if (names.size() < 2) {
    if (metrics->kind == Node::Kind::scalar) return;
    metrics->items = metrics->kind == Node::Kind::map
                         ? refuse_map(*metrics, "must be a list of names of metrics", diagnostics)
                         : metric_items(*metrics, diagnostics);
    metrics->entries.clear();
    metrics->kind = Node::Kind::sequence;
    return;
  }
  const auto keys = mapped<std::string>(names, key_of);
  std::vector<std::string> with_loss;
  for (const std::string& name : names) {
    const Node* losses = root.find("loss");
    const Node* own = losses != nullptr ? losses->find(name) : nullptr;
    if (own == nullptr || own->kind != Node::Kind::null) with_loss.push_back(key_of(name));
  }
  Node list;
  list.kind = Node::Kind::sequence;
  list.where = metrics->where;
  const auto add = [&](const std::string& name, const Where& where) {
    list.items.push_back(Node::scalar(name, where));
  };
  for (const std::string& key : with_loss) add(metric_name(key, "loss"), metrics->where);
  // Calls visit(item) for each of the names at `value`; others are left to the reader.
  const auto each = [&](const Node& value, const auto& visit) {
    for (const Node& item : metric_items(value, diagnostics)) {
      item.kind == Node::Kind::scalar ? visit(item) : list.items.push_back(item);
    }
  };
  if (metrics->kind == Node::Kind::map) {
    check_names(*metrics, names, diagnostics);
    for (const Node::Entry& entry : metrics->entries) {
      each(entry.value, [&](const Node& item) {
        if (contains(names, entry.key) && item.text != "loss") {
          add(metric_name(key_of(entry.key), item.text), item.where);
        }
      });
    }
  } else {
    each(*metrics, [&](const Node& item) {
      if (item.text == "loss") return;
      const bool has_key = std::ranges::any_of(
          keys, [&](const std::string& key) { return item.text.starts_with(key + "_"); });
      if (!has_key) {
        for (const std::string& key : with_loss) add(metric_name(key, item.text), item.where);
      } else if (!std::ranges::any_of(list.items, [&](const Node& known) {
                   return known.text == item.text && known.text.ends_with("_loss");
                 })) {
        add(item.text, item.where);
      }
    });
  }
  *metrics = std::move(list);
}

}  // namespace halfstep::config
