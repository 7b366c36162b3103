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
#include "data/file.h"
#include "data/load_dataset.h"
#include "data/table.h"

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
  std::vector<std::string> pictures;  ///< paths
};

/// The sub-folders of `path` with their files.
std::vector<Class> read_classes(const std::string& path) {
  const Listing listing = list_folder(path);
  if (listing.folders.empty()) {
    throw UserError(ErrorKind::data,
                    in_file(path),
                    "has no sub-folders; an image_folder has one folder of pictures per class",
                    "'halfstep help image_folder' shows how pictures are sorted");
  }
  for (const std::string& name : listing.files) {
    const std::string file = inside(path, name);
    if (is_image(file)) {
      throw UserError(ErrorKind::data,
                      in_file(file),
                      "is a picture that is in the folder of no class",
                      "move it into a sub-folder: the sub-folders are the classes");
    }
  }
  std::vector<Class> classes;
  for (const std::string& name : listing.folders) {
    const std::string folder = inside(path, name);
    const Listing content = list_folder(folder);
    if (!content.folders.empty()) {
      throw file_error(inside(folder, content.folders.front()),
                       "is a folder in the class '{}'; the pictures of a class lie in its folder",
                       name);
    }
    if (content.files.empty()) {
      throw UserError(ErrorKind::data,
                      in_file(folder),
                      fmt::format("is empty: there is no picture of the class '{}'", name),
                      "remove the folder, or put pictures into it");
    }
    Class each{name, {}};
    for (const std::string& file : content.files) each.pictures.push_back(inside(folder, file));
    classes.push_back(std::move(each));
  }
  return classes;
}

void append(std::vector<LabelledPicture>& to,
            std::int32_t label,
            std::span<const std::string> pictures) {
  for (const std::string& path : pictures) to.push_back({path, label});
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
    append(folder.train, static_cast<std::int32_t>(folder.classes.size()), each.pictures);
    folder.classes.push_back(each.name);
  }
  if (options.test_split != 0) {
    throw UserError(
        ErrorKind::config,
        options.where,
        fmt::format("test_split is for a folder without a test set; {} has one", options.path),
        "leave test_split out");
  }
  for (const Class& each : read_classes(inside(options.path, k_test))) {
    const auto at = std::ranges::find(folder.classes, each.name);
    if (at == folder.classes.end()) {
      throw UserError(ErrorKind::data,
                      in_file(inside(inside(options.path, k_test), each.name)),
                      "is a class without training pictures",
                      did_you_mean(each.name, folder.classes));
    }
    append(folder.test, static_cast<std::int32_t>(at - folder.classes.begin()), each.pictures);
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
    const std::size_t all = each.pictures.size();
    const auto wanted =
        static_cast<std::size_t>(std::llround(options.test_split * static_cast<double>(all)));
    const std::size_t tested = std::min(wanted, all - 1);
    if (tested > 0) shuffle(std::span(each.pictures), random);
    const std::span<std::string> test = std::span(each.pictures).first(tested);
    std::ranges::sort(test);
    append(folder.test, label, test);
    append(folder.train, label, std::span(each.pictures).subspan(tested));
    folder.classes.push_back(each.name);
  }
  if (options.test_split != 0 && folder.test.empty()) {
    throw UserError(
        ErrorKind::config,
        options.where,
        fmt::format("test_split {} leaves no class of {} a test picture", options.test_split, path),
        "the largest class has too few pictures");
  }
  return folder;
}

/// The form that the options declare, else that of the model's input, else that of the first
/// picture by name that can be read.
ImageForm form_of(const DataOptions& options, const ImageFolder& folder) {
  ImageForm form = options.pictures;
  if (options.model_input && options.model_input->rank() == 3) {
    const Shape& input = *options.model_input;
    if (form.height == 0) {
      form.height = input[0];
      form.width = input[1];
    }
    if (form.channels == 0) form.channels = input[2];
  }
  if (form.height != 0 && form.channels != 0) return form;
  auto paths = mapped<std::string>(folder.train, &LabelledPicture::path);
  std::ranges::sort(paths);
  Tensor picture;
  for (std::size_t i = 0; picture.shape().rank() == 0; ++i) {
    try {
      picture = read_image(paths[i]);
    } catch (const UserError&) {
      if (!options.skip_bad_samples || i + 1 == paths.size()) throw;
    }
  }
  if (form.height == 0) {
    form.height = picture.shape()[0];
    form.width = picture.shape()[1];
  }
  if (form.channels == 0) form.channels = picture.shape()[2];
  return form;
}

