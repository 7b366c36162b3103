#include "data/image_folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/log.h"
#include "core/parallel.h"
#include "core/philox.h"
#include "core/ranges.h"
#include "data/dataset_registry.h"
#include "data/file.h"
#include "data/load_dataset.h"

namespace halfstep::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view k_train = "train", k_test = "test";

struct Listing {
  std::vector<std::string> folders;
  std::vector<std::string> files;  ///< all that is no folder
};

/// The names in a folder, sorted, without those that begin with a dot.
Listing list_folder(const std::string& path) {
  Listing listing;
  std::error_code error;
  fs::directory_iterator entries(path, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (name.starts_with(".")) continue;
    (entries->is_directory(error) ? listing.folders : listing.files).push_back(name);
  }
  if (error) throw file_error(path, "cannot be read: {}", error.message());
  std::ranges::sort(listing.folders);
  std::ranges::sort(listing.files);
  return listing;
}

std::string inside(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / name).string();
}

struct Class {
  std::string name;
  std::vector<std::string> images;  ///< paths
};

/// The sub-folders of `path` with their files.
std::vector<Class> read_classes(const std::string& path) {
  const Listing listing = list_folder(path);
  if (listing.folders.empty()) {
    throw UserError(ErrorKind::data,
                    in_file(path),
                    "has no sub-folders; an image_folder has one folder of images per class",
                    "'halfstep help image_folder' shows how images are sorted");
  }
  for (const std::string& name : listing.files) {
    const std::string file = inside(path, name);
    if (is_image(file)) {
      throw UserError(ErrorKind::data,
                      in_file(file),
                      "is an image outside of the folders of classes",
                      "move it into a sub-folder: the sub-folders are the classes");
    }
  }
  std::vector<Class> classes;
  for (const std::string& name : listing.folders) {
    const std::string folder = inside(path, name);
    const Listing content = list_folder(folder);
    if (!content.folders.empty()) {
      throw file_error(
          inside(folder, content.folders.front()),
          "is a folder in the class '{}'; the images of a class must be directly in its folder",
          name);
    }
    if (content.files.empty()) {
      throw UserError(ErrorKind::data,
                      in_file(folder),
                      fmt::format("is empty: there is no image of the class '{}'", name),
                      "remove the folder, or put images into it");
    }
    Class each{name, {}};
    for (const std::string& file : content.files) each.images.push_back(inside(folder, file));
    classes.push_back(std::move(each));
  }
  return classes;
}

void append(std::vector<LabelledImage>& to,
            std::int32_t label,
            std::span<const std::string> images) {
  for (const std::string& path : images) to.push_back({path, label});
}

/// Whether a folder is one of the splits, and no class of that name.
bool is_split(const std::string& path, const Listing& root, std::string_view name) {
  return contains(root.folders, name) && !list_folder(inside(path, name)).folders.empty();
}

/// Folders `train` and `test`.
ImageFolder list_splits(const DataOptions& options, const Listing& root) {
  for (const std::string& name : root.folders) {
    if (name == k_train || name == k_test) continue;
    throw UserError(ErrorKind::data,
                    in_file(inside(options.path, name)),
                    "is neither train nor test, the two splits that are read",
                    "data.validation_split takes validation samples from train");
  }
  ImageFolder folder;
  for (const Class& each : read_classes(inside(options.path, k_train))) {
    append(folder.train, static_cast<std::int32_t>(folder.classes.size()), each.images);
    folder.classes.push_back(each.name);
  }
  if (options.test_split != 0) {
    throw UserError(
        ErrorKind::config,
        options.where,
        fmt::format("test_split is for a folder without a test set; {} has one", options.path),
        "remove test_split");
  }
  for (const Class& each : read_classes(inside(options.path, k_test))) {
    const auto at = std::ranges::find(folder.classes, each.name);
    if (at == folder.classes.end()) {
      throw UserError(ErrorKind::data,
                      in_file(inside(inside(options.path, k_test), each.name)),
                      "is a class without training images",
                      did_you_mean(each.name, folder.classes));
    }
    append(folder.test, static_cast<std::int32_t>(at - folder.classes.begin()), each.images);
  }
  return folder;
}

