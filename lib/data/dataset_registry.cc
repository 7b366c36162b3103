#include "data/dataset_registry.h"

#include "config/data_spec.h"
#include "core/ranges.h"

namespace halfstep::data {
namespace {

constexpr std::array<std::string_view, 10> k_digits{
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
constexpr std::array<std::string_view, 8> k_directions{
    "right", "down right", "down", "down left", "left", "up left", "up", "up right"};
constexpr std::array<std::string_view, 10> k_clothes{"T-shirt/top",
                                                     "Trouser",
                                                     "Pullover",
                                                     "Dress",
                                                     "Coat",
                                                     "Sandal",
                                                     "Shirt",
                                                     "Sneaker",
                                                     "Bag",
                                                     "Ankle boot"};
constexpr std::array<std::string_view, 10> k_kana{
    "o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"};
constexpr std::array<std::string_view, 10> k_cifar10_names{
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
// clang-format off
constexpr std::array<std::string_view, 100> k_cifar100_names{
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle",
    "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle",
    "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup",
    "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house",
    "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster", "man",
    "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange", "orchid",
    "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy",
    "porcupine", "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal",
    "shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar",
    "sunflower", "sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor",
    "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman",
    "worm"};
// clang-format on

constexpr std::array k_idx_files{
    DataFile{"train-images-idx3-ubyte", ""},
    DataFile{"train-labels-idx1-ubyte", ""},
    DataFile{"t10k-images-idx3-ubyte", ""},
    DataFile{"t10k-labels-idx1-ubyte", ""},
};
constexpr std::array k_mnist_files{
    DataFile{"train-images-idx3-ubyte",
             "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
    DataFile{"train-labels-idx1-ubyte",
             "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
    DataFile{"t10k-images-idx3-ubyte",
             "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
    DataFile{"t10k-labels-idx1-ubyte",
             "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
};
constexpr std::array k_fashion_files{
    DataFile{"train-images-idx3-ubyte",
             "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
    DataFile{"train-labels-idx1-ubyte",
             "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
    DataFile{"t10k-images-idx3-ubyte",
             "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
    DataFile{"t10k-labels-idx1-ubyte",
             "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
};
constexpr std::array k_emnist_files{
    DataFile{"emnist-digits-train-images-idx3-ubyte", ""},
    DataFile{"emnist-digits-train-labels-idx1-ubyte", ""},
    DataFile{"emnist-digits-test-images-idx3-ubyte", ""},
    DataFile{"emnist-digits-test-labels-idx1-ubyte", ""},
};
constexpr std::array k_cifar10_files{
    DataFile{"data_batch_1.bin", ""},
    DataFile{"data_batch_2.bin", ""},
    DataFile{"data_batch_3.bin", ""},
    DataFile{"data_batch_4.bin", ""},
    DataFile{"data_batch_5.bin", ""},
    DataFile{"test_batch.bin", ""},
};
constexpr std::array k_csv_files{DataFile{"train.csv", ""}, DataFile{"test.csv", ""}};
constexpr std::array k_cifar100_files{DataFile{"train.bin", ""}, DataFile{"test.bin", ""}};

constexpr std::array<std::int64_t, 3> k_grey28{28, 28, 1};
constexpr std::array<std::int64_t, 3> k_colour32{32, 32, 3};
constexpr std::array<std::int64_t, 4> k_clip{8, 28, 28, 1};

constexpr std::array k_sets{
    DatasetDef{.name = "cifar10",
               .load = load_cifar_set,
               .files = k_cifar10_files,
               .folder = "cifar-10-batches-bin",
               .sample_shape = k_colour32,
               .classes = 10,
               .class_names = k_cifar10_names,
               .remedy = "scripts/fetch_datasets.sh cifar10 downloads it",
               .origin =
                   "Alex Krizhevsky, Vinod Nair and Geoffrey Hinton; Alex Krizhevsky, Learning "
                   "Multiple Layers of Features from Tiny Images, 2009; "
                   "https://www.cs.toronto.edu/~kriz/cifar.html",
               .licence = "not stated by the source, which asks to cite the report above"},
    DatasetDef{.name = "cifar100",
               .load = load_cifar_set,
               .files = k_cifar100_files,
               .folder = "cifar-100-binary",
               .sample_shape = k_colour32,
               .classes = 100,
               .class_names = k_cifar100_names,
               .remedy = "scripts/fetch_datasets.sh cifar100 downloads it",
               .origin =
                   "Alex Krizhevsky, Vinod Nair and Geoffrey Hinton; Alex Krizhevsky, Learning "
                   "Multiple Layers of Features from Tiny Images, 2009; "
                   "https://www.cs.toronto.edu/~kriz/cifar.html",
               .licence = "not stated by the source, which asks to cite the report above"},
    DatasetDef{.name = "emnist_digits",
               .load = load_transposed_idx_set,
               .files = k_emnist_files,
               .sample_shape = k_grey28,
               .classes = 10,
               .class_names = k_digits,
               .remedy = "scripts/fetch_datasets.sh emnist_digits downloads it",
               .origin =
                   "Cohen, Afshar, Tapson and van Schaik, 2017, from NIST Special Database 19; "
                   "https://www.nist.gov/itl/products-and-services/emnist-dataset",
               .licence = "not stated by the source, which asks to cite arXiv:1702.05373"},
    DatasetDef{.name = "fashion_mnist",
               .load = load_idx_set,
               .files = k_fashion_files,
               .sample_shape = k_grey28,
               .classes = 10,
               .class_names = k_clothes,
               .system_folder = "/usr/share/datasets/fashion-mnist",
               .remedy = "apt install dataset-fashion-mnist, or scripts/fetch_datasets.sh "
                         "fashion_mnist downloads it",
               .origin = "Zalando Research (Xiao, Rasul and Vollgraf), 2017; "
                         "https://github.com/zalandoresearch/fashion-mnist",
               .licence = "MIT"},
    DatasetDef{.name = "kmnist",
               .load = load_idx_set,
               .files = k_idx_files,
               .sample_shape = k_grey28,
               .classes = 10,
               .class_names = k_kana,
               .remedy = "scripts/fetch_datasets.sh kmnist downloads it",
               .origin =
                   "KMNIST Dataset (created by CODH), adapted from Kuzushiji Dataset (created by "
                   "NIJL and others), doi:10.20676/00000341; http://codh.rois.ac.jp/kmnist/",
               .licence = "CC BY-SA 4.0"},
    DatasetDef{.name = "mnist",
               .load = load_idx_set,
               .files = k_mnist_files,
               .sample_shape = k_grey28,
               .classes = 10,
               .class_names = k_digits,
               .remedy = "scripts/fetch_datasets.sh mnist downloads it",
               .origin =
                   "Yann LeCun, Corinna Cortes and Christopher Burges, 1998, from NIST Special "
                   "Databases 1 and 3; http://yann.lecun.com/exdb/mnist/",
               .licence = "CC BY-SA 3.0"},
    DatasetDef{.name = "moving_digits",
               .load = load_moving_digits,
               .sample_shape = k_clip,
               .classes = 8,
               .class_names = k_directions,
               .origin =
                   "drawn by halfstep: clips of 8 frames in which a digit moves, labelled with "
                   "the direction",
               .licence = "Apache-2.0, as halfstep"},
    DatasetDef{.name = "synthetic_digits",
               .load = load_synthetic_digits,
               .sample_shape = k_grey28,
               .classes = 10,
               .class_names = k_digits,
               .origin = "drawn by halfstep from strokes of its own",
               .licence = "Apache-2.0, as halfstep"},
};

using config::DataFormat;

constexpr std::string_view format_name(DataFormat format) {
  return config::name_of(format, config::k_data_formats);
}

/// The format in which the known set of the same name is stored.
constexpr DatasetDef format_of_set(DataFormat format, std::string_view doc) {
  DatasetDef def = *find_or_null(k_sets, format_name(format), &DatasetDef::name);
  def.remedy = def.origin = def.licence = "";
  def.doc = doc;
  return def;
}

constexpr std::array k_formats{
    format_of_set(DataFormat::cifar10,
                  "A folder with the binary version of CIFAR-10: of each sample a byte for the "
                  "class and 3072 bytes for the channels one after the other."),
    format_of_set(DataFormat::cifar100,
                  "A folder with the binary version of CIFAR-100: of each sample a byte for the "
                  "coarse class, which is not used, one for the fine class, and 3072 bytes for the "
                  "channels one after the other."),
    DatasetDef{.name = format_name(DataFormat::csv),
               .load = load_csv_set,
               .files = k_csv_files,
               .test_optional = true,
               .doc =
                   "A table as text, one CSV file or a folder with train.csv and perhaps test.csv, "
                   "plain or compressed with gzip. `data.table` says which column has the labels. "
                   "Columns of numbers are standardized, columns of text become one feature for "
                   "each category; or `data.text` names one column whose texts become tokens."},
    DatasetDef{
        .name = format_name(DataFormat::idx),
        .load = load_idx_set,
        .files = k_idx_files,
        .test_optional = true,
        .doc = "A folder with one IDX file of samples and one of labels, and two more for the test "
               "set where there is one. Each may be compressed with gzip and then ends in .gz."},
    DatasetDef{.name = format_name(DataFormat::image_folder),
               .load = load_image_folder,
               .doc = "A folder with one sub-folder of images (JPEG, PNG, BMP, PGM or PPM) per "
                      "class, or with the folders train and test that hold those sub-folders. The "
                      "names of the classes are those of the sub-folders, sorted."},
    DatasetDef{
        .name = format_name(DataFormat::npz),
        .load = load_npz_set,
        .doc = "One .npz file, as numpy.savez and numpy.savez_compressed write it, with an array "
               "of samples and one of labels, and two more for the test set where there is one."},
    DatasetDef{.name = "synth",
               .load = load_synthetic_digits,
               .sample_shape = k_grey28,
               .classes = 10,
               .class_names = k_digits},
    // The same set by its full name.
    format_of_set(DataFormat::synthetic_digits,
                  "No files: digits drawn by halfstep, the same in every run, as many as "
                  "data.train_samples and data.test_samples say."),
    DatasetDef{.name = format_name(DataFormat::text),
               .load = load_text_set,
               .doc = "A text, or a folder with texts whose names end in .txt, plain or compressed "
                      "with gzip. `data.text` says how it becomes windows of bytes, characters or "
                      "words; the labels are the tokens that follow."},
};

}  // namespace

std::span<const DatasetDef> named_sets() { return k_sets; }
std::span<const DatasetDef> formats() { return k_formats; }
const DatasetDef* find_set(std::string_view name) {
  return find_or_null(k_sets, name, &DatasetDef::name);
}
const DatasetDef* find_format(std::string_view name) {
  return find_or_null(k_formats, name, &DatasetDef::name);
}
std::vector<std::string> dataset_names() { return mapped<std::string>(k_sets, &DatasetDef::name); }
std::vector<std::string> dataset_formats() {
  return mapped<std::string>(k_formats, &DatasetDef::name);
}

}  // namespace halfstep::data
