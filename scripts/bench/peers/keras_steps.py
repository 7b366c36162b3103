"""Training steps of a halfstep model in Keras on TensorFlow, jit on and off; data resident."""

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


def main():
    task = network.read_task()
    import keras
    import numpy as np
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(task.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    random = np.random.default_rng(1)
    x = tf.constant(random.random([task.batch, *task.input], np.float32))
    labels = tf.constant(random.integers(0, task.classes, [task.batch], np.int32))
    for precision in task.precisions:
        policy = "float32" if precision == "float32" else f"mixed_{precision}"
        keras.mixed_precision.set_global_policy(policy)
        for jit in (False, True):
            mode = f"keras {'jit' if jit else 'graph'} {precision}"
            try:
                model = model_of(keras, task)
                model.compile(
                    optimizer_of(keras, task.optimizer),
                    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                    jit_compile=jit,
                )
                model.make_train_function()
                data = tf.data.Dataset.from_tensors((x, labels)).repeat()
                batches = iter(data)
                network.report(mode, network.measure(lambda: model.train_function(batches), task.seconds))
            except Exception as error:  # a mode that this build cannot run
                print(f"{mode}: {str(error).splitlines()[0]}", file=sys.stderr)
                network.report(mode, None)


if __name__ == "__main__":
    main()