/// Keeps the samples whose pictures have no problem, and warns of the others. Returns their number.
/// Errors: UserError(data) for a class without a training picture, and a test set without pictures.
std::int64_t leave_out(Split& split,
                       std::string_view name,
                       const std::vector<LabelledPicture>& pictures,
                       const std::vector<std::string>& problems,
                       const ImageFolder& folder,
                       const std::string& where) {
  if (std::ranges::all_of(problems, &std::string::empty)) return 0;
  std::vector<std::string> bad;
  std::vector<std::int64_t> left(folder.classes.size(), 0);
  std::int64_t kept = 0;
  const std::size_t bytes = split.images.bytes() / pictures.size();
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    if (!problems[i].empty()) {
      bad.push_back(fmt::format("{} {}", pictures[i].path, problems[i]));
      continue;
    }
    ++left[static_cast<std::size_t>(pictures[i].label)];
    auto* images = split.images.as<std::byte>();
    std::memmove(images + static_cast<std::size_t>(kept) * bytes, images + i * bytes, bytes);
    split.labels.as<std::int32_t>()[kept++] = pictures[i].label;
  }
  constexpr std::size_t k_max_named = 5;
  std::ranges::sort(bad);
  const std::size_t named = std::min(k_max_named, bad.size());
  log_warning("{}: {} of {} pictures of {} cannot be read and are left out: {}{}",
              where,
              bad.size(),
              pictures.size(),
              name,
              fmt::join(std::span(bad).first(named), "; "),
              named < bad.size() ? "; ..." : "");
  if (kept == 0) throw file_error(where, "has no picture of {} that can be read", name);
  for (const LabelledPicture& picture : pictures) {
    if (name != k_train) break;
    if (left[static_cast<std::size_t>(picture.label)] > 0) continue;
    throw file_error(where,
                     "has no picture of the class '{}' that can be read",
                     folder.classes[static_cast<std::size_t>(picture.label)]);
  }
  keep_first(split, kept, where, {});
  return std::ssize(bad);
}

/// Adds a picture to the forms of those before it.
void add_form(std::optional<PictureForms>& forms, const Shape& stored, const ImageForm& form) {
  if (!forms) forms = PictureForms{stored[0], stored[0], stored[1], stored[1]};
  forms->min_height = std::min(forms->min_height, stored[0]);
  forms->max_height = std::max(forms->max_height, stored[0]);
  forms->min_width = std::min(forms->min_width, stored[1]);
  forms->max_width = std::max(forms->max_width, stored[1]);
  forms->resized += stored[0] != form.height || stored[1] != form.width ? 1 : 0;
  forms->converted += stored[2] != form.channels ? 1 : 0;
}

/// Reads pictures on all threads, and sets the problem of each that cannot be decoded, if that is
/// no error. Errors: that of the first picture that has one.
Split read_pictures(const std::vector<LabelledPicture>& pictures,
                    const ImageForm& form,
                    std::vector<std::string>* problems,
                    std::optional<PictureForms>& forms) {
  const auto count = static_cast<std::int64_t>(pictures.size());
  Split split{Tensor(DType::uint8, {count, form.height, form.width, form.channels}),
              Tensor(DType::int32, {count})};
  const std::size_t bytes = split.images.bytes() / pictures.size();
  std::vector<Shape> stored(pictures.size());
  const auto read = [&](std::size_t i) {
    const LabelledPicture& picture = pictures[i];
    Tensor decoded;
    try {
      decoded = read_image(picture.path);
    } catch (const UserError& error) {
      if (problems == nullptr) throw;
      (*problems)[i] = error.problems().front().message;
      return;
    }
    stored[i] = decoded.shape();
    const Tensor image = in_form(std::move(decoded), form, picture.path);
    std::memcpy(split.images.as<std::byte>() + i * bytes, image.as<std::byte>(), bytes);
    split.labels.as<std::int32_t>()[i] = picture.label;
  };
  parallel_for(count, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) read(static_cast<std::size_t>(i));
  });
  for (const Shape& shape : stored) {
    if (shape.rank() > 0) add_form(forms, shape, form);
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

std::vector<std::string> pictures_below(const std::string& folder) {
  std::vector<std::string> pictures, others;
  std::vector<std::string> open{folder};
  while (!open.empty()) {
    const std::string path = std::move(open.back());
    open.pop_back();
    const Listing listing = list_folder(path);
    for (const std::string& name : listing.files) {
      const std::string file = inside(path, name);
      (is_image(file) ? pictures : others).push_back(file);
    }
    for (const std::string& name : listing.folders) open.push_back(inside(path, name));
  }
  if (pictures.empty())
    throw file_error(folder, "holds no pictures (JPEG, PNG, BMP, PGM or PPM files)");
  std::ranges::sort(pictures);
  if (!others.empty()) {
    log_warning(
        "{}: {} of {} files are no pictures (JPEG, PNG, BMP, PGM or PPM) and are left out, such as "
        "{}",
        folder,
        others.size(),
        others.size() + pictures.size(),
        *std::ranges::min_element(others));
  }
  return pictures;
}

std::vector<std::string> image_folder_files(const DataOptions& options) {
  const ImageFolder folder = list_image_folder(options);
  std::vector<std::string> files;
  for (const auto* split : {&folder.train, &folder.test}) {
    for (const LabelledPicture& picture : *split) files.push_back(picture.path);
  }
  std::ranges::sort(files);
  return files;
}

Dataset load_image_folder(const SetDef&, const DataOptions& options, std::span<const std::string>) {
  const ImageFolder folder = list_image_folder(options);
  const ImageForm form = form_of(options, folder);
  Dataset dataset;
  const auto read = [&](std::string_view name, const std::vector<LabelledPicture>& pictures) {
    std::vector<std::string> problems(pictures.size());
    Split split = read_pictures(
        pictures, form, options.skip_bad_samples ? &problems : nullptr, dataset.pictures);
    dataset.left_out += leave_out(split, name, pictures, problems, folder, options.path);
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
