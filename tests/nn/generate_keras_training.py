#!/usr/bin/env python3
"""Writes data/keras_training.json: losses, metrics, learning rates and weights of a dense layer that
Keras 3 trains for six steps, for each loss, optimizer and schedule.

Run once, with Keras on TensorFlow:

    python3 -m venv venv && venv/bin/pip install tensorflow
    venv/bin/python generate_keras_training.py [CASES]

CASES: the first so many cases of the file are kept as they are; new ones follow them.

Everything is computed in float64, as the reference that float32 is measured against. Samples
and first weights are multiples of 1/64, exact in float32.
"""

import json
import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras
import numpy as np
import tensorflow as tf

keras.backend.set_floatx("float64")

STEPS, BATCH, INPUTS, CLASSES = 6, 5, 4, 3

LOSSES = {
    "sparse_categorical_crossentropy": keras.losses.SparseCategoricalCrossentropy,
    "categorical_crossentropy": keras.losses.CategoricalCrossentropy,
    "binary_crossentropy": keras.losses.BinaryCrossentropy,
    "mean_squared_error": keras.losses.MeanSquaredError,
    "mean_absolute_error": keras.losses.MeanAbsoluteError,
    "huber": keras.losses.Huber,
    "kl_divergence": keras.losses.KLDivergence,
    "hinge": keras.losses.Hinge,
    "squared_hinge": keras.losses.SquaredHinge,
    "log_cosh": keras.losses.LogCosh,
    "poisson": keras.losses.Poisson,
    "mean_absolute_percentage_error": keras.losses.MeanAbsolutePercentageError,
    "mean_squared_logarithmic_error": keras.losses.MeanSquaredLogarithmicError,
    "cosine_similarity": keras.losses.CosineSimilarity,
}
OPTIMIZERS = {
    "sgd": keras.optimizers.SGD,
    "rmsprop": keras.optimizers.RMSprop,
    "adam": keras.optimizers.Adam,
    "adamw": keras.optimizers.AdamW,
    "adagrad": keras.optimizers.Adagrad,
    "adadelta": keras.optimizers.Adadelta,
    "adamax": keras.optimizers.Adamax,
    "ftrl": keras.optimizers.Ftrl,
    "lion": keras.optimizers.Lion,
    "muon": keras.optimizers.Muon,
    "nadam": keras.optimizers.Nadam,
}
SCHEDULES = {
    "exponential_decay": keras.optimizers.schedules.ExponentialDecay,
    "piecewise_constant": keras.optimizers.schedules.PiecewiseConstantDecay,
    "polynomial_decay": keras.optimizers.schedules.PolynomialDecay,
    "inverse_time_decay": keras.optimizers.schedules.InverseTimeDecay,
    "cosine_decay_restarts": keras.optimizers.schedules.CosineDecayRestarts,
}

SCORES = {"type": "sparse_categorical_crossentropy", "from_logits": True}

