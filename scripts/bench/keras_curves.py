#!/usr/bin/env python3
"""Loss curves of the guide's model beside Keras's own: same data, split, batch and optimizer.

    scripts/bench/keras_curves.py [--units 64] [--seeds 3] [--epochs 5] [--policies float32,...]

Needs TensorFlow from PyPI (`pip install tensorflow-cpu`), MNIST as IDX files in HALFSTEP_DATA/mnist
and the release build of halfstep (or HALFSTEP_PROGRAM). Both start from Glorot-uniform weights and
shuffle on their own, so that curves are compared as means and spreads over seeds.
"""

import argparse
import gzip
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERIES = ("loss", "val_loss", "accuracy", "val_accuracy")


def read_idx(path, offset):
    import numpy as np

    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=offset)


def keras_histories(folder, units, seeds, epochs, policy):
    import numpy as np

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras

    x = read_idx(folder / "train-images-idx3-ubyte.gz", 16).reshape(-1, 784)
    y = read_idx(folder / "train-labels-idx1-ubyte.gz", 8)
    x = (x / 255).astype(np.float32)
    keras.mixed_precision.set_global_policy(policy)
    histories = []
    for seed in range(1, seeds + 1):
        keras.utils.set_random_seed(seed)
        layers = keras.layers
        model = keras.Sequential(
            [
                keras.Input((784,)),
                layers.Dense(units, activation="relu"),
                layers.Dense(units, activation="relu"),
                layers.Dense(10),
                layers.Activation("softmax", dtype="float32"),
            ]
        )
        model.compile("rmsprop", "sparse_categorical_crossentropy", metrics=["accuracy"])
        fit = model.fit(x, y, batch_size=8192, epochs=epochs, validation_split=0.2, verbose=0)
        histories.append(fit.history)
    return histories


def halfstep_histories(units, seeds, epochs, policy):
    program = os.environ.get("HALFSTEP_PROGRAM", ROOT / "build/release/bin/halfstep")
    histories = []
    for seed in range(1, seeds + 1):
        with tempfile.TemporaryDirectory() as folder:
            words = [program, "train", ROOT / f"configs/guide_{units}.yaml", "--json", "-q"]
            words += ["--policy", policy, "--seed", seed, "--epochs", epochs]
            words += ["--run-dir", f"{folder}/run"]
            done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(done.stderr)
            histories.append(json.loads(done.stdout)["history"])
    return histories


def summary(histories, key, epoch):
    values = [h[key][epoch] for h in histories]
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.4f} ({spread:.4f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--units", type=int, default=64, choices=(64, 4096))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--policies", default="float32,mixed_bfloat16,mixed_float16")
    options = parser.parse_args()
    folder = pathlib.Path(os.environ.get("HALFSTEP_DATA", ROOT / "datasets")) / "mnist"
    if not (folder / "train-images-idx3-ubyte.gz").exists():
        sys.exit(f"no MNIST in {folder}: set HALFSTEP_DATA")
    try:
        import keras  # noqa: F401
    except ImportError:
        sys.exit("TensorFlow is not installed: pip install tensorflow-cpu")

    print(f"mean (standard deviation) over {options.seeds} seeds")
    for policy in options.policies.split(","):
        arguments = (options.units, options.seeds, options.epochs, policy)
        ours = halfstep_histories(*arguments)
        # Keras runs mixed_float16 on CPUs too, slowly.
        theirs = keras_histories(folder, *arguments)
        for epoch in range(options.epochs):
            for key in SERIES:
                print(
                    f"{policy:<15} epoch {epoch + 1}  {key:<13}"
                    f"  halfstep {summary(ours, key, epoch)}  keras {summary(theirs, key, epoch)}"
                )


if __name__ == "__main__":
    main()
