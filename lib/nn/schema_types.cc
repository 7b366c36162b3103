#include "nn/schema_types.h"

#include "nn/layers/table.h"
#include "nn/losses/loss.h"
#include "nn/optim/optimizer.h"
#include "nn/optim/schedule.h"

namespace halfstep::nn {
namespace {

bool is_initializer(std::string_view kind) { return kind.ends_with("_initializer"); }

template <class Table>
std::vector<std::string> types_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto* def : table) names.emplace_back(def->type);
  return names;
}

template <class Table>
void visit(const Table& table, std::string_view type, config::Fields& f) {
  for (const auto* def : table) {
    if (def->type == type) def->fields(f);
  }
}

std::vector<std::string> names_of(std::string_view kind) {
  if (kind == "layers" || kind == "nodes") return types_of(layer_table());
  if (kind == "loss") return types_of(loss_table());
  if (kind == "optimizer") return types_of(optimizer_table());
  std::vector<std::string> names;
  if (kind == "learning_rate") {
    for (const ScheduleDef& def : schedule_table()) names.emplace_back(def.type);
  }
  if (is_initializer(kind)) {
    names.assign(initializer_names().begin(), initializer_names().end());
  }
  return names;
}

void visit_fields(std::string_view kind, std::string_view type, config::Fields& f) {
  LayerCommon common;
  if (kind == "layers") {
    f.field("name",
            common.name,
            {.doc = "Name of the layer and prefix of its weights; null: its type, numbered where "
                    "there are several."});
  }
  if (kind == "nodes") {
    f.field("from",
            common.from,
            {.doc = "Names of the nodes or inputs that the layer takes.", .required = true});
  }
  if (kind == "layers" || kind == "nodes") {
    common.settings(f);
    visit(layer_table(), type, f);
  }
  if (kind == "loss") visit(loss_table(), type, f);
  if (kind == "optimizer") {
    OptimizerSpec spec;
    spec.fields(f);
    visit(optimizer_table(), type, f);
  }
  if (kind == "learning_rate") {
    for (const ScheduleDef& def : schedule_table()) {
      if (def.type == type) def.fields(f);
    }
  }
  if (is_initializer(kind)) visit_initializer(type, f);
}

std::string family_of(std::string_view kind) {
  return std::string(is_initializer(kind) ? "initializer" : kind);
}

}  // namespace

config::SchemaTypes schema_types() { return {family_of, names_of, visit_fields}; }

}  // namespace halfstep::nn
