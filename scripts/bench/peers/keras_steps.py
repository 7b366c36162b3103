"""Training steps of a halfstep model in Keras on TensorFlow, jit on and off; data resident.

oneDNN is on by default in TensorFlow's builds for x86-64 and takes AMX where the processor has it.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"

import network

ACTIVATIONS = ("relu", "tanh", "sigmoid", "gelu", "softmax")


def positions(keras, steps):
    """A learned vector per step, whatever the input holds, as PositionEmbedding of KerasHub."""

    class Positions(keras.layers.Layer):
        def build(self, shape):
            self.vectors = self.add_weight(shape=(steps, shape[-1]), name="vectors")

        def call(self, x):
            return keras.ops.broadcast_to(self.vectors, keras.ops.shape(x))

    return Positions()


def attention(keras, fields):
    made = keras.layers.MultiHeadAttention(fields["num_heads"], fields["key_dim"])
    return lambda x: made(x, x, use_causal_mask=fields.get("use_causal_mask", False))


def layer_of(keras, layer):
    """The function from a value, or a list of several, to the layer's.

    Errors: ValueError for a layer that this script lacks.
    """
    kinds, kind, fields = keras.layers, layer.type, layer.fields
    options = {key: fields[key] for key in ("activation", "use_bias") if key in fields}
    if kind == "dense":
        return kinds.Dense(fields["units"], **options)
    if kind == "conv2d":
        return kinds.Conv2D(
            fields["filters"],
            network.pair(fields["kernel_size"]),
            network.pair(fields.get("strides")),
            fields.get("padding", "valid"),
            **options,
        )
    if kind == "max_pooling2d":
        size = network.pair(fields.get("pool_size"), 2)
        return kinds.MaxPooling2D(size, network.pair(fields.get("strides"), list(size)))
    if kind == "multi_head_attention":
        return attention(keras, fields)
    if kind == "position_embedding":
        return positions(keras, fields["sequence_length"])
    if kind in ACTIVATIONS:
        return kinds.Activation(kind)
    plain = {
        "add": kinds.Add,
        "batch_normalization": kinds.BatchNormalization,
        "dropout": lambda: kinds.Dropout(fields["rate"]),
        "embedding": lambda: kinds.Embedding(fields["input_dim"], fields["output_dim"]),
        "flatten": kinds.Flatten,
        "global_average_pooling1d": kinds.GlobalAveragePooling1D,
        "global_average_pooling2d": kinds.GlobalAveragePooling2D,
        "layer_normalization": lambda: kinds.LayerNormalization(
            epsilon=fields.get("epsilon", 1e-3)
        ),
        "lstm": lambda: kinds.LSTM(fields["units"]),
        # The middle of every image, and no mirror: less work than halfstep's.
        "random_crop": lambda: kinds.CenterCrop(fields["height"], fields["width"]),
        "random_flip": kinds.Identity,
        "zero_padding2d": lambda: kinds.ZeroPadding2D(fields["padding"]),
    }
    if kind not in plain:
        raise ValueError(f"the script of Keras has no layer {kind}")
    return plain[kind]()


def model_of(keras, task):
    values = {"x": keras.Input(task.input)}
    for layer in task.layers:
        inputs = [values[name] for name in layer.inputs]
        values[layer.name] = layer_of(keras, layer)(inputs[0] if len(inputs) == 1 else inputs)
    return keras.Model(values["x"], values[task.layers[-1].name])


def optimizer_of(keras, fields):
    kind = {"rmsprop": "RMSprop", "adam": "Adam", "adamw": "AdamW", "sgd": "SGD"}[fields["type"]]
    known = ("learning_rate", "momentum", "nesterov", "weight_decay")
    options = {key: value for key, value in fields.items() if key in known}
    return getattr(keras.optimizers, kind)(**options)


def maker(keras, task, policy, jit, steps, x, labels):
    """A function that makes a step; with `steps` > 1 one call trains so many, in one graph."""

    def make():
        import tensorflow as tf

        keras.mixed_precision.set_global_policy(policy)
        model = model_of(keras, task)
        model.compile(
            optimizer_of(keras, task.optimizer),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=jit,
            steps_per_execution=steps,
        )
        model.make_train_function()
        batches = iter(tf.data.Dataset.from_tensors((x, labels)).repeat())

        def step():
            # The loss is read, so that the step has ended.
            model.train_function(batches)["loss"].numpy()

        step.steps = steps
        return step

    return make


def main():
    task = network.read_task()
    import keras
    import numpy as np
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(task.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    image = len(task.input) == 3
    random = np.random.default_rng(1)
    shape, vocabulary = [task.batch, *task.input], network.vocabulary(task)
    if vocabulary:
        x = tf.constant(random.integers(0, vocabulary, shape, np.int32))
    else:
        x = tf.constant(random.random(shape, np.float32))
    labels = tf.constant(random.integers(0, task.classes, [task.batch], np.int32))
    small = all(layer.fields.get("units", 0) < 1024 for layer in task.layers) and not image
    modes = {}
    for precision in task.precisions:
        policy = "float32" if precision == "float32" else f"mixed_{precision}"
        for jit in (False, True):
            mode = f"keras {'jit' if jit else 'graph'} {precision}"
            # Several steps a call save calls from Python, which count for small models.
            modes[mode] = {
                f"steps_per_execution {n}": maker(keras, task, policy, jit, n, x, labels)
                for n in ((1, 16) if small else (1,))
            }
    network.serve({"Keras": keras.__version__, "TensorFlow": tf.__version__}, modes)


if __name__ == "__main__":
    network.run(main)