# (name, differences from: softmax scores, class numbers, sgd with a rate of 0.1)
CASES = [
    ("sgd", {"optimizer": {"type": "sgd"}}),
    ("sgd, momentum", {"optimizer": {"type": "sgd", "momentum": 0.9}}),
    ("sgd, nesterov", {"optimizer": {"type": "sgd", "momentum": 0.8, "nesterov": True}}),
    ("rmsprop", {"optimizer": {"type": "rmsprop"}}),
    ("rmsprop, fields", {"optimizer": {"type": "rmsprop", "rho": 0.7, "epsilon": 1e-3}}),
    ("rmsprop, centered", {"optimizer": {"type": "rmsprop", "centered": True}}),
    ("rmsprop, momentum", {"optimizer": {"type": "rmsprop", "momentum": 0.9, "centered": True}}),
    ("adam", {"optimizer": {"type": "adam"}}),
    ("adam, fields", {"optimizer": {"type": "adam", "beta_1": 0.8, "beta_2": 0.9, "epsilon": 0.1}}),
    ("adamw", {"optimizer": {"type": "adamw"}}),
    ("adamw, fields", {"optimizer": {"type": "adamw", "learning_rate": 0.1, "weight_decay": 0.5}}),
    ("adagrad", {"optimizer": {"type": "adagrad"}}),
    ("adagrad, fields", {"optimizer": {"type": "adagrad", "initial_accumulator_value": 0.5}}),
    ("clipvalue", {"optimizer": {"type": "sgd", "learning_rate": 0.5, "clipvalue": 0.0625}}),
    ("clipnorm", {"optimizer": {"type": "sgd", "learning_rate": 0.5, "clipnorm": 0.125}}),
    ("global_clipnorm", {"optimizer": {"type": "adam", "global_clipnorm": 0.25}}),
    ("exponential_decay", {"schedule": {"type": "exponential_decay", "initial_learning_rate": 0.5,
                                        "decay_steps": 3, "decay_rate": 0.5}}),
    ("exponential_decay, staircase", {"schedule": {
        "type": "exponential_decay", "initial_learning_rate": 0.5, "decay_steps": 2,
        "decay_rate": 0.25, "staircase": True}}),
    ("piecewise_constant", {"schedule": {"type": "piecewise_constant", "boundaries": [1, 3],
                                         "values": [0.5, 0.25, 0.125]}}),
    ("polynomial_decay", {"schedule": {"type": "polynomial_decay", "initial_learning_rate": 0.5,
                                       "decay_steps": 4, "end_learning_rate": 0.1, "power": 2}}),
    ("polynomial_decay, cycle", {"schedule": {
        "type": "polynomial_decay", "initial_learning_rate": 0.5, "decay_steps": 2,
        "end_learning_rate": 0.1, "cycle": True}}),
    ("inverse_time_decay", {"schedule": {"type": "inverse_time_decay", "initial_learning_rate": 0.5,
                                         "decay_steps": 2, "decay_rate": 0.5}}),
    ("cosine_decay", {"schedule": {"type": "cosine_decay", "initial_learning_rate": 0.5,
                                   "decay_steps": 4, "alpha": 0.1}}),
    ("cosine_decay, warm-up", {"schedule": {
        "type": "cosine_decay", "initial_learning_rate": 0.5, "decay_steps": 5, "warmup_steps": 3,
        "warmup_start": 0.1}}),
    ("sparse, probabilities", {"loss": {"type": "sparse_categorical_crossentropy"},
                               "activation": "softmax",
                               "metrics": ["accuracy", "top_2_accuracy"]}),
    ("categorical, probabilities", {"loss": {"type": "categorical_crossentropy",
                                             "label_smoothing": 0.25},
                                    "activation": "softmax", "labels": "one_hot",
                                    "metrics": ["accuracy", "top_2_accuracy"]}),
    ("categorical, not normalised", {"loss": {"type": "categorical_crossentropy"},
                                     "activation": "softplus", "labels": "one_hot"}),
    ("categorical, scores", {"loss": {"type": "categorical_crossentropy", "from_logits": True},
                             "labels": "one_hot", "metrics": ["accuracy"]}),
    ("binary, probabilities", {"loss": {"type": "binary_crossentropy"}, "activation": "sigmoid",
                               "units": 1, "labels": "bits", "metrics": ["accuracy"]}),
    ("binary, scores", {"loss": {"type": "binary_crossentropy", "from_logits": True,
                                 "label_smoothing": 0.125},
                        "labels": "one_hot"}),
    ("mean_squared_error", {"loss": {"type": "mean_squared_error"}, "labels": "values",
                            "metrics": ["mean_squared_error", "mean_absolute_error"]}),
    ("mean_absolute_error", {"loss": {"type": "mean_absolute_error"}, "labels": "values"}),
    ("huber", {"loss": {"type": "huber"}, "labels": "values"}),
    ("huber, delta", {"loss": {"type": "huber", "delta": 0.25}, "labels": "values"}),
    ("kl_divergence", {"loss": {"type": "kl_divergence"}, "activation": "softmax",
                       "labels": "one_hot"}),
    ("hinge", {"loss": {"type": "hinge"}, "labels": "one_hot"}),
    ("hinge, bits", {"loss": {"type": "hinge"}, "units": 1, "labels": "bits"}),
    ("squared_hinge", {"loss": {"type": "squared_hinge"}, "labels": "one_hot"}),
    ("adadelta", {"optimizer": {"type": "adadelta", "learning_rate": 1.0}}),
    ("adadelta, fields", {"optimizer": {"type": "adadelta", "rho": 0.5, "epsilon": 0.01}}),
    ("adamax", {"optimizer": {"type": "adamax", "learning_rate": 0.01}}),
    ("adamax, fields", {"optimizer": {"type": "adamax", "beta_1": 0.5, "beta_2": 0.75,
                                      "epsilon": 0.1}}),
    ("ftrl", {"optimizer": {"type": "ftrl", "learning_rate": 0.1}}),
    ("ftrl, fields", {"optimizer": {
        "type": "ftrl", "learning_rate": 0.5, "learning_rate_power": -0.25,
        "initial_accumulator_value": 0.25, "l1_regularization_strength": 0.125,
        "l2_regularization_strength": 0.0625, "l2_shrinkage_regularization_strength": 0.25,
        "beta": 0.5}}),
    ("lion", {"optimizer": {"type": "lion", "learning_rate": 0.01}}),
    ("lion, fields", {"optimizer": {"type": "lion", "beta_1": 0.5, "beta_2": 0.75}}),
    ("nadam", {"optimizer": {"type": "nadam", "learning_rate": 0.01}}),
    ("nadam, fields", {"optimizer": {"type": "nadam", "beta_1": 0.5, "beta_2": 0.75,
                                     "epsilon": 0.1}}),
    ("adam, amsgrad", {"optimizer": {"type": "adam", "beta_2": 0.5, "amsgrad": True}}),
    ("adamw, amsgrad", {"optimizer": {"type": "adamw", "learning_rate": 0.1, "weight_decay": 0.5,
                                      "beta_2": 0.5, "amsgrad": True}}),
    ("sparse, scores at positions", {"positions": 2, "metrics": ["accuracy", "top_2_accuracy"]}),
    ("sparse, probabilities at positions", {"positions": 2, "activation": "softmax",
                                            "loss": {"type": "sparse_categorical_crossentropy"},
                                            "metrics": ["accuracy"]}),
    ("sparse, scores at masked positions", {"positions": 4, "masked": True}),
    ("mean_squared_error at masked positions", {"positions": 4, "masked": True, "labels": "values",
                                                "loss": {"type": "mean_squared_error"}}),
    ("class weights", {"class_weight": {"0": 0.25, "2": 3}, "metrics": ["accuracy"]}),
    ("class weights, one-hot", {"class_weight": {"0": 2, "1": 0, "2": 0.5}, "labels": "one_hot",
                                "loss": {"type": "categorical_crossentropy", "from_logits": True}}),
    ("class weights, bits", {"class_weight": {"1": 4}, "units": 1, "labels": "bits",
                             "loss": {"type": "binary_crossentropy", "from_logits": True}}),
    ("muon", {"optimizer": {"type": "muon", "learning_rate": 0.1}}),
    ("muon, fields", {"optimizer": {
        "type": "muon", "learning_rate": 0.1, "momentum": 0.5, "nesterov": False, "ns_steps": 3,
        "weight_decay": 0.5, "adam_beta_1": 0.5, "adam_beta_2": 0.75, "adam_weight_decay": 0.25,
        "epsilon": 0.01, "muon_a": 3, "muon_b": -4, "muon_c": 1.75, "adam_lr_ratio": 0.5,
        "rms_rate": 0.5}}),
    ("muon, wide kernel, no rms_rate", {"units": 6, "optimizer": {
        "type": "muon", "learning_rate": 0.1, "rms_rate": None}}),
    ("accumulated gradients", {"accumulate": 2, "metrics": ["accuracy"],
                               "optimizer": {"type": "adam", "learning_rate": 0.1}}),
    ("accumulated gradients, clipped", {"accumulate": 3, "optimizer": {
        "type": "sgd", "learning_rate": 0.5, "momentum": 0.5, "global_clipnorm": 0.125}}),
    ("sample weights", {"sample_weight": True, "metrics": ["accuracy"]}),
    ("sample weights, values", {"sample_weight": True, "labels": "values",
                                "loss": {"type": "mean_squared_error"}}),
    ("sample weights at positions", {"sample_weight": True, "positions": 3}),
    ("sample weights at masked positions", {"sample_weight": True, "positions": 4, "masked": True}),
    ("cosine_decay_restarts", {"schedule": {
        "type": "cosine_decay_restarts", "initial_learning_rate": 0.5, "first_decay_steps": 2,
        "m_mul": 0.5, "alpha": 0.125}}),
    ("cosine_decay_restarts, equal periods", {"schedule": {
        "type": "cosine_decay_restarts", "initial_learning_rate": 0.5, "first_decay_steps": 2,
        "t_mul": 1.0}}),
    ("ignored class, outside", {"loss": {**SCORES, "ignore_class": -1}, "void": -1,
                                "metrics": ["accuracy"]}),
    ("ignored class, inside", {"loss": {"type": "sparse_categorical_crossentropy",
                                        "ignore_class": 1}, "activation": "softmax"}),
    ("ignored class at positions", {"loss": {**SCORES, "ignore_class": 255}, "void": 255,
                                    "positions": 4}),
    ("ignored class at masked positions", {"loss": {**SCORES, "ignore_class": 7}, "void": 7,
                                           "positions": 4, "masked": True}),
    ("ignored class, weights", {"loss": {**SCORES, "ignore_class": 0}, "positions": 3,
                                "sample_weight": True}),
    *((f"weight decay, {name}", {"optimizer": {"type": kind, **more, "learning_rate": 0.125,
                                               "weight_decay": 0.5}})
      for name, kind, more in [
          ("sgd", "sgd", {}), ("momentum", "sgd", {"momentum": 0.5}),
          ("nesterov", "sgd", {"momentum": 0.5, "nesterov": True}), ("adam", "adam", {}),
          ("amsgrad", "adam", {"amsgrad": True}), ("rmsprop", "rmsprop", {}),
          ("rmsprop, momentum", "rmsprop", {"momentum": 0.5}),
          ("rmsprop, centered", "rmsprop", {"centered": True}), ("adagrad", "adagrad", {}),
          ("adadelta", "adadelta", {}), ("adamax", "adamax", {}), ("ftrl", "ftrl", {}),
          ("lion", "lion", {}), ("nadam", "nadam", {})]),
    ("log_cosh", {"loss": {"type": "log_cosh"}, "labels": "values"}),
    ("poisson", {"loss": {"type": "poisson"}, "activation": "softplus", "labels": "one_hot"}),
    ("mean_absolute_percentage_error", {"loss": {"type": "mean_absolute_percentage_error"},
                                        "labels": "values", "optimizer": {
                                            "type": "sgd", "learning_rate": 1e-4}}),
    ("mean_squared_logarithmic_error", {"loss": {"type": "mean_squared_logarithmic_error"},
                                        "labels": "values"}),
    ("cosine_similarity", {"loss": {"type": "cosine_similarity"}, "labels": "values"}),
    ("cosine_similarity, sample weights", {"loss": {"type": "cosine_similarity"},
                                           "sample_weight": True, "labels": "values"}),
]


