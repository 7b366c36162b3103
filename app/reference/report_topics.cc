// Ops with their lists and kernels, and the fields of reports.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "backend/cpu/kernels.h"
#include "backend/cuda/rows.h"
#include "graph/ops/ops.h"
#include "precision/lists.h"
#include "reference/reference.h"
#include "report/any_report.h"

namespace halfstep::app {
namespace {

using config::FieldDoc;

// Ops.

std::string port_text(const graph::Port& port) {
  const std::string type = port.fixed ? std::string(name(*port.fixed)) : port.type_attr;
  const std::string typed = port.ref ? fmt::format("Ref({})", type) : type;
  return fmt::format("{}{}: {}{}",
                     port.name,
                     port.optional ? "?" : "",
                     port.count_attr.empty() ? "" : port.count_attr + "*",
                     typed);
}

std::string ports_text(const std::vector<graph::Port>& ports) {
  std::vector<std::string> texts;
  for (const graph::Port& port : ports) texts.push_back(port_text(port));
  return fmt::format("({})", fmt::join(texts, ", "));
}

std::string types_text(const graph::OpDef& op) {
  std::vector<std::string> texts;
  for (const graph::TypeAttr& attr : op.types) {
    std::vector<std::string_view> dtypes;
    for (const DType dtype : all_dtypes()) {
      if (attr.allowed.contains(dtype)) dtypes.push_back(name(dtype));
    }
    const bool any = dtypes.size() == all_dtypes().size();
    texts.push_back(fmt::format("{}: {}{}",
                                attr.name,
                                attr.is_list ? "list of " : "",
                                any ? "any dtype" : fmt::format("{}", fmt::join(dtypes, ", "))));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// "cuda infer, bf16 infer, cpu infer, fp16_cpu infer", and equal lists once: "infer".
std::string lists_text(std::string_view op) {
  using precision::Mode;
  constexpr precision::Libraries k_newest{.cuda = 99'990, .cudnn = 99'990};
  static const auto k_lists = [&] {
    std::vector<std::pair<Mode, precision::OpLists>> lists;
    for (const Mode mode : {Mode::cuda, Mode::bf16, Mode::cpu, Mode::fp16_cpu}) {
      lists.emplace_back(mode,
                         precision::make_lists(mode, k_newest, precision::Level::standard, {}));
    }
    return lists;
  }();
  std::vector<std::string> each;
  std::set<std::string_view> different;
  for (const auto& [mode, lists] : k_lists) {
    const auto list = lists.of(op);
    const std::string_view word = list ? name(*list) : "none";
    different.insert(word);
    each.push_back(fmt::format("{} {}", name(mode), word));
  }
  if (different.size() == 1) return std::string(*different.begin());
  return fmt::format("{}", fmt::join(each, ", "));
}

std::string kernels_text(std::span<const backend::Kernel> kernels, std::string_view op) {
  std::vector<std::string_view> names;
  for (const backend::Kernel& kernel : kernels) {
    const bool listed = std::find(names.begin(), names.end(), kernel.name) != names.end();
    if (kernel.op == op && !listed) names.push_back(kernel.name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

Entry op_entry(const graph::OpDef& op) {
  Entry entry{.kind = "op", .name = op.name, .prefixes = {"op", "ops"}};
  entry.facts.push_back(
      {"signature", fmt::format("{} -> {}", ports_text(op.inputs), ports_text(op.outputs))});
  if (!op.types.empty()) entry.facts.push_back({"dtypes", types_text(op)});
  entry.facts.push_back({"lists", lists_text(op.name)});
  entry.facts.push_back({"gradient", op.gradient == nullptr ? "none" : "yes"});
  entry.facts.push_back({"on a CPU", kernels_text(backend::cpu::all_kernels(), op.name)});
  entry.facts.push_back({"on a GPU", kernels_text(backend::cuda::rows(), op.name)});
  return entry;
}

// Reports.

using report::Json;

/// "integer", "list of objects", "map of numbers"; "value" where the schema leaves it open.
std::string json_type(const Json& schema, bool several = false) {
  const std::string plural = several ? "s" : "";
  if (schema.contains("const")) return "always " + halfstep::shown(schema["const"]);
  if (schema.contains("enum")) return "one of" + plural;
  if (!schema.contains("type")) return "value" + plural;
  const Json& given = schema["type"];
  const std::string type =
      given.is_array() ? given[0].get<std::string>() : given.get<std::string>();
  if (type == "array") return "list" + plural + " of " + json_type(schema["items"], true);
  if (type == "object" && schema.contains("additionalProperties") &&
      schema["additionalProperties"].is_object()) {
    return "map" + plural + " to " + json_type(schema["additionalProperties"], true);
  }
  return type + plural;
}

/// The schema of the objects in a field: its own, or of the elements of a list or map.
const Json& innermost(const Json& schema) {
  if (schema.contains("items")) return innermost(schema["items"]);
  if (schema.contains("additionalProperties") && schema["additionalProperties"].is_object()) {
    return innermost(schema["additionalProperties"]);
  }
  return schema;
}

/// The fields of all reports. An object that several reports have is described once: `described`
/// maps its schema to its full path.
class ReportFields {
 public:
  std::vector<FieldDoc> of(const Json& report, const std::string& name) {
    fields_.clear();
    add(report, name, "");
    return std::move(fields_);
  }

 private:
  void add(const Json& object, const std::string& report, const std::string& prefix) {
    if (!object.contains("properties")) return;
    for (const auto& [name, schema] : object["properties"].items()) {
      FieldDoc field;
      field.name = name;
      field.path = prefix + name;
      field.type = json_type(schema);
      if (schema.contains("description")) field.doc = schema["description"].get<std::string>();
      if (schema.contains("enum")) {
        for (const Json& word : schema["enum"]) {
          if (word.is_string()) field.words.push_back(word.get<std::string>());
        }
      }
      field.nullable = schema.contains("type") && schema["type"].is_array();
      if (schema.contains("minimum")) field.min = schema["minimum"].get<double>();
      if (schema.contains("maximum")) field.max = schema["maximum"].get<double>();
      const Json& inner = innermost(schema);
      const bool object_below = inner.contains("properties");
      const std::string path = report + "." + field.path;
      const auto [known, first] = object_below
                                      ? described_.emplace(inner["properties"].dump(), path)
                                      : std::pair{described_.end(), true};
      if (!first)
        field.doc +=
            fmt::format("{}members as in `{}`", field.doc.empty() ? "" : "; ", known->second);
      const std::string below = field.path + ".";
      fields_.push_back(std::move(field));
      if (object_below && first) add(inner, report, below);
    }
  }

  std::map<std::string, std::string> described_;
  std::vector<FieldDoc> fields_;
};

}  // namespace

Topic ops_topic() {
  Topic topic{
      .name = "ops",
      .title = "Ops",
      .doc = "ops of a graph: signature, lists of the rewrite, kernels",
      .text =
          "A training step is a graph of these ops, named as TensorFlow's where TensorFlow has "
          "them. `lists` is the list that the automatic rewrite has an op on, by mode where the "
          "modes differ; an op on none keeps float32, and no conversion passes through it. A "
          "node runs on the first of an op's kernels that accepts its dtypes, shapes and "
          "instruction set, or on the one with the least predicted time: `halfstep explain "
          "CONFIG` says which. Ops that are only read from written graphs, for "
          "`halfstep explain --graph`, have no kernels and are not listed."};
  for (const graph::OpDef& op : graph::op_table().all()) {
    if (op.infer != nullptr) topic.entries.push_back(op_entry(op));
  }
  return topic;
}

Topic reports_topic() {
  Topic topic{.name = "reports",
              .title = "Reports",
              .doc = "every field of the JSON reports",
              .text =
                  "Reports are the JSON that commands print with `--json` and write into run "
                  "directories. Every field of a kind is in each of its reports, in this order; "
                  "one that does not apply is null. A list or map and the objects in it share a "
                  "path. Numbers that are not finite are null, and `nonfinite` says which. "
                  "`halfstep report schema KIND` prints the same as a JSON Schema, `halfstep "
                  "report validate FILE` checks a file against it."};
  ReportFields fields;
  for (const report::Kind& kind : report::kind_table()) {
    const Json schema = kind.schema();
    const std::string name = fmt::format("{}_report", kind.name);
    topic.entries.push_back({.kind = "report",
                             .name = name,
                             .doc = schema["description"].get<std::string>(),
                             .arguments = fields.of(schema, name),
                             .prefixes = {"report"}});
  }
  return topic;
}

}  // namespace halfstep::app
