#include "report/context.h"

#include <fmt/format.h>

#include <charconv>

#include "backend/cost_model.h"
#include "config/printer.h"
#include "core/hash.h"
#include "core/parallel.h"
#include "core/system.h"
#include "report/build_info.h"

namespace halfstep::report {
namespace {

Json scalar(const config::Node& node) {
  const std::string& text = node.text;
  if (node.quoted) return utf8(text);
  if (text == "null") return nullptr;
  if (text == "true" || text == "false") return text == "true";
  const char* begin = text.data();
  const char* end = begin + text.size();
  std::int64_t integer = 0;
  if (const auto [at, error] = std::from_chars(begin, end, integer);
      error == std::errc() && at == end) {
    return integer;
  }
  double real = 0;
  if (const auto [at, error] = std::from_chars(begin, end, real);
      error == std::errc() && at == end) {
    return number(real);
  }
  return utf8(text);
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(utf8(text)); }

/// The one that computes, if it is not the CPU.
Json gpus(const backend::Backend& backend) {
  Json list = Json::array();
  if (!backend.device) return list;
  const int capability = backend.capabilities.compute_capability;
  list.push_back({{"index", backend.facts.index},
                  {"name", utf8(backend.facts.name)},
                  {"flavour", backend.facts.flavour},
                  {"compute_capability", fmt::format("{}.{}", capability / 10, capability % 10)},
                  {"multiprocessors", backend.facts.multiprocessors},
                  {"memory_bytes", backend.facts.memory_bytes},
                  {"driver", or_null(backend.facts.driver)},
                  {"cublas", or_null(backend.facts.cublas)}});
  return list;
}

/// The measurements that chose the CPU's kernels; null where nothing was measured for them.
Json kernel_costs(const backend::Backend& backend) {
  const backend::CostModel& costs = backend::cost_model(backend.capabilities);
  if (backend.device || costs.samples().empty()) return nullptr;
  return {{"origin", utf8(costs.origin())}, {"xxh3_128", Hasher().add(costs.text()).hex()}};
}

}  // namespace

Json to_json(const config::Node& node) {
  switch (node.kind) {
    case config::Node::Kind::null:
      return nullptr;
    case config::Node::Kind::scalar:
      return scalar(node);
    case config::Node::Kind::sequence: {
      Json list = Json::array();
      for (const config::Node& item : node.items) list.push_back(to_json(item));
      return list;
    }
    case config::Node::Kind::map:
      break;
  }
  Json map = Json::object();
  for (const config::Node::Entry& entry : node.entries) map[utf8(entry.key)] = to_json(entry.value);
  return map;
}

Json context(const backend::Backend& backend) {
  const BuildInfo build = build_info();
  Json load = Json::array();
  for (double average : load_average()) load.push_back(number(average));
  return {{"date", utc_now()},
          {"host_name", utf8(host_name())},
          {"executable", utf8(executable_path())},
          {"num_cpus", available_processors()},
          {"threads", thread_count()},
          {"cpu_scaling_enabled", nullptr},
          {"load_avg", std::move(load)},
          {"library_version", build.version},
          {"library_build_type", build.build_type},
          {"compiler", build.compiler},
          {"git_commit", build.git_commit.empty() ? Json(nullptr) : Json(build.git_commit)},
          {"git_dirty", build.git_dirty},
          {"device", backend.name},
          {"cpu",
           {{"model", utf8(cpu_model())},
            {"isa", backend::isa_names(backend.capabilities)},
            {"kernel_costs", kernel_costs(backend)}}},
          {"gpu", gpus(backend)},
          {"versions",
           {{"onednn", backend::onednn_version()},
            {"cuda", or_null(backend.facts.runtime)},
            {"cudnn", or_null(backend.facts.cudnn)},
            {"nccl", nullptr},
            {"mpi", nullptr}}}};
}

Json command_block(const RunInfo& run) {
  Json words = Json::array();
  for (const std::string& word : run.command) words.push_back(utf8(word));
  return words;
}

Json config_block(const config::RunSpec& spec, const std::vector<std::string>& overrides) {
  Json written = Json::array();
  for (const std::string& text : overrides) written.push_back(utf8(text));
  return {{"sha256", config::config_hash(spec)},
          {"resolved", to_json(config::to_node(spec))},
          {"overrides", std::move(written)}};
}

Json warnings(const std::vector<config::Warning>& warnings) {
  Json list = Json::array();
  for (const config::Warning& w : warnings) {
    list.push_back(
        {{"code", w.code}, {"where", utf8(to_string(w.where))}, {"message", utf8(w.message)}});
  }
  return list;
}

}  // namespace halfstep::report
