"""Training steps of a halfstep model in Keras on TensorFlow, jit on and off; data resident.

oneDNN is on by default in TensorFlow's builds for x86-64 and takes AMX where the processor has it.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"

import network


def model_of(keras, task):
    kinds = keras.layers
    values = {"x": keras.Input(task.input)}
    for layer in task.layers:
        inputs, fields = [values[name] for name in layer.inputs], layer.fields
        options = {"name": layer.name.replace("/", "_")}
        if layer.type == "dense":
            made = kinds.Dense(
                fields["units"],
                activation=fields.get("activation"),
                use_bias=fields.get("use_bias", True),
            )
        elif layer.type == "conv2d":
            made = kinds.Conv2D(
                fields["filters"],
                network.pair(fields["kernel_size"]),
                network.pair(fields.get("strides")),
                fields.get("padding", "valid"),
                activation=fields.get("activation"),
                use_bias=fields.get("use_bias", True),
                **options,
            )
        elif layer.type == "batch_normalization":
            made = kinds.BatchNormalization()
        elif layer.type == "max_pooling2d":
            size = network.pair(fields.get("pool_size"), 2)
            made = kinds.MaxPooling2D(size, network.pair(fields.get("strides"), list(size)))
        elif layer.type == "global_average_pooling2d":
            made = kinds.GlobalAveragePooling2D()
        elif layer.type == "lstm":
            made = kinds.LSTM(fields["units"])
        elif layer.type == "dropout":
            made = kinds.Dropout(fields["rate"])
        elif layer.type == "flatten":
            made = kinds.Flatten()
        elif layer.type == "add":
            made = kinds.Add()
        else:
            made = kinds.Activation(layer.type)
        values[layer.name] = made(inputs[0] if len(inputs) == 1 else inputs)
    return keras.Model(values["x"], values[task.layers[-1].name])


def optimizer_of(keras, fields):
    kind = {"rmsprop": "RMSprop", "adam": "Adam", "sgd": "SGD"}[fields["type"]]
    options = {k: v for k, v in fields.items() if k in ("learning_rate", "momentum", "nesterov")}
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
    x = tf.constant(random.random([task.batch, *task.input], np.float32))
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
    main()
