#include <fmt/format.h>

#include <set>

#include "report/cross_check_parts.h"
#include "report/cross_checks.h"

namespace halfstep::report {
namespace {

using Found = std::vector<Violation>;

/// "node" of "node:port".
std::string node_of(const std::string& input) { return input.substr(0, input.rfind(':')); }

/// `names` are those of the nodes; with emulated float16, casts read casts too.
void check_casts(const Json& report, std::set<std::string> names, Found& found) {
  for (const Json& cast : report.at("casts")) names.insert(cast.at("name").get<std::string>());
  std::size_t to_half = 0;
  for (std::size_t i = 0; i < report.at("casts").size(); ++i) {
    const Json& cast = report.at("casts")[i];
    const std::string path = fmt::format("casts[{}]", i);
    if (cast.at("from") == cast.at("to")) found.push_back({path + ".to", "is the dtype cast from"});
    if (cast.at("to") == "float16" || cast.at("to") == "bfloat16") ++to_half;
    if (!names.contains(node_of(cast.at("input")))) {
      found.push_back({path + ".input", "is no port of a node or cast"});
    }
    for (std::size_t k = 0; k < cast.at("consumers").size(); ++k) {
      if (names.contains(cast.at("consumers")[k])) continue;
      found.push_back({fmt::format("{}.consumers[{}]", path, k), "is no node or cast"});
    }
  }
  if (report.at("casts_counted") > to_half) {
    found.push_back({"casts_counted", "is more than there are casts to 16 bits"});
  }
}

}  // namespace

void check_graph_rewrite(const Json& report, Found& found) {
  std::set<std::string> nodes;
  for (std::size_t i = 0; i < report.at("nodes").size(); ++i) {
    nodes.insert(report.at("nodes")[i].at("name").get<std::string>());
  }
  check_casts(report, nodes, found);
  for (std::size_t i = 0; i < report.at("paint").size(); ++i) {
    if (nodes.contains(report.at("paint")[i].at("node"))) continue;
    found.push_back({fmt::format("paint[{}].node", i), "is no node"});
  }
  if (report.at("status") == "failed" && report.at("message").is_null()) {
    found.push_back({"message", "is null although the rewrite failed"});
  }
  if (report.at("status") == "ok") return;
  if (report.at("converted_attrs") != 0) {
    found.push_back({"converted_attrs", "is not 0 although nothing was rewritten"});
  }
  if (!report.at("casts").empty()) {
    found.push_back({"casts", "are there although nothing was rewritten"});
  }
}

void check_explain(const Json& report, Found& found) {
  double all = 0, half = 0;
  std::size_t casts = 0;
  for (const Json& op : report.at("ops")) {
    const double flops = op.value("flops", 0.0);
    const Json& dtype = op.at("compute_dtype");
    all += flops;
    if (dtype == "float16" || dtype == "bfloat16") half += flops;
    if (op.at("type") == "Cast") ++casts;
  }
  check_agrees(report.at("half_flops_share"),
               all > 0 ? half / all : 0,
               "half_flops_share",
               "the ops",
               found,
               report.at("ops").size());
  if (report.at("casts_executed") > casts) {
    found.push_back({"casts_executed", "is more than there are casts among the ops"});
  }
  const Json& rewrite = report.at("rewrite");
  if (rewrite.at("nodes_converted") > rewrite.at("nodes_total")) {
    found.push_back({"rewrite.nodes_converted", "is more than nodes_total"});
  }
}

}  // namespace halfstep::report