def fields(config):
    return {k: v for k, v in config.items() if k != "type"}


def schedule_of(config):
    if config["type"] != "cosine_decay":
        own = fields(config)
        return SCHEDULES[config["type"]](**own)
    own = fields(config)
    warmup = own.pop("warmup_steps", 0)
    start = own.pop("warmup_start", 0)
    if warmup:
        target = own.pop("initial_learning_rate")
        own.update(initial_learning_rate=start, warmup_target=target, warmup_steps=warmup)
    return keras.optimizers.schedules.CosineDecay(**own)


def metric_of(name, sparse, bits):
    if name == "accuracy" and bits:
        return keras.metrics.BinaryAccuracy()
    if name == "accuracy":
        kind = "SparseCategoricalAccuracy" if sparse else "CategoricalAccuracy"
        return getattr(keras.metrics, kind)()
    if name == "top_2_accuracy":
        kind = "SparseTopKCategoricalAccuracy" if sparse else "TopKCategoricalAccuracy"
        return getattr(keras.metrics, kind)(k=2)
    return {"mean_squared_error": keras.metrics.MeanSquaredError,
            "mean_absolute_error": keras.metrics.MeanAbsoluteError}[name]()


def numbers(array):
    return [float(f"{x:.12g}") for x in np.asarray(array, "float64").ravel()]


