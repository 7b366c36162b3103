#include "report/context.h"

#include <charconv>

#include "config/printer.h"
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
  return {
      {"date", utc_now()},
      {"host_name", utf8(host_name())},
      {"executable", utf8(executable_path())},
      {"num_cpus", available_processors()},
      {"threads", backend.capabilities.threads},
      {"cpu_scaling_enabled", nullptr},
      {"load_avg", std::move(load)},
      {"library_version", build.version},
      {"library_build_type", build.build_type},
      {"compiler", build.compiler},
      {"git_commit", build.git_commit.empty() ? Json(nullptr) : Json(build.git_commit)},
      {"git_dirty", build.git_dirty},
      {"device", backend.name},
      {"cpu", {{"model", utf8(cpu_model())}, {"isa", backend::isa_names(backend.capabilities)}}},
      {"gpu", Json::array()},
      {"versions",
       {{"onednn", backend::onednn_version()},
        {"cuda", nullptr},
        {"cudnn", nullptr},
        {"nccl", nullptr},
        {"mpi", nullptr}}}};
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
