#pragma once
// A folder with one sub-folder of images per class:
//
//     pets/cats/a.png  pets/cats/b.jpg  pets/dogs/c.jpg ...                or
//     pets/train/cats/a.png ...  pets/test/cats/d.jpg ...
//
// The sub-folders in the order of their names (bytes) are the classes 0, 1, ...

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace halfstep::data {

struct LabelledImage {
  std::string path;
  std::int32_t label = 0;
};

struct ImageFolder {
  std::vector<std::string> classes;
  std::vector<LabelledImage> train;  ///< in an order drawn from options.split_seed
  std::vector<LabelledImage> test;   ///< by class and name
};

/// The images of `options.path`. With sub-folders `train` and `test` that contain folders, these
/// are the splits (`test` may be absent); otherwise the fraction `options.test_split` of each
/// class, rounded, but never all of its images, becomes the test set. Hidden files and folders are
/// skipped. Errors: UserError(data) naming the folder or file: no sub-folders, an empty class, an
/// image outside of the classes, a folder in a class, a test class without training images;
/// UserError(config) for a test_split beside a folder `test`, and one that gives no test image.
ImageFolder list_image_folder(const DataOptions& options);

/// The images in a folder and in all folders below it, by path. Other files are skipped with a
/// warning that names the first of them; hidden files and folders are skipped. Errors:
/// UserError(data) for a folder that cannot be read or has no image.
std::vector<std::string> list_images(const std::string& folder);

/// All images of the folder, by name. Errors: as list_image_folder.
std::vector<std::string> image_folder_files(const DataOptions& options);

}  // namespace halfstep::data