def labels_of(rng, kind, positions):
    shape = (STEPS, BATCH) + positions
    if kind == "one_hot":
        return np.eye(CLASSES)[rng.integers(0, CLASSES, shape)]
    if kind == "values":
        return rng.integers(-64, 65, shape + (CLASSES,)) / 64.0
    return rng.integers(0, 2 if kind == "bits" else CLASSES, shape)


def weights_of(config, labels, own):
    """Those of the samples, or the sample weights that fit(class_weight=...) makes."""
    if own is not None:
        return own
    if "class_weight" not in config:
        return None
    weights = {int(k): v for k, v in config["class_weight"].items()}
    classes = labels if labels.ndim == 1 else labels.argmax(-1)
    return np.array([weights.get(int(c), 1) for c in classes], "float64")


def run(index, name, config):
    rng = np.random.default_rng(index)
    units = config.get("units", CLASSES)
    kind = config.get("labels", "classes")
    loss_config = config.get("loss", SCORES)
    optimizer_config = config.get("optimizer", {"type": "sgd", "learning_rate": 0.1})
    positions = (config["positions"],) if "positions" in config else ()
    x = rng.integers(-64, 65, (STEPS, BATCH) + positions + (INPUTS,)) / 64.0
    if config.get("masked"):
        x[rng.random(x.shape[:-1]) < 0.4] = 0
    labels = labels_of(rng, kind, positions)
    if "void" in config:
        labels[rng.random(labels.shape) < 0.3] = config["void"]
    own_weights = None
    if config.get("sample_weight"):
        own_weights = rng.integers(0, 17, (STEPS, BATCH)) / 8.0
    layer = keras.layers.Dense(units, activation=config.get("activation"))
    layer.build((None,) + positions + (INPUTS,))
    layer.kernel.assign(rng.integers(-64, 65, (INPUTS, units)) / 64.0)
    layer.bias.assign(rng.integers(-64, 65, (units,)) / 64.0)
    kernel, bias = numbers(layer.kernel), numbers(layer.bias)

    own = fields(optimizer_config)
    if "schedule" in config:
        own["learning_rate"] = schedule_of(config["schedule"])
        optimizer_config = {"type": "sgd", "learning_rate": config["schedule"]}
    accumulate = config.get("accumulate", 1)
    if accumulate > 1:
        own["gradient_accumulation_steps"] = accumulate
    optimizer = OPTIMIZERS[optimizer_config["type"]](**own)
    loss_of = LOSSES[loss_config["type"]](**fields(loss_config))
    metrics = config.get("metrics", [])
    losses, rates, sums = [], [], {m: [] for m in metrics}
    for step in range(STEPS):
        rates.append(float(optimizer.learning_rate))
        target = labels[step][:, None] if units == 1 else labels[step]
        with tf.GradientTape() as tape:
            y = layer(keras.layers.Masking()(x[step]) if config.get("masked") else x[step])
            own_of_step = None if own_weights is None else own_weights[step]
            if own_of_step is not None and positions:
                own_of_step = own_of_step[:, None]  # the same at all positions
            loss = loss_of(target, y, sample_weight=weights_of(config, labels[step], own_of_step))
        for m in metrics:
            metric = metric_of(m, kind == "classes", kind == "bits")
            # TensorFlow counts in float32. Metrics of Keras do not ignore a class: its labels are
            # left out by weights, and halfstep gives the sum over the others.
            kept = None if "void" not in config else np.not_equal(target, config["void"])
            metric.update_state(target, tf.cast(y, "float32"), sample_weight=kept)
            samples = BATCH if kept is None else int(kept.sum())
            sums[m].append(float(metric.result()) * samples)
        losses.append(float(loss))
        variables = [layer.kernel, layer.bias]
        optimizer.apply(tape.gradient(loss, variables), variables)
    # A step of halfstep is an update: the batches of Keras between two of them.
    losses = np.reshape(losses, (-1, accumulate)).mean(1)
    rates = rates[::accumulate]
    sums = {m: np.reshape(v, (-1, accumulate)).sum(1) for m, v in sums.items()}
    return {
        "name": name,
        "layer": {"type": "dense", "name": "logits", "units": units,
                  "activation": config.get("activation", "linear")},
        "loss": loss_config,
        "optimizer": optimizer_config,
        "metrics": metrics,
        **({"positions": list(positions)} if positions else {}),
        **{k: config[k] for k in ("masked", "class_weight", "accumulate") if k in config},
        "steps": STEPS // accumulate,
        "x": numbers(x),
        "integers": kind in ("classes", "bits"),
        "labels": numbers(labels),
        **({} if own_weights is None else {"sample_weights": numbers(own_weights)}),
        "kernel": kernel,
        "bias": bias,
        "losses": numbers(losses),
        "rates": numbers(rates),
        "sums": {m + ("/sum" if "void" in config else ""): numbers(v) for m, v in sums.items()},
        "final_kernel": numbers(layer.kernel),
        "final_bias": numbers(layer.bias),
    }


def main():
    path = pathlib.Path(__file__).parent / "data" / "keras_training.json"
    keep = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    cases = json.loads(path.read_text())["cases"][:keep]
    cases += [run(i, name, config) for i, (name, config) in enumerate(CASES[keep:], keep)]
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    path.write_text(f'{{"keras":"{keras.__version__}","inputs":{INPUTS},"batch":{BATCH},'
                    f'"cases":[\n{lines}\n]}}\n')
    print(f"{len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
