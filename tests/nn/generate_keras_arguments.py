#!/usr/bin/env python3
"""Writes data/keras_arguments.json: the arguments of the constructors and calls of Keras 3's layers.

Run once: python3 -m venv venv && venv/bin/pip install keras 'jax[cpu]', then
venv/bin/python generate_keras_arguments.py

Layers have their names in snake_case. Left out are arguments of all layers, and tensors: the inputs,
masks and states of a call.
"""

import inspect
import json
import os
import pathlib
import re

os.environ["KERAS_BACKEND"] = "jax"
import keras

ALL_LAYERS = {"self", "name", "dtype", "trainable", "activity_regularizer", "autocast"}
# Of calls: `training` follows from the command, the others are tensors.
OF_CALLS = {"training", "inputs", "input", "x", "data", "query", "key", "value", "initial_state"} | {
    "mask", "query_mask", "key_mask", "value_mask", "attention_mask", "sequence", "sequences", "input_shape",
}  # fmt: skip


def snake(name):
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return name.lower()


def names(function, without):
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind not in kinds and p.name not in ALL_LAYERS | without]


def main():
    layers = {}
    for name in dir(keras.layers):
        cls = getattr(keras.layers, name)
        if isinstance(cls, type) and issubclass(cls, keras.layers.Layer):
            both = names(cls.__init__, set()) + names(cls.call, OF_CALLS)
            layers[snake(name)] = sorted(set(both))
    lines = ",\n".join(f"{json.dumps(k)}:{json.dumps(v)}" for k, v in sorted(layers.items()))
    path = pathlib.Path(__file__).parent / "data" / "keras_arguments.json"
    path.write_text(f'{{"keras":"{keras.__version__}","layers":{{\n{lines}\n}}}}\n')
    print(f"{len(layers)} layers")


if __name__ == "__main__":
    main()
