#!/usr/bin/env python3
"""Writes data/keras_page.json: outputs of the Keras models that docs/from_keras.md prints.

Run once, with Keras on JAX:

    python3 -m venv venv && venv/bin/pip install keras 'jax[cpu]'
    venv/bin/python generate_keras_page.py

Each block of Python that makes a model is run as it is printed, without training; the config is the
block of YAML behind it. Weights and samples are functions of their positions, so that the file holds
their shapes and scales alone. Outputs are computed in float64, without dropout.
"""

import json
import os
import pathlib
import re

os.environ["KERAS_BACKEND"] = "jax"
import jax

jax.config.update("jax_enable_x64", True)
import keras
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH = 2
INDICES = {"reviews_lstm": 20000, "sums_lstm": 12}


def positions(shape):
    return np.arange(int(np.prod(shape)))


def weight(number, shape, scale, positive):
    """Multiples of 1/128 in [-1, 1] times a power of 2; of variances in [0.5, 1.5]."""
    values = ((positions(shape) * 7919 + number * 31) % 257 - 128) / 128
    return ((values / 2 + 1 if positive else values) * scale).reshape(shape)


def sample(shape, indices):
    i = positions(shape)
    values = np.where(i % 7 == 0, 0, i * 7919 % indices) if indices else i * 37 % 257 / 256
    return values.reshape(shape)


def values_of(name, code):
    scope = {"keras": keras, "layers": keras.layers, "to_categorical": lambda y: y}
    scope |= dict.fromkeys(["x_train", "x_train_image", "x_train_table", "y_train"], np.ones(1))
    keras.Model.fit = lambda *args, **kwargs: None
    exec(code, scope)
    model = scope["model"]
    weights = []
    for number, variable in enumerate(model.weights):
        fan_in = np.prod(variable.shape[:-1]) if len(variable.shape) > 1 else 16
        positive = "variance" in variable.path
        scale = 1 if positive else 2.0 ** -int(np.log2(fan_in) / 2)
        variable.assign(weight(number, variable.shape, scale, positive))
        weights.append({"path": variable.path, "shape": list(variable.shape), "scale": scale, "positive": positive})
    x = [sample([BATCH, *each.shape[1:]], INDICES.get(name)) for each in model.inputs]
    y = np.asarray(model(x if len(x) > 1 else x[0], training=False), dtype=np.float64)
    return {
        "name": name,
        "indices": INDICES.get(name),
        "weights": weights,
        "y": {"shape": list(y.shape), "values": [float(f"{v:.9g}") for v in y.ravel()]},
    }


def main():
    keras.config.set_dtype_policy("float64")
    page = (ROOT / "docs/from_keras.md").read_text()
    models = []
    for code, config in re.findall(r"```python\n(.*?)```\s*```yaml\n(.*?)```", page, re.S):
        name = re.search(r"^name: (\w+)", config, re.M).group(1)
        # generate_keras_outputs.py has a model of two outputs.
        if "model = " in code and "outputs: [" not in config:
            models.append(values_of(name, code))
    lines = ",\n".join(json.dumps(model, separators=(",", ":")) for model in models)
    path = pathlib.Path(__file__).parent / "data" / "keras_page.json"
    path.write_text(f'{{"keras":"{keras.__version__}","models":[\n{lines}\n]}}\n')
    print(f"{len(models)} models, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
