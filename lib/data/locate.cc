#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "config/data_spec.h"
#include "core/error.h"
#include "core/log.h"
#include "data/file_kind.h"
#include "data/image_folder.h"
#include "data/load_dataset.h"
#include "data/text_tokens.h"

namespace halfstep::data {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string join(const std::string& folder, std::string_view name) {
  return name.empty() ? folder : (fs::path(folder) / name).string();
}

/// The file in the folder under one of its spellings: plain or .gz, with the dot that some mirrors
/// use ("train-images.idx3-ubyte"), and with another rank ("idx4" of colour images). Empty when
/// there is none.
std::string find_file(const std::string& folder, std::string_view name) {
  std::vector<std::string> spellings{std::string(name)};
  if (const std::size_t at = name.rfind("-idx"); at != std::string_view::npos) {
    for (const char rank : {name[at + 4], '1', '2', '3', '4'}) {
      for (const char mark : {'-', '.'}) {
        spellings.emplace_back(name).at(at) = mark;
        spellings.back().at(at + 4) = rank;
      }
    }
  }
  for (const std::string& spelling : spellings) {
    for (const std::string_view extension : {"", ".gz"}) {
      std::string path = join(folder, spelling + std::string(extension));
      if (is_file(path)) return path;
    }
  }
  return {};
}

struct Search {
  std::vector<std::string> files;
  std::vector<std::string_view> missing;
  std::size_t found = 0;
};

Search search_folder(const DatasetDef& def, const std::string& folder) {
  Search search;
  for (const DataFile& file : def.files) {
    search.files.push_back(find_file(folder, file.name));
    if (search.files.back().empty()) {
      search.missing.push_back(file.name);
    } else {
      ++search.found;
    }
  }
  const std::size_t half = def.files.size() / 2;
  const bool no_test = search.files.size() > half && search.found == half &&
                       search.missing.size() == half && search.missing[0] == def.files[half].name;
  if (def.test_optional && no_test) search.missing.clear();
  return search;
}

/// Collects the searched paths, for the message when nothing is found.
class SearchedPaths {
 public:
  void add(const std::string& path, std::string_view remark = {}) {
    text_ += fmt::format("{}{}", text_.empty() ? "" : ", ", path);
    if (!remark.empty()) text_ += fmt::format(" ({})", remark);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::optional<LocatedDataset> look_in_folder(const DatasetDef& def,
                                             const std::string& folder,
                                             SearchedPaths& searched) {
  if (!is_folder(folder)) {
    searched.add(folder, is_file(folder) ? "not a folder" : "not there");
    return std::nullopt;
  }
  Search nearest;
  for (const std::string_view sub : {std::string_view(), def.folder}) {
    const std::string path = join(folder, sub);
    Search search = search_folder(def, path);
    if (search.missing.empty()) return LocatedDataset{def, path, std::move(search.files)};
    if (search.found >= nearest.found) nearest = std::move(search);
  }
  searched.add(folder, fmt::format("no {}", nearest.missing.front()));
  if (nearest.found > 0) {
    log_warning(
        "{} has only a part of {}: {} is missing", folder, def.name, nearest.missing.front());
  }
  return std::nullopt;
}

std::optional<LocatedDataset> look_for_npz(const DatasetDef& def, const std::string& path) {
  if (!is_file(path)) return std::nullopt;
  DatasetDef as_npz = def;
  as_npz.load = load_npz_set;
  as_npz.files = {};
  return LocatedDataset{as_npz, path, {path}};
}

LocatedDataset locate_named(const DatasetDef& def, const DataOptions& options) {
  if (def.files.empty()) return {def, "generated", {}};
  SearchedPaths searched;
  const std::string name(def.name);
  for (const std::string& root : options.search_paths) {
    const std::string folder = join(root, name);
    for (const std::string& npz : {folder + ".npz", join(folder, name + ".npz")}) {
      if (std::optional<LocatedDataset> found = look_for_npz(def, npz)) return *found;
    }
    if (std::optional<LocatedDataset> found = look_in_folder(def, folder, searched)) return *found;
  }
  if (!def.system_folder.empty()) {
    const std::string folder(def.system_folder);
    if (std::optional<LocatedDataset> found = look_in_folder(def, folder, searched)) return *found;
  }
  if (searched.text().empty()) searched.add("nowhere, no folder for data sets is set");
  throw UserError(ErrorKind::data,
                  options.where,
                  fmt::format("data set '{}' was not found; looked at {}", name, searched.text()),
                  fmt::format("{}; or set HALFSTEP_DATA to the folder that holds {}/ or {}.npz",
                              def.remedy,
                              name,
                              name));
}

LocatedDataset locate_format(const DatasetDef& def, const DataOptions& options) {
  if (def.load == load_synthetic_digits) return {def, "generated", {}};
  if (options.path.empty()) {
    throw UserError(
        ErrorKind::config, options.where, fmt::format("format '{}' needs a path", def.name));
  }
  if (def.load == load_image_folder) {
    if (!is_folder(options.path)) {
      throw UserError(ErrorKind::data,
                      options.where,
                      fmt::format("no folder of images: {} is {}",
                                  options.path,
                                  is_file(options.path) ? "a file" : "not there"));
    }
    return {def, options.path, image_folder_files(options)};
  }
  if (def.load == load_text_set && is_folder(options.path)) {
    return {def, options.path, text_files(options.path)};
  }
  if (def.files.empty()) {
    if (std::error_code ignored; !fs::exists(options.path, ignored)) {
      throw UserError(ErrorKind::data,
                      options.where,
                      fmt::format("no {} data: {} is not there", def.name, options.path));
    }
    return {def, options.path, {options.path}};
  }
  if (def.load == load_csv_set && is_file(options.path)) {
    return {def, options.path, {options.path, {}}};
  }
  if (is_file(options.path)) {
    const FileKind kind = file_kind_of(options.path);
    throw UserError(ErrorKind::data,
                    options.where,
                    fmt::format("format {} is read from a folder; {} is {}",
                                def.name,
                                options.path,
                                kind.name.empty() ? "a file" : kind.name),
                    kind.remedy);
  }
  SearchedPaths searched;
  if (std::optional<LocatedDataset> found = look_in_folder(def, options.path, searched))
    return *found;
  throw UserError(
      ErrorKind::data,
      options.where,
      fmt::format("no {} data in {}", def.name, searched.text()),
      def.load == load_csv_set
          ? "path names a CSV file, or a folder that holds train.csv"
          : fmt::format("the folder must hold {}, with or without .gz", def.files[0].name));
}

/// The format of files that have one of these endings, perhaps with .gz behind it.
struct Ending {
  std::string_view ending;
  config::DataFormat format;
};
constexpr std::array k_endings{Ending{".npz", config::DataFormat::npz},
                               Ending{".csv", config::DataFormat::csv},
                               Ending{".tsv", config::DataFormat::csv},
                               Ending{".txt", config::DataFormat::text}};

std::string format_of_file(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  for (const Ending& each : k_endings) {
    if (path.ends_with(each.ending)) {
      return std::string(config::name_of(each.format, config::k_data_formats));
    }
  }
  return {};
}

/// The names in a folder, without those that begin with a dot, sorted; some of very many.
std::vector<std::string> names_in(const std::string& folder) {
  constexpr std::size_t k_max = 10'000;
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator each(folder, error);
       !error && each != fs::directory_iterator() && names.size() < k_max;
       each.increment(error)) {
    const std::string name = each->path().filename().string();
    if (!name.starts_with('.')) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

/// A path that shows no format, or the name of nothing.
Problem unknown_set(const std::string& name) {
  const std::string unknown = fmt::format("unknown data set '{}'", name);
  std::vector<std::string_view> formats_of_paths;
  for (const DatasetDef& def : formats()) {
    if (def.load != load_synthetic_digits) formats_of_paths.push_back(def.name);
  }
  const std::string needs_format =
      fmt::format("a path needs its format, one of {}", fmt::join(formats_of_paths, ", "));
  std::error_code ignored;
  if (is_folder(name)) {
    const std::vector<std::string> names = names_in(name);
    if (names.empty()) {
      return {{},
              unknown + ": it is an empty folder",
              "a folder of data holds text files, a folder of images for each class, or the files "
              "of IDX or CIFAR"};
    }
    return {
        {},
        fmt::format(
            "{}: it is a folder whose files show no format, such as '{}'", unknown, names.front()),
        needs_format};
  }
  if (fs::exists(name, ignored)) {
    const FileKind kind = file_kind_of(name);
    return {{},
            kind.name.empty() ? unknown : fmt::format("{}: it is {}", unknown, kind.name),
            kind.remedy.empty() ? needs_format : kind.remedy};
  }
  const std::vector<std::string> sets = dataset_names();
  const std::string all = fmt::format("one of {}", fmt::join(sets, ", "));
  const fs::path path(name);
  if (!path.has_parent_path() && !path.has_extension()) {
    const std::string nearest = did_you_mean(name, sets);
    return {{}, unknown, nearest.empty() ? all : nearest};
  }
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  const std::string nearest = halfstep::nearest(path.filename().string(), names_in(folder));
  return {{},
          unknown + ", and there is no such file or folder",
          nearest.empty()
              ? all
              : fmt::format("did you mean '{}'?", (path.parent_path() / nearest).string())};
}

}  // namespace

std::string format_at(const std::string& path) {
  if (is_file(path)) return format_of_file(path);
  if (!is_folder(path)) return {};
  for (const DatasetDef& def : formats()) {
    if (def.files.empty()) continue;
    for (const std::string_view sub : {std::string_view(), def.folder}) {
      if (search_folder(def, join(path, sub)).missing.empty()) return std::string(def.name);
    }
  }
  std::error_code error;
  bool texts = false;
  for (fs::directory_iterator each(path, error); !error && each != fs::directory_iterator();
       each.increment(error)) {
    const std::string name = each->path().filename().string();
    if (name.starts_with('.')) continue;
    if (is_folder(each->path().string())) {
      return std::string(config::name_of(config::DataFormat::image_folder, config::k_data_formats));
    }
    texts = texts || format_of_file(name) == "text";
  }
  return texts ? "text" : "";
}

LocatedDataset locate(const DataOptions& options) {
  const auto config_error = [&](std::string message, std::string hint) {
    return UserError(ErrorKind::config, options.where, std::move(message), std::move(hint));
  };
  if (options.name.empty() == options.format.empty()) {
    throw config_error("data needs either a name, or a format and a path", {});
  }
  if (!options.name.empty()) {
    if (!options.path.empty()) throw config_error("data has a name; a path excludes it", {});
    const DatasetDef* def = find_set(options.name);
    if (def == nullptr) {
      const Problem problem = unknown_set(options.name);
      throw config_error(problem.message, problem.hint);
    }
    return locate_named(*def, options);
  }
  const DatasetDef* def = find_format(options.format);
  if (def == nullptr) {
    throw config_error(fmt::format("unknown data format '{}'", options.format),
                       choices(options.format, dataset_formats()));
  }
  return locate_format(*def, options);
}

}  // namespace halfstep::data