/// The classes in a folder, of each of which a part is tested on.
ImageFolder split_classes(const DataOptions& options,
                          const std::string& path,
                          RandomStream& random) {
  ImageFolder folder;
  for (Class& each : read_classes(path)) {
    const auto label = static_cast<std::int32_t>(folder.classes.size());
    const std::size_t all = each.images.size();
    const auto wanted =
        static_cast<std::size_t>(std::llround(options.test_split * static_cast<double>(all)));
    const std::size_t tested = std::min(wanted, all - 1);
    if (tested > 0) shuffle(std::span(each.images), random);
    const std::span<std::string> test = std::span(each.images).first(tested);
    std::ranges::sort(test);
    append(folder.test, label, test);
    append(folder.train, label, std::span(each.images).subspan(tested));
    folder.classes.push_back(each.name);
  }
  if (options.test_split != 0 && folder.test.empty()) {
    throw UserError(
        ErrorKind::config,
        options.where,
        fmt::format("test_split {} leaves no class of {} a test image", options.test_split, path),
        "the largest class has too few images");
  }
  return folder;
}

/// The conversion that the options declare, else that of the model's input, else that of the first
/// image by name that can be read.
ImageConversion conversion_of(const DataOptions& options, const ImageFolder& folder) {
  ImageConversion conversion = options.image_conversion;
  if (options.model_input && options.model_input->rank() == 3) {
    const Shape& input = *options.model_input;
    if (conversion.height == 0) {
      conversion.height = input[0];
      conversion.width = input[1];
    }
    if (conversion.channels == 0) conversion.channels = input[2];
  }
  if (conversion.height != 0 && conversion.channels != 0) return conversion;
  auto paths = mapped<std::string>(folder.train, &LabelledImage::path);
  std::ranges::sort(paths);
  Tensor image;
  for (std::size_t i = 0; image.shape().rank() == 0; ++i) {
    try {
      image = read_image(paths[i]);
    } catch (const UserError&) {
      if (!options.skip_bad_samples || i + 1 == paths.size()) throw;
    }
  }
  if (conversion.height == 0) {
    conversion.height = image.shape()[0];
    conversion.width = image.shape()[1];
  }
  if (conversion.channels == 0) conversion.channels = image.shape()[2];
  return conversion;
}

/// Keeps the samples whose images have no problem, and warns of the others. Returns their number.
/// Errors: UserError(data) for a class without a training image, and a test set without images.
std::int64_t drop_unreadable(Split& split,
                             std::string_view name,
                             const std::vector<LabelledImage>& images,
                             const std::vector<std::string>& problems,
                             const ImageFolder& folder,
                             const std::string& where) {
  if (std::ranges::all_of(problems, &std::string::empty)) return 0;
  std::vector<std::string> bad;
  std::vector<std::int64_t> left(folder.classes.size(), 0);
  std::int64_t kept = 0;
  const std::size_t bytes = split.images.bytes() / images.size();
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (!problems[i].empty()) {
      bad.push_back(fmt::format("{} {}", images[i].path, problems[i]));
      continue;
    }
    ++left[static_cast<std::size_t>(images[i].label)];
    auto* data = split.images.as<std::byte>();
    std::memmove(data + static_cast<std::size_t>(kept) * bytes, data + i * bytes, bytes);
    split.labels.as<std::int32_t>()[kept++] = images[i].label;
  }
  constexpr std::size_t k_max_named = 5;
  std::ranges::sort(bad);
  const std::size_t named = std::min(k_max_named, bad.size());
  log_warning("{}: {} of {} images of {} cannot be read and are skipped: {}{}",
              where,
              bad.size(),
              images.size(),
              name,
              fmt::join(std::span(bad).first(named), "; "),
              named < bad.size() ? "; ..." : "");
  if (kept == 0) throw file_error(where, "has no image of {} that can be read", name);
  for (const LabelledImage& image_file : images) {
    if (name != k_train) break;
    if (left[static_cast<std::size_t>(image_file.label)] > 0) continue;
    throw file_error(where,
                     "has no image of the class '{}' that can be read",
                     folder.classes[static_cast<std::size_t>(image_file.label)]);
  }
  keep_first(split, kept, where, {});
  return std::ssize(bad);
}

/// Adds an image to the statistics of those before it.
void update_stats(std::optional<ImageFolderStats>& stats,
                  const Shape& stored,
                  const ImageConversion& conversion) {
  if (!stats) stats = ImageFolderStats{stored[0], stored[0], stored[1], stored[1]};
  stats->min_height = std::min(stats->min_height, stored[0]);
  stats->max_height = std::max(stats->max_height, stored[0]);
  stats->min_width = std::min(stats->min_width, stored[1]);
  stats->max_width = std::max(stats->max_width, stored[1]);
  stats->resized += stored[0] != conversion.height || stored[1] != conversion.width ? 1 : 0;
  stats->converted += stored[2] != conversion.channels ? 1 : 0;
}

