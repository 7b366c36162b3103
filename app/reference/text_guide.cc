#include "reference/reference.h"

namespace halfstep::app {
namespace {

// The transcripts were produced on two processors of an Intel Xeon with AMX; see data_guide.cc.
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

)";

}  // namespace

std::string text_guide() { return k_text_guide; }

}  // namespace halfstep::app
