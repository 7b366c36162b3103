#include "reference/reference.h"

namespace halfstep::app {
namespace {

// The transcripts were produced on two processors of Zen 4; see data_guide.cc.
constexpr const char* k_table_guide =
    R"(## A table

`format: csv` with `path` naming one CSV file, plain or compressed with gzip: a line of column names, then a
row per sample. This writes 800 flats with their rents; save it as `write_flats.py`:

```python
import csv

import numpy as np

rng = np.random.default_rng(0)
FACTORS = {"centre": 1.4, "north": 1.0, "port": 0.8}
with open("flats.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["id", "area", "rooms", "district", "rent"])
    for number in range(800):
        area, district = rng.uniform(25, 120), str(rng.choice(list(FACTORS)))
        rent = (0.1 * area * FACTORS[district] + 1) * rng.normal(1, 0.02)  # hundreds of euros
        rooms = "" if number % 40 == 0 else round(area / 25)  # some values are missing
        writer.writerow([number, f"{area:.1f}", rooms, district, f"{rent:.2f}"])
with open("new_flats.csv", "w", newline="") as file:
    csv.writer(file).writerows([["district", "area", "rooms"], ["port", 50, 2], ["centre", 80, 3]])
```

`halfstep data info` shows what the columns become. A column of numbers is one feature, a column of texts one
feature for each of its texts, so the model of these flats has `input: [6]`; without the column `id`, which
says nothing about the rent, `input: [5]`:

```
$ python3 write_flats.py
$ halfstep data info flats.csv --format csv --target rent
csv: 800 training and 0 test rows of [6] float32, labels are numbers
from flats.csv
column                   features  in the training rows
id                              1  mean 399.5, deviation 230.94
area                            1  mean 72.1918, deviation 27.7339
rooms                           1  mean 2.86538, deviation 1.1728
district                        3  centre, north, port
sample 0: 0.4395 0.552 0.1148 0 0 1  label 7.71
sample 1: 1.111 0.7683 0.9674 0 0 1  label 8.52
sample 2: 0.8942 0.57 0.9674 0 1 0  label 9.75
  8b7bd04b66c18254924e3366dd91279f4af348ecafb36bbb2aed00fead6d7de7  flats.csv
```

Twenty samples have no value in `rooms`. A missing value is an error unless `on_missing` is `fill` or `skip`
(`data info --target` fills it to show the rest). The config, `flats.yaml`:

```yaml
version: 1
name: flats
seed: 1
data:
  format: csv
  path: flats.csv
  table:
    target: rent              # numbers, for a loss of values; otherwise classes
    ignore: [id]
    on_missing: fill          # the mean of the column; skip leaves such rows out
  test_split: 0.2
  validation_split: 0.1
model:
  input: [5]                  # area, rooms, and three districts
  layers:
    - {type: dense, units: 32, activation: relu}
    - {type: dense, units: 32, activation: relu}
    - {type: dense, units: 1, dtype: float32}
precision: {policy: mixed_bfloat16}
loss: mean_squared_error
optimizer: {type: adam, learning_rate: 1e-2}
training: {epochs: 12, batch_size: 32}
```

```
$ halfstep train flats.yaml --run-dir runs/flats
device: cpu (no NVIDIA driver)
epoch 1/12  18 steps  0.0 s  0.04 ms/step  769463 samples/s  loss 41.0111  mean_absolute_error 5.2443  val_loss 9.0132  val_mean_absolute_error 2.2470  ETA 0:00
epoch 2/12  18 steps  0.0 s  0.03 ms/step  1020556 samples/s  loss 4.3847  mean_absolute_error 1.5624  val_loss 1.2689  val_mean_absolute_error 0.9641  ETA 0:00
epoch 3/12  18 steps  0.0 s  0.27 ms/step  118450 samples/s  loss 0.8347  mean_absolute_error 0.7189  val_loss 0.6219  val_mean_absolute_error 0.6531  ETA 0:00
epoch 4/12  18 steps  0.0 s  0.05 ms/step  710854 samples/s  loss 0.3200  mean_absolute_error 0.4645  val_loss 0.2711  val_mean_absolute_error 0.4048  ETA 0:00
epoch 5/12  18 steps  0.0 s  0.05 ms/step  672874 samples/s  loss 0.1721  mean_absolute_error 0.3429  val_loss 0.1871  val_mean_absolute_error 0.3227  ETA 0:00
epoch 6/12  18 steps  0.0 s  0.04 ms/step  889081 samples/s  loss 0.1089  mean_absolute_error 0.2720  val_loss 0.1452  val_mean_absolute_error 0.2789  ETA 0:00
epoch 7/12  18 steps  0.0 s  0.03 ms/step  951297 samples/s  loss 0.0792  mean_absolute_error 0.2296  val_loss 0.1162  val_mean_absolute_error 0.2508  ETA 0:00
epoch 8/12  18 steps  0.0 s  0.03 ms/step  1260728 samples/s  loss 0.0649  mean_absolute_error 0.2074  val_loss 0.1034  val_mean_absolute_error 0.2348  ETA 0:00
epoch 9/12  18 steps  0.0 s  0.04 ms/step  740848 samples/s  loss 0.0575  mean_absolute_error 0.1955  val_loss 0.0937  val_mean_absolute_error 0.2172  ETA 0:00
epoch 10/12  18 steps  0.0 s  0.22 ms/step  148321 samples/s  loss 0.0509  mean_absolute_error 0.1814  val_loss 0.0908  val_mean_absolute_error 0.2118  ETA 0:00
epoch 11/12  18 steps  0.0 s  0.03 ms/step  1014006 samples/s  loss 0.0456  mean_absolute_error 0.1728  val_loss 0.0853  val_mean_absolute_error 0.2062  ETA 0:00
epoch 12/12  18 steps  0.0 s  0.03 ms/step  1041292 samples/s  loss 0.0433  mean_absolute_error 0.1660  val_loss 0.0806  val_mean_absolute_error 0.1885
mixed_bfloat16        216 steps   0.01997 ms/step (median)  test_loss 0.0703  test_mean_absolute_error 0.1874
report: runs/flats/report.json
```

The metric of a loss of values is `mean_absolute_error`, here in hundreds of euros. `predict` takes rows
without the target, with their columns in any order, and encodes them as the training rows were:

```
$ halfstep predict runs/flats new_flats.csv
     0  value 4.83246
     1  value 12.2079
```

- Numbers become (x - mean) / deviation, with the mean and the standard deviation of the rows that are
  trained on, unless `standardize: false` leaves them as they are. `categorical: [zip_code]` makes categories
  of a column of numbers.
- The target has classes, named by its values, for a cross-entropy, and numbers for `mean_squared_error` and
  the other losses of values.
- A value is missing where the text is empty or among `missing_values`. Rows without a target are an error
  too; `on_missing: skip` leaves them out.
- A category that no training row has is an error, which names the row; with `on_unknown: zeros` it has
  none of the features.
- Splits: `path` may be a folder with `train.csv` and `test.csv`. Otherwise `data.test_split` of the rows of
  each class, or of all rows, becomes the test set, chosen by `data.split_seed`; the training rows are in an
  order drawn from it, so that `data.validation_split`, the end of them, is like the others.
- The separator is found in the first line (comma, semicolon, tab or |) unless `separator` names it, numbers
  have a decimal point, and a text that holds the separator, a quote or an end of line is in double quotes
  (RFC 4180). A file without a line of names has them from `columns`. A number among texts, a text among
  numbers and a row of another length are errors with their line.
- A run keeps the statistics and the categories in `data.json`; `eval` and `predict` use them, whatever file
  they read.

)";

}  // namespace

std::string table_guide() { return k_table_guide; }

}  // namespace halfstep::app
