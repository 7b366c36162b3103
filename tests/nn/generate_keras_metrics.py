#!/usr/bin/env python3
"""Writes data/keras_metrics.json: metrics that are no means over samples, as Keras 3 computes them
from two batches of unequal size.

Run once, with Keras on any back end:

    KERAS_BACKEND=jax python3 generate_keras_metrics.py

Outputs are multiples of 1/64, exact in float32. Keras has no perplexity: it is exp of its mean
cross-entropy.
"""

import json
import pathlib

import keras
import numpy as np

SIZES = (5, 3)

# (metric, outputs, whether the outputs are scores, labels)
CASES = [
    ("root_mean_squared_error", 3, False, "values"),
    ("precision", 1, False, "bits"),
    ("precision", 3, False, "one_hot"),
    ("precision", 1, True, "bits"),
    ("precision", 1, False, "never"),
    ("recall", 1, False, "bits"),
    ("recall", 3, False, "one_hot"),
    ("recall", 1, True, "bits"),
    ("recall", 1, False, "never"),
    ("f1_score", 1, False, "bits"),
    ("f1_score", 3, False, "one_hot"),
    ("f1_score", 1, False, "never"),
    ("perplexity", 3, True, "classes"),
    ("perplexity", 3, False, "one_hot"),
    ("auc", 1, False, "bits"),
    ("auc", 3, False, "one_hot"),
    ("auc", 1, True, "bits"),
    ("auc", 1, False, "never"),
    ("weighted_accuracy", 3, False, "one_hot"),
    ("weighted_mean_absolute_error", 3, False, "values"),
    ("weighted_root_mean_squared_error", 3, False, "values"),
    ("weighted_precision", 3, False, "one_hot"),
    ("weighted_recall", 1, False, "bits"),
    ("weighted_perplexity", 3, True, "classes"),
    ("weighted_auc", 1, False, "bits"),
    ("mean_io_u", 3, True, "classes"),
    ("mean_io_u", 4, False, "one_hot"),
    ("mean_io_u", 1, False, "bits"),
    ("weighted_mean_io_u", 3, True, "classes"),
]


def metric_of(name, outputs, scores, labels):
    if name == "accuracy":
        return keras.metrics.CategoricalAccuracy()
    if name == "mean_absolute_error":
        return keras.metrics.MeanAbsoluteError()
    if name == "perplexity":
        kind = keras.metrics.CategoricalCrossentropy
        if labels == "classes":
            kind = keras.metrics.SparseCategoricalCrossentropy
        return kind(from_logits=scores)
    if name == "mean_io_u" and outputs == 1:
        return keras.metrics.BinaryIoU(dtype="float32")
    if name == "mean_io_u":
        return keras.metrics.MeanIoU(
            outputs, sparse_y_true=labels == "classes", sparse_y_pred=False, dtype="float32")
    if name == "f1_score":
        return keras.metrics.F1Score(average="micro", threshold=0.5)
    if name == "auc":
        return keras.metrics.AUC(from_logits=scores)
    if name == "root_mean_squared_error":
        return keras.metrics.RootMeanSquaredError()
    kind = keras.metrics.Precision if name == "precision" else keras.metrics.Recall
    return kind(thresholds=0.0 if scores else 0.5)


def case(index, name, outputs, scores, labels):
    rng = np.random.default_rng(100 + index)
    rows = sum(SIZES)
    y = rng.integers(-64 if scores or labels == "values" else 1, 64, (rows, outputs)) / 64.0
    if labels == "never":
        y = np.minimum(y, 0.5)
    if name == "perplexity" and not scores:
        y = rng.permuted(np.tile([8, 24, 32], (rows, 1)), axis=1) / 64.0
    if labels == "values":
        target = rng.integers(-64, 65, (rows, outputs)) / 64.0
    elif labels == "one_hot":
        target = np.eye(outputs)[rng.integers(0, outputs, rows)]
    elif labels == "never":
        target = np.zeros((rows, 1))
    else:
        target = rng.integers(0, outputs if labels == "classes" else 2, (rows, 1))
    weighted = name.startswith("weighted_")
    weights = rng.integers(0, 17, rows) / 8.0 if weighted else None
    metric = metric_of(name.removeprefix("weighted_"), outputs, scores, labels)
    first = 0
    for size in SIZES:
        part = slice(first, first + size)
        metric.update_state(target[part].astype("float32"), y[part].astype("float32"),
                            sample_weight=weights[part].astype("float32") if weighted else None)
        first += size
    value = float(np.asarray(metric.result()))
    if name.endswith("perplexity"):
        value = float(np.exp(value))
    return {"metric": name, "outputs": outputs, "scores": scores, "classes": labels == "classes",
            "y": y.ravel().tolist(), "labels": target.ravel().tolist(), "value": value,
            **({"weights": weights.tolist()} if weighted else {})}


def main():
    cases = [case(index, *row) for index, row in enumerate(CASES)]
    path = pathlib.Path(__file__).parent / "data" / "keras_metrics.json"
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    path.write_text(f'{{"keras":"{keras.__version__}","sizes":{json.dumps(SIZES)},'
                    f'"cases":[\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
