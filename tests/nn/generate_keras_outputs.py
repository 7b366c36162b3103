#!/usr/bin/env python3
"""Writes data/keras_outputs.json: losses, metrics and weights of a model of two outputs that Keras 3
trains for three steps, in float32 and under both mixed policies.

Run once, with Keras on JAX:

    python3 -m venv venv && venv/bin/pip install keras jax
    venv/bin/python generate_keras_outputs.py

Samples and first weights are multiples of 1/64, exact in each dtype.
"""

import json
import os
import pathlib

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
import keras
import numpy as np
from keras import layers

STEPS, BATCH, INPUTS, HIDDEN, CLASSES, TARGETS = 3, 8, 6, 5, 3, 2
LOSSES = {"digit": "sparse_categorical_crossentropy", "offset": "mean_squared_error"}
WEIGHTS = {"digit": 1.0, "offset": 0.25}
METRICS = {"digit": ["accuracy"], "offset": ["mean_absolute_error"]}


def values(rng, *shape):
    return rng.integers(-48, 49, shape).astype(np.float32) / 64


def model_of(policy):
    x = keras.Input((INPUTS,))
    hidden = layers.Dense(HIDDEN, activation="relu", dtype=policy, name="hidden")(x)
    scores = layers.Dense(CLASSES, dtype=policy, name="scores")(hidden)
    outputs = {
        "digit": layers.Softmax(dtype="float32", name="digit")(scores),
        "offset": layers.Dense(TARGETS, dtype="float32", name="offset")(hidden),
    }
    return keras.Model(x, outputs)


def case_of(policy):
    keras.config.set_dtype_policy(policy)
    rng = np.random.default_rng(7)
    model = model_of(policy)
    weights = {w.path: values(rng, *w.shape) for w in model.trainable_variables}
    for w in model.trainable_variables:
        w.assign(weights[w.path])
    x = values(rng, STEPS * BATCH, INPUTS)
    digit = rng.integers(0, CLASSES, STEPS * BATCH)
    offset = values(rng, STEPS * BATCH, TARGETS)
    model.compile(optimizer=keras.optimizers.SGD(0.5, momentum=0.5),
                  loss=LOSSES, loss_weights=WEIGHTS, metrics=METRICS)
    logs = []
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        model.reset_metrics()
        logs.append(model.train_on_batch(
            x[rows], {"digit": digit[rows], "offset": offset[rows]}, return_dict=True))
    flat = {name: [round(float(v), 9) for v in array.ravel()] for name, array in {
        "x": x, "digit": digit, "offset": offset}.items()}
    return {
        "policy": policy,
        **flat,
        "first": {name: [float(v) for v in w.ravel()] for name, w in weights.items()},
        "logs": [{name: float(v) for name, v in log.items()} for log in logs],
        "final": {w.path: [float(v) for v in np.asarray(w.value).ravel()]
                  for w in model.trainable_variables},
    }


def main():
    data = {
        "keras": keras.__version__,
        "steps": STEPS,
        "batch": BATCH,
        "config": {
            "data": {"format": "npz", "path": "x.npz"},
            "model": {
                "inputs": {"x": [INPUTS]},
                "nodes": {
                    "hidden": {"type": "dense", "units": HIDDEN, "activation": "relu", "from": "x"},
                    "scores": {"type": "dense", "units": CLASSES, "from": "hidden"},
                    "digit": {"type": "softmax", "dtype": "float32", "from": "scores"},
                    "offset": {"type": "dense", "units": TARGETS, "dtype": "float32",
                               "from": "hidden"},
                },
                "outputs": ["digit", "offset"],
            },
            "loss": LOSSES,
            "loss_weights": WEIGHTS,
            "metrics": METRICS,
            "optimizer": {"type": "sgd", "learning_rate": 0.5, "momentum": 0.5},
            "training": {"batch_size": BATCH},
        },
        "cases": [case_of(p) for p in ("float32", "mixed_float16", "mixed_bfloat16")],
    }
    path = pathlib.Path(__file__).parent / "data/keras_outputs.json"
    path.write_text(json.dumps(data, indent=1) + "\n")


main()
