#include "reference/reference.h"

namespace halfstep::app {
namespace {

// The transcripts were produced on two processors of an Intel Xeon with AMX (see data_guide.cc),
// that of a column of texts on two of AMD's Zen 5.
constexpr const char* k_text_guide =
    R"(## A text

`format: text` with `path` naming a text, or a folder with texts, makes samples for the prediction of the next
token: windows of `length` tokens, whose labels are the tokens that follow each of them. This writes a tale;
save it as `write_tale.py`:

```python
import random

random.seed(0)
WHO = ["the cat", "the old fox", "a child", "the miller"]
DOES = {"sees": ["the moon", "a red bird"], "eats": ["an apple", "warm bread"], "hears": ["a song"]}
with open("tale.txt", "w") as file:
    for _ in range(1500):
        verb = random.choice(list(DOES))
        file.write(f"{random.choice(WHO)} {verb} {random.choice(DOES[verb])}.\n".capitalize())
with open("start.txt", "w") as file:
    file.write("The miller eats warm bread.\nThe ")
```

```
$ python3 write_tale.py
$ halfstep data info tale.txt --format text
text: 587 training and 0 test windows of [64] float32, 25 classes
from tale.txt
vocabulary of 25 characters: <unknown>   e a s h r l o \n . d T t n i m c p g b A f x w
window 0: The miller eats an apple.\nThe miller eats warm bread.\nThe miller
window 1:  eats warm bread.\nThe old fox hears a song.\nThe old fox eats an 
window 2: apple.\nA child hears a song.\nThe cat eats an apple.\nA child hear
  b49cc0aabd39c5cb9b3323554be6a373185a723811497a3480bdf1a4f3cd32e3  tale.txt
```

The model takes the numbers of the tokens to a layer `embedding` and has an output for each token at each
position. `use_causal_mask` keeps a position from seeing those after it. The config, `tale.yaml`:

```yaml
version: 1
name: tale
seed: 1
data:
  format: text
  path: tale.txt
  text: {length: 32, tokens: character, vocabulary_size: 40}
  test_split: 0.1             # the end of the text
  validation_split: 0.1
model:
  inputs: {characters: [32]}
  nodes:
    embedded: {type: embedding, input_dim: 40, output_dim: 32, from: characters}
    positions: {type: position_embedding, sequence_length: 32, from: embedded}
    start: {type: add, from: [embedded, positions]}
    attention: {type: multi_head_attention, num_heads: 4, key_dim: 8, use_causal_mask: true, from: start}
    sum: {type: add, from: [start, attention]}
    hidden: {type: dense, units: 64, activation: relu, from: sum}
    logits: {type: dense, units: 40, dtype: float32, from: hidden}
  outputs: [logits]
precision: {policy: mixed_bfloat16}
loss: {type: sparse_categorical_crossentropy, from_logits: true}
optimizer: {type: adam, learning_rate: 1e-2}
training: {epochs: 6, batch_size: 32}
```

`input_dim` and the units of the last layer are the size of the vocabulary, which `data info tale.yaml` shows.
`vocabulary_size` is the most that it can be, so that another text fits as well.

```
$ halfstep train tale.yaml --run-dir runs/tale
device: cpu (no NVIDIA driver)
epoch 1/6  30 steps  0.1 s  2.70 ms/step  11750 samples/s  loss 2.5463  accuracy 0.2731  val_loss 1.6051  val_accuracy 0.4779  ETA 0:00
epoch 2/6  30 steps  0.1 s  2.76 ms/step  11466 samples/s  loss 1.2768  accuracy 0.5138  val_loss 1.1051  val_accuracy 0.5643  ETA 0:00
epoch 3/6  30 steps  0.1 s  2.82 ms/step  11260 samples/s  loss 0.9649  accuracy 0.6282  val_loss 0.8125  val_accuracy 0.6952  ETA 0:00
epoch 4/6  30 steps  0.1 s  2.71 ms/step  11678 samples/s  loss 0.6074  accuracy 0.7773  val_loss 0.4186  val_accuracy 0.8529  ETA 0:00
epoch 5/6  30 steps  0.1 s  3.67 ms/step  8646 samples/s  loss 0.3219  accuracy 0.8784  val_loss 0.2646  val_accuracy 0.8915  ETA 0:00
epoch 6/6  30 steps  0.1 s  3.80 ms/step  8343 samples/s  loss 0.2292  accuracy 0.9034  val_loss 0.2294  val_accuracy 0.9004
mixed_bfloat16        180 steps     2.741 ms/step (median)  test_accuracy 0.8998  test_loss 0.2275
report: runs/tale/report.json
```

The loss is the mean of -log p over all positions, and exp(loss) the perplexity. `predict` cuts a text into
windows, of which the last one ends with the text, and gives for each the token that follows each of its
tokens; the last token continues the text:

```
$ halfstep predict runs/tale start.txt
     0  next  he ciller hats warm bread.\nThe c
```

- `tokens: byte`, the default, takes any file and has 256 tokens. `character` and `word` take UTF-8, without or
  with a byte order mark; bytes that are no UTF-8 are an error with line and position. A word is a run of
  letters and digits, with apostrophes between them; every other character but blanks is a word of its own, and
  blanks and ends of lines are none. Upper and lower case differ.
- The vocabulary of characters and words is that of the windows that are trained on, the most frequent first.
  Number 0 stands for all others. A run keeps it in `data.json`; `eval` and `predict` use it, whatever file
  they read.
- `stride` below `length` gives windows that overlap, and so more samples.
- `data.test_split` is the end of the text: no token is in a training and a test window. The validation part
  is the last of the training windows; where they overlap, the first of it share tokens with those trained on.
- A folder gives its files that end in .txt or .txt.gz, by name and one after the other, as one text. A file
  may be compressed with gzip. A text with fewer tokens than a window and its last label is an error.
- `eval` counts no classes of a text.

## A column of texts

`format: csv` with `data.text.column` naming the column makes a sample of the text in each row: its first `length`
tokens, with 0 behind those of a shorter one. This writes reviews with their verdicts; save it as
`write_reviews.py`:

```python
import csv
import random

random.seed(0)
GOOD, BAD = ["a lovely", "a great", "a superb"], ["a dull", "an awful", "not a great"]
WHAT = ["film", "plot", "cast", "score", "ending"]
with open("reviews.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["number", "review", "verdict"])
    for number in range(2000):
        likes = random.random() < 0.5
        words = random.choices(GOOD if likes else BAD, k=random.randint(1, 4))
        parts = [f"{word} {random.choice(WHAT)}" for word in words]
        verdict = "good" if likes == (random.random() < 0.95) else "bad"  # some are mistakes
        writer.writerow([number, ", ".join(parts).capitalize() + ".", verdict])
with open("new_reviews.csv", "w", newline="") as file:
    csv.writer(file).writerows([["review"], ["A superb score."], ["Not a great film, a dull plot."]])
```

The config, `reviews.yaml`. `mask_zero` keeps padding from the layers that follow:

```yaml
version: 1
name: reviews
seed: 1
data:
  format: csv
  path: reviews.csv
  table: {target: verdict}
  text: {column: review, length: 20, tokens: word, lowercase: true, vocabulary_size: 500}
  test_split: 0.2
  validation_split: 0.1
model:
  input: [20]                 # tokens
  layers:
    - {type: embedding, input_dim: 500, output_dim: 16, mask_zero: true}
    - {type: gru, units: 16}
    - {type: dense, units: 2, name: logits}
    - {type: softmax, dtype: float32}
precision: {policy: mixed_bfloat16}
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 1e-2}
training: {epochs: 3, batch_size: 32}
```

```
$ python3 write_reviews.py
$ halfstep data info reviews.yaml
csv: 1600 training and 400 test rows of [20] float32, 2 classes
from reviews.csv
classes: bad, good
vocabulary of 17 words: <padding> <unknown> a , . great ending film cast score plot lovely dull superb not an awful
text 0: a dull ending , an awful plot .
text 1: not a great plot .
text 2: a great cast , a lovely score , a great film .
  d3138ccf71f9b5c9fe36080ae39129c10b7494235d8641be850216a8854d8cc0  reviews.csv
$ halfstep train reviews.yaml --run-dir runs/reviews
device: cpu (no NVIDIA driver)
epoch 1/3  45 steps  0.0 s  0.15 ms/step  209570 samples/s  loss 0.3793  accuracy 0.8271  val_loss 0.2535  val_accuracy 0.9375  ETA 0:00
epoch 2/3  45 steps  0.0 s  0.15 ms/step  216207 samples/s  loss 0.1926  accuracy 0.9535  val_loss 0.2398  val_accuracy 0.9375  ETA 0:00
epoch 3/3  45 steps  0.0 s  0.27 ms/step  119693 samples/s  loss 0.1920  accuracy 0.9535  val_loss 0.2364  val_accuracy 0.9375
mixed_bfloat16        135 steps    0.1407 ms/step (median)  test_accuracy 0.9325  test_loss 0.2546
report: runs/reviews/report.json
```

`predict` takes a table with that column:

```
$ halfstep predict runs/reviews new_reviews.csv
     0  class   1  good         probability 0.9425
     1  class   0  bad          probability 0.9346
```

- Token 0 is padding and 1 any token that is not in the vocabulary, as in Keras's `TextVectorization`, whose
  `max_tokens` is `vocabulary_size` and whose `output_sequence_length` is `length`. Bytes have their values.
- The model sees no other column. The target, the splits, missing values and the rules of the file are those of
  [a table](#a-table).
- `tokens` and the vocabulary are those of [a text](#a-text), learned from the rows that are trained on; punctuation
  is not removed. `lowercase: true` reads A to Z as a to z.
- Longer texts are truncated; training reports how many.

)";

}  // namespace

std::string text_guide() { return k_text_guide; }

}  // namespace halfstep::app
