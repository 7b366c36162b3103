#include "report/any_report.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/error.h"
#include "core/ranges.h"
#include "report/check_blocks.h"

namespace halfstep::report {
namespace {

template <class R>
Json schema_of() {
  R report;
  return json_schema(field_ref(report), {.doc = R::k_doc});
}

template <class R>
AnyReport read_as(const Json& document, Found& found) {
  AnyReport report{std::in_place_type<R>};
  read_json(document, field_ref(std::get<R>(report)), found);
  return report;
}

template <std::size_t... I>
constexpr auto make_kinds(std::index_sequence<I...>) {
  return std::array{Kind{std::variant_alternative_t<I, AnyReport>::k_kind,
                         schema_of<std::variant_alternative_t<I, AnyReport>>,
                         read_as<std::variant_alternative_t<I, AnyReport>>}...};
}

constexpr auto k_kinds = make_kinds(std::make_index_sequence<std::variant_size_v<AnyReport>>());

constexpr std::string_view k_draft = "http://json-schema.org/draft-07/schema#";

/// The report of a document, and all its violations.
std::pair<AnyReport, Found> read_checked(const Json& document) {
  if (!document.is_object()) return {AnyReport(), {{"", "is not an object"}}};
  if (!document.contains("kind")) {
    return {AnyReport(), {{"kind", "is missing, so this is not a report"}}};
  }
  const Json& word = document.at("kind");
  const Kind* kind = word.is_string() ? find_kind(word.get<std::string>()) : nullptr;
  if (kind == nullptr) {
    const auto known = mapped<std::string_view>(k_kinds, &Kind::name);
    return {AnyReport(),
            {{"kind", fmt::format("is {}, must be {}", repr(word), fmt::join(known, " or "))}}};
  }
  Found found;
  AnyReport report = kind->read(document, found);
  if (found.empty()) {
    check_nonfinite(document, found);
    std::visit(
        [&](const auto& r) {
          if constexpr (requires { check(r, found); }) check(r, found);
        },
        report);
  }
  return {std::move(report), std::move(found)};
}

}  // namespace

std::span<const Kind> kind_table() { return k_kinds; }

const Kind* find_kind(std::string_view name) { return find_or_null(k_kinds, name, &Kind::name); }

std::string_view kind_of(const AnyReport& report) { return k_kinds[report.index()].name; }

Json schema_document(const Kind& kind) {
  Json document{{"$schema", k_draft}, {"title", "halfstep report: " + std::string(kind.name)}};
  document.update(kind.schema());
  return document;
}

Json schema_document() {
  Json document{{"$schema", k_draft}, {"title", "halfstep report"}, {"oneOf", Json::array()}};
  for (const Kind& kind : k_kinds) document["oneOf"].push_back(kind.schema());
  return document;
}

Found validate(const Json& document) { return read_checked(document).second; }

Document read_valid_report(const std::string& path) {
  constexpr std::size_t k_max_named = 5;
  Json document = read_report(path);
  auto [report, found] = read_checked(document);
  if (found.empty()) return {std::move(document), std::move(report)};
  std::vector<Problem> problems;
  for (const Violation& v : found) {
    if (problems.size() == k_max_named) break;
    problems.push_back({{path, 0, 0, v.path}, v.message, ""});
  }
  if (found.size() > k_max_named) {
    problems.push_back({{path, 0, 0, ""},
                        fmt::format("{} more violations", found.size() - k_max_named),
                        "halfstep report validate lists all"});
  }
  throw UserError(ErrorKind::data, std::move(problems));
}

}  // namespace halfstep::report
