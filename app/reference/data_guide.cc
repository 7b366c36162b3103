#include "reference/reference.h"

namespace halfstep::app {
namespace {

// The transcripts were produced on two processors with AMX; times and the last digits of losses
// differ on other machines. tests/app/data_page_test.cc runs the commands.
constexpr const char* k_data_guide =
    R"(halfstep reads samples and labels from local files; it downloads nothing. A config names them in its
section `data` in one of three ways: a file or folder of your own (`format` and `path`), a known data
set (`name`, see below), or `synthetic_digits`, which needs no files.

## Your own data, from the beginning

This example makes a data set, trains on it, and uses the result. Every sample is a colour image of
16 by 16 pixels that shows a disc, a square or a cross. Save as `make_shapes.py`:

```python
import numpy as np

rng = np.random.default_rng(0)


def images(count):
    """Images [count, height, width, channels] and the class of each: 0 disc, 1 square, 2 cross."""
    x = rng.integers(0, 100, size=(count, 16, 16, 3), dtype=np.uint8)  # noise
    y = rng.integers(0, 3, size=count)
    rows, columns = np.mgrid[0:16, 0:16]
    for image, label in zip(x, y):
        middle = rng.integers(5, 11, size=2)
        r, c = abs(rows - middle[0]), abs(columns - middle[1])
        disc, square = r * r + c * c <= 16, (r <= 3) & (c <= 3)
        cross = ((r <= 1) & (c <= 4)) | ((c <= 1) & (r <= 4))
        image[[disc, square, cross][label]] = rng.integers(150, 256, size=3)
    return x, y


x_train, y_train = images(3000)
x_test, y_test = images(600)
np.savez_compressed("shapes.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)

# One image by itself, as a PPM file, to try `halfstep predict` on.
with open("one.ppm", "wb") as file:
    file.write(b"P6 16 16 255\n" + x_test[0].tobytes())
```

The config, `shapes.yaml`:

```yaml
version: 1
name: shapes
seed: 1
data:
  format: npz
  path: shapes.npz            # beside this file
  validation_split: 0.1       # the last 300 of the 3000 training samples
model:
  input: [16, 16, 3]          # height, width, channels: x_train.shape[1:]
  layers:
    - {type: conv2d, filters: 16, kernel_size: 3, activation: relu}
    - {type: max_pooling2d}
    - {type: flatten}
    - {type: dense, units: 32, activation: relu}
    - {type: dense, units: 3, name: logits}      # one output per class
    - {type: softmax, dtype: float32}
precision: {policy: mixed_bfloat16}              # or float32, mixed_float16
loss: sparse_categorical_crossentropy            # the labels are class numbers
optimizer: {type: adam, learning_rate: 1e-3}
training: {epochs: 5, batch_size: 64}
```

Make the data and look at what halfstep sees in it (in what follows times, and the last digits of
losses, differ from machine to machine):

```
$ python3 make_shapes.py
$ halfstep data info shapes.npz --format npz
npz: 3000 training and 600 test images of [16, 16, 3] uint8, 3 classes
from shapes.npz
stored as nhwc
  a3be198a97b0bb111a78ba8bc5a75cbbfdd7275c05e28f3b9ad215dcc7d98000  shapes.npz
```

Check the config, and train. The run directory gets the weights of the last epochs and `report.json`:

```
$ halfstep config check shapes.yaml
shapes.yaml: ok
$ halfstep train shapes.yaml --run-dir runs/shapes
device: cpu (no NVIDIA driver)
epoch 1/5  43 steps  0.1 s  1.25 ms/step  50335 samples/s  loss 1.0625  accuracy 0.4456  val_loss 0.9871  val_accuracy 0.5933  ETA 0:00
epoch 2/5  43 steps  0.1 s  1.37 ms/step  45997 samples/s  loss 0.8657  accuracy 0.6930  val_loss 0.7250  val_accuracy 0.7933  ETA 0:00
epoch 3/5  43 steps  0.1 s  1.35 ms/step  46406 samples/s  loss 0.6206  accuracy 0.8493  val_loss 0.4915  val_accuracy 0.9467  ETA 0:00
epoch 4/5  43 steps  0.1 s  1.35 ms/step  46537 samples/s  loss 0.3954  accuracy 0.9722  val_loss 0.3104  val_accuracy 0.9833  ETA 0:00
epoch 5/5  43 steps  0.1 s  1.26 ms/step  49858 samples/s  loss 0.2396  accuracy 0.9952  val_loss 0.1911  val_accuracy 0.9967
mixed_bfloat16        215 steps    0.8652 ms/step (median)  test_accuracy 0.9867  test_loss 0.1884
report: runs/shapes/report.json
```

Accuracy per class on the test set, and which classes are taken for which:

```
$ halfstep eval runs/shapes
accuracy     0.9867
loss         0.1884

class            count  accuracy  predicted as
0                  195    0.9744    190     5     0
1                  206    1.0000      0   206     0
2                  199    0.9849      3     0   196
```

The class of a single image, and of every sample of an array:

```
$ halfstep predict runs/shapes one.ppm
     0  class   2               probability 0.9536
$ halfstep predict runs/shapes shapes.npz | head -n 3
     0  class   2               probability 0.9536
     1  class   2               probability 0.9294
     2  class   2               probability 0.9237
```

## NPZ files

`format: npz` with `path` naming one `.npz` file, written by `numpy.savez` or
`numpy.savez_compressed`. The arrays are called `x_train` and `y_train`, and, where there is a test
set, `x_test` and `y_test`; other names that are understood stand under `npz` below. Row i of an `x`
array is the sample of row i of the `y` array. Arrays of other names are left alone. Elements may be
booleans, integers of 8 to 64 bits or floats of 16, 32 or 64 bits; strings and objects cannot be read.

A model of several inputs takes an array of each, named by the input: for these, `x_train_image` and
`x_train_words`, beside `y_train`, and for a test set `x_test_image`, `x_test_words` and `y_test`.

```yaml
data: {format: npz, path: houses.npz}
model:
  inputs: {image: [28, 28, 1], words: [80]}
```

All have the same number of samples. In memory a sample is the values of all inputs one after the other:
bytes where all arrays are bytes, else floats, in which the bytes of an image take four times the memory.
Numbers that an `embedding` takes as indices are never scaled, and are at most 2^24; `data.scale` is a
factor for the other inputs, and each is scaled and laid out by the rules of [values](#values) and
[shapes](#shapes) for itself. `halfstep data info FILE --format npz` lists the inputs and outputs that the arrays
of a file are named after, and `predict` reads NPZ files whose arrays are called `image`, `x_test_image` or
`x_image`.

A model of several outputs takes the labels of each, named by the output: for these, `y_train_digit` and
`y_train_centre`, and for a test set `y_test_digit` and `y_test_centre`, beside the samples of one input or
several.

```yaml
data: {format: npz, path: centres.npz}
model:
  outputs: [digit, centre]
loss: {digit: sparse_categorical_crossentropy, centre: mean_squared_error}
```

In the names of arrays and metrics, `_` stands for all but letters and digits of an output: `y_train_lstm_1`
for `lstm:1`. The rules of [labels](#labels) hold for each. In memory a label is the values of all outputs one
after the other, as floats, which hold class numbers up to 2^24. Metrics are `digit_loss`, `digit_accuracy`,
`centre_loss` and so on, in `metrics`, `early_stopping.monitor`, `target` and reports; `loss` is the sum of the
outputs' losses times their `loss_weights`, with penalties of weights. `predict` prints each output,
`eval --predictions FILE` writes `predictions_digit`, `labels_digit` and `labels_centre`, and
`data.sample_weight` weighs the losses of all outputs. `training.class_weight` is for models of one output.

## IDX files

`format: idx` with `path` naming a folder that holds the four files of MNIST's names
(`train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte`,
`t10k-labels-idx1-ubyte`), each plain or with gzip and `.gz` after the name. The digit may be
any from 1 to 4, such as `idx4` for images with channels, and the mark before `idx` a dot; the rest is
fixed, whatever the type of the elements. Without a test set the last two are omitted. Elements may be
uint8, int8, int16, int32, float32 or float64. This writes the data of the example so; save it as
`write_idx.py`:

```python
import os
import struct

import numpy as np

CODES = {"uint8": 8, "int8": 9, "int16": 11, "int32": 12, "float32": 13, "float64": 14}


def write_idx(path, array):
    with open(path, "wb") as file:
        file.write(struct.pack(">BBBB", 0, 0, CODES[array.dtype.name], array.ndim))
        file.write(struct.pack(f">{array.ndim}I", *array.shape))
        file.write(array.astype(array.dtype.newbyteorder(">")).tobytes())


os.makedirs("shapes_idx", exist_ok=True)
with np.load("shapes.npz") as arrays:
    write_idx("shapes_idx/train-images-idx3-ubyte", arrays["x_train"])
    write_idx("shapes_idx/train-labels-idx1-ubyte", arrays["y_train"].astype("uint8"))
    write_idx("shapes_idx/t10k-images-idx3-ubyte", arrays["x_test"])
    write_idx("shapes_idx/t10k-labels-idx1-ubyte", arrays["y_test"].astype("uint8"))
```

```
$ python3 write_idx.py
$ halfstep data info shapes_idx --format idx
idx: 3000 training and 600 test images of [16, 16, 3] uint8, 3 classes
from shapes_idx
stored as nhwc
  e567a9311ead1cf563b0ac710b639f187fa8ec8d5a85150e360cbf8367fde076  shapes_idx/train-images-idx3-ubyte
  6be43834ba184ac504ddca52824146c8d29eb2be00bce0f57a380b7f48fbf5ec  shapes_idx/train-labels-idx1-ubyte
  76371fcf4bdea41cb75e9770bd483c48e3409025292c3bdd9af76753602e9beb  shapes_idx/t10k-images-idx3-ubyte
  c5ca7f4e2db1394c291319048ede86721cb6ce1240c02122b8b377e26a9483cf  shapes_idx/t10k-labels-idx1-ubyte
$ halfstep train shapes.yaml --set data.format=idx --set data.path=shapes_idx --run-dir runs/shapes_idx
device: cpu (no NVIDIA driver)
epoch 1/5  43 steps  0.1 s  1.38 ms/step  45502 samples/s  loss 1.0625  accuracy 0.4456  val_loss 0.9871  val_accuracy 0.5933  ETA 0:00
epoch 2/5  43 steps  0.1 s  1.32 ms/step  47587 samples/s  loss 0.8657  accuracy 0.6930  val_loss 0.7250  val_accuracy 0.7933  ETA 0:00
epoch 3/5  43 steps  0.1 s  1.32 ms/step  47628 samples/s  loss 0.6206  accuracy 0.8493  val_loss 0.4915  val_accuracy 0.9467  ETA 0:00
epoch 4/5  43 steps  0.1 s  1.32 ms/step  47700 samples/s  loss 0.3954  accuracy 0.9722  val_loss 0.3104  val_accuracy 0.9833  ETA 0:00
epoch 5/5  43 steps  0.1 s  1.35 ms/step  46351 samples/s  loss 0.2396  accuracy 0.9952  val_loss 0.1911  val_accuracy 0.9967
mixed_bfloat16        215 steps    0.8669 ms/step (median)  test_accuracy 0.9867  test_loss 0.1884
report: runs/shapes_idx/report.json
```

## A folder of images

`format: image_folder` with `path` naming a folder that has one sub-folder of images per class. This
writes 900 images of the example as files; save it as `write_images.py`:

```python
import os

import numpy as np

with np.load("shapes.npz") as arrays:
    images, labels = arrays["x_train"][:900], arrays["y_train"]
for number, (image, label) in enumerate(zip(images, labels)):
    folder = "images/" + ["disc", "square", "cross"][label]
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/{number:03}.ppm", "wb") as file:
        file.write(b"P6 16 16 255\n" + image.tobytes())
```

```
$ python3 write_images.py
$ halfstep data info images --format image_folder
image_folder: 900 training and 0 test images of [16, 16, 3] uint8, 3 classes
from images
stored as nhwc
classes: cross, disc, square
  06dda7016ebf3c98c2964efcb63bc6fdb414730b00aa861514143e98305d1254  of 900 files, one after the other
```

`--sheet sheet.png` writes an image of the first images of each class, a class a line, which shows whether
labels and axes are as they should be.

The names of the sub-folders, sorted, are the classes 0, 1, ...; `eval`, `predict` and reports show them:

```
$ halfstep train shapes.yaml --set data.format=image_folder --set data.path=images --set data.test_split=0.2 --batch-size 16 --epochs 8 --run-dir runs/images
device: cpu (no NVIDIA driver)
epoch 1/8  41 steps  0.0 s  0.52 ms/step  30496 samples/s  loss 1.0923  accuracy 0.3565  val_loss 1.0538  val_accuracy 0.4722  ETA 0:00
epoch 2/8  41 steps  0.0 s  0.41 ms/step  38850 samples/s  loss 1.0410  accuracy 0.5108  val_loss 1.0048  val_accuracy 0.5833  ETA 0:00
epoch 3/8  41 steps  0.0 s  0.82 ms/step  19315 samples/s  loss 0.9427  accuracy 0.6373  val_loss 0.9201  val_accuracy 0.5278  ETA 0:00
epoch 4/8  41 steps  0.0 s  0.40 ms/step  39646 samples/s  loss 0.8156  accuracy 0.7130  val_loss 0.7287  val_accuracy 0.8611  ETA 0:00
epoch 5/8  41 steps  0.0 s  0.39 ms/step  40736 samples/s  loss 0.6585  accuracy 0.8009  val_loss 0.5755  val_accuracy 0.8472  ETA 0:00
epoch 6/8  41 steps  0.0 s  0.97 ms/step  16355 samples/s  loss 0.4801  accuracy 0.9136  val_loss 0.4094  val_accuracy 0.9583  ETA 0:00
epoch 7/8  41 steps  0.0 s  0.62 ms/step  25515 samples/s  loss 0.3423  accuracy 0.9321  val_loss 0.3015  val_accuracy 0.9583  ETA 0:00
epoch 8/8  41 steps  0.0 s  0.41 ms/step  38796 samples/s  loss 0.2284  accuracy 0.9784  val_loss 0.2029  val_accuracy 0.9861
mixed_bfloat16        328 steps    0.2813 ms/step (median)  test_accuracy 0.9722  test_loss 0.2218
report: runs/images/report.json
$ halfstep eval runs/images
accuracy     0.9722
loss         0.2218

class            count  accuracy  predicted as
cross               59    0.9831     58     0     1
disc                61    0.9344      0    57     4
square              60    1.0000      0     0    60
$ halfstep predict runs/images images/disc | head -n 3
     0  class   1  disc         probability 0.8258  images/disc/006.ppm
     1  class   1  disc         probability 0.8529  images/disc/009.ppm
     2  class   1  disc         probability 0.8039  images/disc/010.ppm
```

Images are JPEG files (grey or colour), PNG files (grey, RGB or palette; 16 bits are rounded to 8), BMP files
(without compression), and PGM and PPM files. An alpha channel is left out where all of the image is opaque;
transparent pixels are an error. A rotation that a camera noted in the file is not applied.

- Splits: where the folder has the sub-folders `train` and `test`, which have one sub-folder per class
  themselves, these are the splits. Otherwise `data.test_split` of each class becomes the test set,
  chosen by `data.split_seed`, and without it there is none. The training images are in an order drawn
  from `data.split_seed`, so that `data.validation_split`, the end of them, has all classes.
- Size: all images have that of `model.input`, or the one in `data.image_size`. Another size is an
  error that names the file, unless `data.resize: bilinear` has images stretched or shrunk to it, each
  side by itself, or `data.resize: crop` cuts them to its proportions around their centre before, so that
  nothing is distorted.
- Channels: all images have those of `model.input`, unless `data.channels` is 1 (grey) or 3 (RGB), to
  which they are converted then.
- A file that is no image, a class without images, and a folder within a class are errors. With
  `data.on_bad_sample: skip` files that cannot be decoded are skipped, and a warning counts and names them. Files and
  folders whose names begin with a dot are always ignored.

All images are read when a run begins and are kept as bytes. `predict` treats images as training did,
and skips those of a folder that cannot be decoded if training did. Where training met no other size,
`predict ... --set data.resize=crop` brings images to that of the model. It reads the same files, IDX, NPY and
NPZ files (their array `x`, `images`, `x_test` or `test_images`, or the only one), after training on CIFAR files of
that format, and folders of images. After training on other formats it does not resize: images have the size and
the channels that the model was trained on.

)";

constexpr const char* k_data_rules =
    R"(## Shapes

The first axis of every array counts samples. What is left is one sample:

| array | sample | `model.input` |
|---|---|---|
| [N, height, width, channels] | colour image | [height, width, channels] |
| [N, height, width] | grey image | [height, width, 1] |
| [N, values] | vector | [values] |
| [N] | single number | [1] |

Samples with as many values as `model.input` are reshaped to it, in the order of their elements: a
image may go into `input: [768]`. halfstep computes on [height, width, channels] (NHWC). Arrays of
[N, channels, height, width] (NCHW), as PyTorch has them, are transposed on load: `data.layout: nchw`
says so, and it is inferred where only one order fits `model.input`. Flat arrays of 768 values go into
`input: [16, 16, 3]` with `data.layout` saying in which order they are. `halfstep data info FILE
--format npz` says what was found.

## Labels

The loss follows from what the labels are, and the last layer from both:

| labels | array | `loss` | last layers |
|---|---|---|---|
| one class of n | integers 0 to n - 1, [N] or [N, 1] | `sparse_categorical_crossentropy` | dense of n, softmax |
| a class of n at each of k positions | integers 0 to n - 1, [N, k] | `sparse_categorical_crossentropy` | an output [k, n], such as dense of n behind a layer of sequences, softmax |
| a class of n for each pixel | integers 0 to n - 1, [N, height, width] or [N, height, width, 1] | `sparse_categorical_crossentropy` | an output [height, width, n], such as conv2d of n filters, softmax |
| one class of n, one-hot | numbers [N, n] | `categorical_crossentropy` | dense of n, softmax |
| yes or no | integers 0 and 1, [N] | `binary_crossentropy` | dense of 1, sigmoid |
| k times yes or no | numbers [N, k] | `binary_crossentropy` | dense of k, sigmoid |
| yes or no, as -1 and 1 | integers [N] | `hinge` | dense of 1 |
| yes or no for each pixel | numbers [N, height, width] | `binary_crossentropy` | an output [height, width, 1], sigmoid |
| real values | floats or integers, [N] or [N, k] | `mean_squared_error` | dense of 1 or k |
| real values at each position, an image | floats [N, height, width, channels] | `mean_squared_error` | an output of that shape |
| the samples themselves | none; `data.labels: samples` | `mean_squared_error`, or `binary_crossentropy` behind a sigmoid | an output in the shape of a sample |

Class numbers begin at 0. Labels of no class, such as 255 for the border of an object or 0 for padding, are left
out of loss and metrics by `loss: {type: sparse_categorical_crossentropy, ignore_class: 255}`. With labels at each position loss and metrics are means over samples and positions,
and `predict` gives the class, or the value, of each position; `--output FILE.npz` keeps them as an array.
Images as labels are transposed where the layout of the output's shape is another than theirs, and are not
scaled: bytes from 0 to 255 are divided by 255 before, for a model that gives 0 to 1. With
`data.labels: samples` an autoencoder learns to give its input,
each value times `data.scale`, in any data set or folder of images. Without the softmax or sigmoid the model
gives scores; the loss then takes `from_logits: true`. A label that the model has no output for, and another
count of labels than of samples, are errors that name the file. The metric is `accuracy`, for
`mean_squared_error` it is `mean_absolute_error`; `metrics` asks for others.
Arrays of your own have class numbers; `data.class_names: [disc, square, cross]` gives the classes
names, by label, which `eval`, `predict` and reports show; those of several outputs are in a map,
`data.class_names: {kind: [cat, dog]}`. A class without a sample may have a name. The known data sets and the
folders of images have names already, and the classes of a CSV are the values of its target. The names of a
run are kept with it. `training.class_weight: {square: 2}` weighs the losses of a class by its name, or by its
number where no class has that name.

## Values

Bytes (uint8) stay bytes in memory and are multiplied by 1/255 on their way into the model, so that it
sees 0 to 1. All other types become float32 and are taken as they are. `data.scale` gives another
factor, and a `rescaling` layer at the beginning of the model a factor and an offset. NaN and infinity
are errors. Values are float32 until the first layer casts them to its compute dtype: under
`mixed_float16` they should stay well below 65504.

## Splits

| split | from | used |
|---|---|---|
| training | `x_train` without its validation part | every epoch, in a new order unless `data.shuffle: false`; with `data.streams: true` a batch has the next sample of each of `batch_size` streams, and the last samples, which make no whole batch, are left out: warning W119 counts them |
| validation | the last `data.validation_split` of `x_train`, in file order | after every epoch: `val_loss`, `val_accuracy`, early stopping, targets |
| test | `x_test`, where there is one | once, at the end of training, and by `halfstep eval` |

Because the validation part is the end of the file, samples that are sorted by class must be shuffled
first. The last batch of an epoch may be smaller than `training.batch_size`. `halfstep eval --split
validation` and `--split train` measure the others.

With `data.streams: true` and a stateful layer, validation, test and `predict` cut their samples into
streams too, as many as `training.validation_batch_size`, by default `batch_size`. All of them are
measured: where they do not divide, the first streams are longer by one sample. The states are 0 at the
beginning of the split, so that the accuracy is that of its streams.

## Keeping track

`halfstep data info PATH` shows the contents of a file or folder, and finds the format by names: `.npz`, `.csv`,
`.tsv` and `.txt`, folders with the files of IDX or CIFAR, and folders of folders with images, which it brings to
the size of the first one, whatever theirs are. `data.sha256` in the config makes a run refuse a file that changed;
`halfstep data info` prints the sum. A run directory knows its data: `eval` and `predict` find it again as long as
the file is where it was.)";

}  // namespace

std::string data_guide() { return k_data_guide + table_guide() + text_guide() + k_data_rules; }

}  // namespace halfstep::app