/// Reads images on all threads, and sets the problem of each that cannot be decoded, if that is
/// no error. Errors: that of the first image that has one.
Split read_images(const std::vector<LabelledImage>& images,
                  const ImageConversion& conversion,
                  std::vector<std::string>* problems,
                  std::optional<ImageFolderStats>& stats) {
  const auto count = static_cast<std::int64_t>(images.size());
  Split split{
      Tensor(DType::uint8, {count, conversion.height, conversion.width, conversion.channels}),
      Tensor(DType::int32, {count})};
  const std::size_t bytes = split.images.bytes() / images.size();
  std::vector<Shape> stored(images.size());
  const auto read = [&](std::size_t i) {
    const LabelledImage& image_file = images[i];
    Tensor decoded;
    try {
      decoded = read_image(image_file.path);
    } catch (const UserError& error) {
      if (problems == nullptr) throw;
      (*problems)[i] = error.problems().front().message;
      return;
    }
    stored[i] = decoded.shape();
    const Tensor image = convert_image(std::move(decoded), conversion, image_file.path);
    std::memcpy(split.images.as<std::byte>() + i * bytes, image.as<std::byte>(), bytes);
    split.labels.as<std::int32_t>()[i] = image_file.label;
  };
  parallel_for(count, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) read(static_cast<std::size_t>(i));
  });
  for (const Shape& shape : stored) {
    if (shape.rank() > 0) update_stats(stats, shape, conversion);
  }
  return split;
}

}  // namespace

ImageFolder list_image_folder(const DataOptions& options) {
  const Listing root = list_folder(options.path);
  RandomStream random(options.split_seed, name_key("image_folder", 12));
  const bool trains = is_split(options.path, root, k_train);
  const bool splits = trains && root.folders.size() > 1;
  ImageFolder folder =
      splits
          ? list_splits(options, root)
          : split_classes(options, trains ? inside(options.path, k_train) : options.path, random);
  shuffle(std::span(folder.train), random);
  return folder;
}

std::vector<std::string> list_images(const std::string& folder) {
  std::vector<std::string> images, others;
  std::vector<std::string> open{folder};
  while (!open.empty()) {
    const std::string path = std::move(open.back());
    open.pop_back();
    const Listing listing = list_folder(path);
    for (const std::string& name : listing.files) {
      const std::string file = inside(path, name);
      (is_image(file) ? images : others).push_back(file);
    }
    for (const std::string& name : listing.folders) open.push_back(inside(path, name));
  }
  if (images.empty()) throw file_error(folder, "has no images (JPEG, PNG, BMP, PGM or PPM files)");
  std::ranges::sort(images);
  if (!others.empty()) {
    log_warning(
        "{}: {} of {} files are not images (JPEG, PNG, BMP, PGM or PPM) and are skipped, such as "
        "{}",
        folder,
        others.size(),
        others.size() + images.size(),
        *std::ranges::min_element(others));
  }
  return images;
}

std::vector<std::string> image_folder_files(const DataOptions& options) {
  const ImageFolder folder = list_image_folder(options);
  std::vector<std::string> files;
  for (const auto* split : {&folder.train, &folder.test}) {
    for (const LabelledImage& image_file : *split) files.push_back(image_file.path);
  }
  std::ranges::sort(files);
  return files;
}

Dataset load_image_folder(const DatasetDef&,
                          const DataOptions& options,
                          std::span<const std::string>) {
  const ImageFolder folder = list_image_folder(options);
  const ImageConversion conversion = conversion_of(options, folder);
  Dataset dataset;
  const auto read = [&](std::string_view name, const std::vector<LabelledImage>& images) {
    std::vector<std::string> problems(images.size());
    Split split = read_images(
        images, conversion, options.skip_bad_samples ? &problems : nullptr, dataset.image_stats);
    dataset.skipped_samples += drop_unreadable(split, name, images, problems, folder, options.path);
    return split;
  };
  dataset.train = read(k_train, folder.train);
  if (!folder.test.empty()) dataset.test = read(k_test, folder.test);
  dataset.classes = static_cast<std::int64_t>(folder.classes.size());
  dataset.class_names = folder.classes;
  dataset.layout = Layout::nhwc;
  return dataset;
}

}  // namespace halfstep::data
