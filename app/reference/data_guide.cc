#include "reference/topics.h"

namespace halfstep::app {
namespace {

// The transcripts were produced on two processors with AMX; times and the last digits of losses
// differ on other machines. tests/app/help_test.cc runs the commands.
constexpr const char* k_guide =
    R"(halfstep reads samples and labels from local files; it downloads nothing. A config names them in its
section `data` in one of three ways: a file or folder of your own (`format` and `path`), a known data
set (`name`, see below), or `synthetic_digits`, which needs no files.

## Your own data, from the beginning

This example makes a data set, trains on it, and uses the result. Every sample is a colour picture of
16 by 16 pixels that shows a disc, a square or a cross. Save as `make_shapes.py`:

```python
import numpy as np

rng = np.random.default_rng(0)


def pictures(count):
    """Pictures [count, height, width, channels] and the class of each: 0 disc, 1 square, 2 cross."""
    x = rng.integers(0, 100, size=(count, 16, 16, 3), dtype=np.uint8)  # noise
    y = rng.integers(0, 3, size=count)
    rows, columns = np.mgrid[0:16, 0:16]
    for picture, label in zip(x, y):
        middle = rng.integers(5, 11, size=2)
        r, c = abs(rows - middle[0]), abs(columns - middle[1])
        disc, square = r * r + c * c <= 16, (r <= 3) & (c <= 3)
        cross = ((r <= 1) & (c <= 4)) | ((c <= 1) & (r <= 4))
        picture[[disc, square, cross][label]] = rng.integers(150, 256, size=3)
    return x, y


x_train, y_train = pictures(3000)
x_test, y_test = pictures(600)
np.savez_compressed("shapes.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)

# One picture by itself, as a PPM file, to try `halfstep predict` on.
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

The class of a single picture, and of every sample of an array:

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

## IDX files

`format: idx` with `path` naming a folder that holds the four files of MNIST's names
(`train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte`,
`t10k-labels-idx1-ubyte`), each plain or with gzip and `.gz` after the name. The names are fixed,
whatever the rank and the type of the elements; without a test set the last two are left out. Elements
may be uint8, int8, int16, int32, float32 or float64. This writes the data of the example so; save it as
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

## A folder of pictures

Training does not read folders of pictures; `predict` does. A folder with one folder per class becomes
an NPZ file in a few lines (Debian: `apt install python3-pil`). All pictures get one size; `"L"` in
place of `"RGB"` makes them grey. They are shuffled, because the validation samples are the last ones.
Save as `read_pictures.py` and name the folder and the file to write:

```python
import pathlib
import sys

import numpy as np
from PIL import Image

folder, size = pathlib.Path(sys.argv[1]), (16, 16)
classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
x, y = [], []
for number, name in enumerate(classes):
    for path in sorted((folder / name).iterdir()):
        x.append(np.asarray(Image.open(path).convert("RGB").resize(size)))
        y.append(number)
order = np.random.default_rng(0).permutation(len(x))
np.savez_compressed(sys.argv[2], x_train=np.stack(x)[order], y_train=np.array(y)[order])
print(len(x), "pictures, classes", dict(enumerate(classes)))
```

```
$ python3 read_pictures.py pictures pictures.npz
900 pictures, classes {0: 'cross', 1: 'disc', 2: 'square'}
$ halfstep train shapes.yaml --set data.path=pictures.npz --batch-size 16 --run-dir runs/pictures
device: cpu (no NVIDIA driver)
epoch 1/5  51 steps  0.0 s  0.56 ms/step  28282 samples/s  loss 1.0984  accuracy 0.3593  val_loss 1.0923  val_accuracy 0.3667  ETA 0:00
epoch 2/5  51 steps  0.0 s  0.59 ms/step  26847 samples/s  loss 1.0189  accuracy 0.5383  val_loss 0.9790  val_accuracy 0.6222  ETA 0:00
epoch 3/5  51 steps  0.0 s  0.46 ms/step  34696 samples/s  loss 0.8509  accuracy 0.7185  val_loss 0.7848  val_accuracy 0.7333  ETA 0:00
epoch 4/5  51 steps  0.0 s  0.45 ms/step  35440 samples/s  loss 0.6251  accuracy 0.8395  val_loss 0.5237  val_accuracy 0.9222  ETA 0:00
epoch 5/5  51 steps  0.0 s  0.38 ms/step  41919 samples/s  loss 0.3843  accuracy 0.9395  val_loss 0.3375  val_accuracy 0.9778
mixed_bfloat16        255 steps    0.3307 ms/step (median)
report: runs/pictures/report.json
$ halfstep predict runs/pictures pictures/disc | head -n 3
     0  class   1               probability 0.8077  pictures/disc/006.png
     1  class   1               probability 0.7278  pictures/disc/009.png
     2  class   1               probability 0.6123  pictures/disc/010.png
```

`predict` reads PNG files (grey of up to 8 bits, RGB of 8 bits, not interlaced), PGM and PPM files, IDX,
NPY and NPZ files (their array `x`, `images` or `x_test`, or the only one), and folders of pictures. It
does not resize: pictures have the size and the channels that the model was trained on.

## Shapes

The first axis of every array counts samples. What is left is one sample:

| array | sample | `model.input` |
|---|---|---|
| [N, height, width, channels] | colour picture | [height, width, channels] |
| [N, height, width] | grey picture | [height, width, 1] |
| [N, values] | vector | [values] |
| [N] | single number | [1] |

Samples with as many values as `model.input` are reshaped to it, in the order of their elements: a
picture may go into `input: [768]`. halfstep computes on [height, width, channels] (NHWC). Arrays of
[N, channels, height, width] (NCHW), as PyTorch has them, are transposed on load: `data.layout: nchw`
says so, and it is inferred where only one order fits `model.input`. Flat arrays of 768 values go into
`input: [16, 16, 3]` with `data.layout` saying in which order they are. `halfstep data info FILE
--format npz` says what was found.

## Labels

The loss follows from what the labels are, and the last layer from both:

| labels | array | `loss` | last layers |
|---|---|---|---|
| one class of n | integers 0 to n - 1, [N] or [N, 1] | `sparse_categorical_crossentropy` | dense of n, softmax |
| one class of n, one-hot | numbers [N, n] | `categorical_crossentropy` | dense of n, softmax |
| yes or no | integers 0 and 1, [N] | `binary_crossentropy` | dense of 1, sigmoid |
| k times yes or no | numbers [N, k] | `binary_crossentropy` | dense of k, sigmoid |
| real values | floats [N] or [N, k] | `mean_squared_error` | dense of 1 or k |

Class numbers begin at 0. Without the softmax or sigmoid the model gives scores; the loss then takes
`from_logits: true`. A label that the model has no output for, and another count of labels than of
samples, are errors that name the file. The metric is `accuracy`, for `mean_squared_error` it is
`mean_absolute_error`; `metrics` asks for others.
Data of your own has no class names: reports and `predict` give class numbers, of which you keep the
list. The known data sets have names.

## Values

Bytes (uint8) stay bytes in memory and are multiplied by 1/255 on their way into the model, so that it
sees 0 to 1. All other types become float32 and are taken as they are. `data.scale` gives another
factor, and a `rescaling` layer at the beginning of the model a factor and an offset. NaN and infinity
are errors. Values are float32 until the first layer casts them to its compute dtype: under
`mixed_float16` they should stay well below 65504.

## Splits

| split | from | used |
|---|---|---|
| training | `x_train` without its validation part | every epoch, in a new order unless `data.shuffle: false` |
| validation | the last `data.validation_split` of `x_train`, in file order | after every epoch: `val_loss`, `val_accuracy`, early stopping, targets |
| test | `x_test`, where there is one | once, at the end of training, and by `halfstep eval` |

Because the validation part is the end of the file, samples that are sorted by class must be shuffled
first. The last batch of an epoch may be smaller than `training.batch_size`. `halfstep eval --split
validation` and `--split train` measure the others.

## Keeping track

`data.sha256` in the config makes a run refuse a file that changed; `halfstep data info` prints the
sum. A run directory knows its data: `eval` and `predict` find it again as long as the file is where it
was.)";

}  // namespace

std::string data_guide() { return k_guide; }

}  // namespace halfstep::app
