#pragma once
// A folder with one sub-folder of pictures per class, as photographs are usually sorted:
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

struct LabelledPicture {
  std::string path;
  std::int32_t label = 0;
};

struct ImageFolder {
  std::vector<std::string> classes;
  std::vector<LabelledPicture> train;  ///< in an order drawn from options.split_seed
  std::vector<LabelledPicture> test;   ///< by class and name
};

/// The pictures of `options.path`. With sub-folders `train` and `test` that hold folders
/// themselves, these are the splits (`test` may be absent); otherwise `options.test_split` of each
/// class, rounded, but never all of its pictures, becomes the test set. Files and folders whose
/// names begin with a dot are left out. Errors: UserError(data) naming the folder or file: no
/// sub-folders, an empty class, a picture outside of the classes, a folder in a class, a class of
/// the test set that is not trained; UserError(config) for a test_split beside a folder `test`, and
/// one that gives no test picture.
ImageFolder list_image_folder(const DataOptions& options);

/// The pictures in a folder and in all folders below it, by path. Files that are no pictures are
/// left out, with a warning that names the first of them; files and folders whose names begin with
/// a dot are left out. Errors: UserError(data) for a folder that cannot be read or has no picture.
std::vector<std::string> pictures_below(const std::string& folder);

/// All pictures of the folder, by name. Errors: as list_image_folder.
std::vector<std::string> image_folder_files(const DataOptions& options);

}  // namespace halfstep::data
