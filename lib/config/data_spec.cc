#include "config/data_spec.h"

#include <filesystem>

namespace halfstep::config {
namespace {

constexpr std::array k_on_missing{Named{OnMissing::error, "error"},
                                  Named{OnMissing::fill, "fill"},
                                  Named{OnMissing::skip, "skip"}};
constexpr std::array k_on_unknown{Named{OnUnknown::error, "error"},
                                  Named{OnUnknown::zeros, "zeros"}};
constexpr std::array k_data_labels{Named{DataLabels::stored, "stored"},
                                   Named{DataLabels::samples, "samples"}};
constexpr std::array k_on_bad_sample{Named{OnBadSample::error, "error"},
                                     Named{OnBadSample::skip, "skip"}};
constexpr std::array k_data_resizes{Named{DataResize::none, "none"},
                                    Named{DataResize::bilinear, "bilinear"},
                                    Named{DataResize::crop, "crop"}};

}  // namespace

void TableSpec::fields(Fields& f) {
  f.field("target",
          target,
          {.doc = "Column with the labels: numbers for a loss of values, else classes.",
           .required = true});
  f.field("columns",
          columns,
          {.doc = "Names of the columns, for a file that has none in its first line. []: the first "
                  "line has them."});
  f.field("ignore", ignore, {.doc = "Columns that the model does not see."});
  f.field("categorical",
          categorical,
          {.doc = "Columns that are categories though they hold numbers, as postal codes do. "
                  "Columns of text are categories anyway."});
  f.field("separator",
          separator,
          {.doc = "Character between two values, as in \";\"; null: the most frequent of comma, "
                  "semicolon, tab and | in the first line."});
  f.field("missing_values", missing_values, {.doc = "Texts that stand for no value."});
  f.choice("on_missing",
           on_missing,
           k_on_missing,
           {.doc = "A row without a value: error; fill: the mean of the column, none of its "
                   "categories, or an empty text; skip: the row is skipped."});
  f.choice("on_unknown",
           on_unknown,
           k_on_unknown,
           {.doc = "A category that is in no training row: error; zeros: none of the categories."});
  f.field("standardize",
          standardize,
          {.doc = "Whether numbers become (x - mean) / deviation, with the mean and the standard "
                  "deviation of the column in the training rows."});
}

void TextSpec::fields(Fields& f) {
  constexpr double k_longest = 1 << 20;
  f.field("length",
          length,
          {.doc = "Tokens of a sample: a window of a text, whose labels are the tokens that follow "
                  "each of them, or the first tokens of a row's text, with 0 after the last one of "
                  "a shorter text. [tokens]",
           .required = true,
           .min = 1,
           .max = k_longest});
  f.choice(
      "tokens",
      tokens,
      k_text_tokens,
      {.doc =
           "byte: 256 of them, whatever the file holds; character: those of UTF-8; word: letters "
           "and digits that follow each other, and each other character that is no blank."});
  f.field("vocabulary_size",
          vocabulary_size,
          {.doc = "Maximum size of the vocabulary: the most frequent characters or words of the "
                  "training part and <unknown>, the token of all others; in a csv also <padding>. "
                  "null: no limit. [tokens]",
           .min = 2,
           .max = 1 << 24});
  f.field("stride",
          stride,
          {.doc = "Tokens from the start of a window to that of the next; null: length, so that "
                  "windows do not overlap. [tokens]",
           .min = 1,
           .max = k_longest});
  f.field("column",
          column,
          {.doc = "Of a csv: the column with the texts, which alone is what the model sees of a "
                  "row. Token 0 is padding, which embedding's mask_zero masks, and 1 any "
                  "unknown one; bytes have their values."});
  f.field("lowercase", lowercase, {.doc = "Letters A to Z are read as a to z."});
}

void MixupSpec::fields(Fields& f) {
  f.field("alpha",
          alpha,
          {.doc = "Both parameters of the beta distribution that each sample's weight is drawn "
                  "from; the weight of its partner is the rest to 1. A small one leaves most "
                  "samples nearly as they are, 1 draws all weights alike. [shape parameter]",
           .max = 1,
           .above = 0.0});
}

void AugmentSpec::fields(Fields& f) {
  f.section("mixup",
            mixup,
            {.doc = "Each training sample becomes w times itself plus 1 - w times another sample "
                    "of its batch, its partner, and its loss w times the loss for its own label "
                    "plus 1 - w times that for the partner's, as if labels were mixed (Zhang et "
                    "al. 2018). Metrics of training compare with the label of larger weight. For "
                    "the cross-entropies. {}: with alpha 0.2."});
}

std::optional<std::string> DataSpec::resolved_path() const {
  if (!path) return std::nullopt;
  return (std::filesystem::path(base) / *path).lexically_normal().string();
}

void DataSpec::fields(Fields& f) {
  f.field("name",
          name,
          {.doc = "A known data set, looked up in HALFSTEP_DATA and in datasets/; excludes format "
                  "and path."});
  f.choice("format", format, k_data_formats, {.doc = "How the files at `path` are stored."});
  f.field("path",
          path,
          {.doc = "The .npz, .csv or text file, or the folder that holds train.csv and test.csv, "
                  ".txt files, the IDX or CIFAR files or one sub-folder of images per class; a "
                  "relative path starts at this config file."});
  f.field("sha256",
          sha256,
          {.doc = "SHA-256 that the file must have, 64 hexadecimal digits; of several files, of "
                  "their concatenation. null: not checked."});
  f.choice("layout",
           layout,
           k_data_layouts,
           {.doc = "Order of the axes of samples in NPZ and IDX files: nhwc (height, width, "
                   "channels) or nchw (channels, height, width), which is transposed on load. "
                   "null: inferred from the model's input, an error where both fit."});
  f.section("table", table, {.doc = "How a csv becomes samples and labels."});
  f.section("text", text, {.doc = "How a text becomes samples and labels."});
  f.field("class_names",
          class_names,
          {.doc = "Names of the classes, by label, for data that has none of its own: evaluations, "
                  "predictions and reports show them. Those of several outputs are in a map: "
                  "{kind: [cat, dog], colour: [black, red, white]}. []: classes have numbers."});
  f.field("image_size",
          image_size,
          {.doc = "Height and width of the images of an image_folder. []: those of model.input, "
                  "or, where that has not three extents, of the first image. [pixels]",
           .min = 1,
           .max = k_max_image_side});
  f.field("channels",
          channels,
          {.doc = "Channels that the images of an image_folder are converted to: 1 (grey) or 3 "
                  "(RGB). null: images are not converted. [channels]",
           .min = 1,
           .max = 3});
  f.choice("resize",
           resize,
           k_data_resizes,
           {.doc = "What happens to images of another size. none: an error that names the file; "
                   "bilinear: they are stretched or shrunk, with a triangle filter as wide as a "
                   "pixel of the smaller image; crop: the largest part around the centre that "
                   "has the proportions of the size is taken, and stretched or shrunk likewise."});
  f.choice("on_bad_sample",
           on_bad_sample,
           k_on_bad_sample,
           {.doc = "A file in an image_folder that cannot be decoded: error; skip: it is skipped, "
                   "and a warning names the first of them with their number."});
  f.choice("labels",
           labels,
           k_data_labels,
           {.doc = "stored: those of the files. samples: the samples themselves, times data.scale, "
                   "as an autoencoder learns them; an NPZ then needs no y_train."});
  f.field("test_split",
          test_split,
          {.doc = "The part of each class that becomes the test set, of an image_folder or a csv "
                  "without a test set of its own; of a csv with values to predict, of all rows; of "
                  "a text, its end. [fraction of the samples]",
           .min = 0,
           .below = 1});
  f.field("split_seed",
          split_seed,
          {.doc = "Chooses the samples of test_split, and the order of the training samples of an "
                  "image_folder or a csv, whose last part validates. Other than `seed`, it is the "
                  "same for all seeds of a comparison.",
           .min = 0});
  f.field("validation_split",
          validation_split,
          {.doc = "The last part of the training samples, in file order, that validates and is not "
                  "trained on. [fraction of the training samples]",
           .min = 0,
           .below = 1});
  f.field("scale",
          scale,
          {.doc = "Factor of the stored values on their way into the model; null: 1/255 for bytes, "
                  "1 for floats. [factor]"});
  f.field("shuffle",
          shuffle,
          {.doc = "Whether the training samples are drawn in a new order in each epoch; false: in "
                  "file order."});
  f.field(
      "streams",
      streams,
      {.doc =
           "Whether the training samples, in file order, are cut into batch_size streams of which "
           "a batch has the next sample each, as a stateful layer needs them; the last samples, "
           "which make no whole batch, are skipped, with a warning. With a stateful layer the "
           "samples of an evaluation and a prediction are cut likewise, and none is skipped."});
  f.field("sample_weight",
          sample_weight,
          {.doc = "Weights of samples: a column of a csv, which the model then does not see, or "
                  "the name w of arrays w_train and, beside a test set, w_test of an npz. The loss "
                  "of a sample is multiplied by its weight and still divided by the number of "
                  "samples, as in Keras; metrics use them where their name begins with weighted_. "
                  "null: all samples count alike."});
  f.section("augment",
            augment,
            {.doc = "Random changes of training samples together with their labels."});
  f.field("prefetch",
          prefetch,
          {.doc = "Batches prepared ahead on a thread of their own; null: 2 where the step leaves "
                  "a processor to it, else 0. [batches]",
           .min = 0,
           .max = 1024});
  f.field("train_samples",
          train_samples,
          {.doc = "Training samples of synthetic_digits and moving_digits; null: 60000. [samples]",
           .min = 1,
           .max = k_max_samples});
  f.field("test_samples",
          test_samples,
          {.doc = "Test samples of synthetic_digits and moving_digits; null: 10000. [samples]",
           .min = 1,
           .max = k_max_samples});
}

}  // namespace halfstep::config
