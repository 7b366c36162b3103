#pragma once
// JSON Schema (draft-07) of every kind of report, and the checks that a schema cannot say.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/json.h"

namespace halfstep::report {

/// Something a report breaks: `path` as in "history.loss[2]", "" for the whole.
struct Violation {
  std::string path;
  std::string message;

  bool operator==(const Violation&) const = default;
};

/// A kind of report: its word in `kind`, its schema, and what must hold between its members.
struct Kind {
  std::string_view name;
  std::string_view doc;
  Json (*schema)();
  /// Called for reports that follow the schema; null where there is nothing more to check.
  void (*check)(const Json& report, std::vector<Violation>& found);
};

std::span<const Kind> kind_table();

/// The row of a kind, or null.
const Kind* find_kind(std::string_view name);

/// The whole schema document of one kind.
Json schema_document(const Kind& kind);

/// One document that accepts every kind.
Json schema_document();

}  // namespace halfstep::report
