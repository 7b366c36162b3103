#include "config/misplaced_keys.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "config/describe.h"
#include "config/run_spec.h"
#include "core/ranges.h"

namespace halfstep::config {
namespace {

/// The section of a field: "training.checkpoint_every" of its steps, "" of the root's keys.
std::string_view section_of(const FieldDoc& field) {
  const std::string_view path = field.path;
  return path.size() == field.name.size() ? ""
                                          : path.substr(0, path.size() - field.name.size() - 1);
}

void report_in(const Node& section,
               std::string_view path,
               const std::vector<FieldDoc>& fields,
               Diagnostics& diagnostics) {
  std::vector<std::string> own;
  for (const FieldDoc& field : fields) {
    if (section_of(field) == path) own.push_back(field.name);
  }
  for (const Node::Entry& entry : section.entries) {
    std::vector<const FieldDoc*> others;
    for (const FieldDoc& field : fields) {
      if (field.name == entry.key) others.push_back(&field);
    }
    if (contains(own, entry.key) || others.size() != 1) continue;
    if (!nearest(entry.key, own).empty()) continue;
    Where where = entry.where;
    where.path.clear();  // as in the reader's message
    diagnostics.error(
        std::move(where),
        fmt::format("unknown key '{}'{}{}", entry.key, path.empty() ? "" : " in ", path),
        fmt::format("did you mean {}?", others[0]->path));
  }
}

}  // namespace

void report_misplaced_keys(const Node& root, Diagnostics& diagnostics) {
  if (root.kind != Node::Kind::map) return;
  const std::vector<FieldDoc> fields = describe_struct(RunSpec());
  report_in(root, "", fields, diagnostics);
  for (const FieldDoc& field : fields) {
    if (field.type != "section") continue;
    const Node* section = find_path(root, field.path);
    if (section != nullptr && section->kind == Node::Kind::map) {
      report_in(*section, field.path, fields, diagnostics);
    }
  }
}

}  // namespace halfstep::config
