#!/usr/bin/env python3
"""Writes data/keras_layers.json: outputs, gradients and updated statistics of Keras 3's layers.

Run once, with Keras on JAX:

    python3 -m venv venv && venv/bin/pip install keras 'jax[cpu]'
    venv/bin/python generate_keras_values.py [CASES]

CASES: the first so many cases of the file are kept as they are; new ones follow them.

A case without `policy` is computed in float64, as the reference that float32 is measured
against; a case with one holds the results of Keras itself under that policy. The loss that is
differentiated is sum(y * dy), over all outputs, plus the regularization losses. All inputs are multiples of 1/64 plus
an offset, exact in every dtype and away from the kinks of the activations. A stateful layer is
called on `before` first, from zeros, and the states that it has then are among `fixed`.
"""

import json
import os
import pathlib
import sys

os.environ["KERAS_BACKEND"] = "jax"
import jax

jax.config.update("jax_enable_x64", True)
import keras
import numpy as np

CLASSES = {
    "activation": keras.layers.Activation,
    "add": keras.layers.Add,
    "alpha_dropout": keras.layers.AlphaDropout,
    "attention": keras.layers.Attention,
    "average": keras.layers.Average,
    "average_pooling1d": keras.layers.AveragePooling1D,
    "average_pooling2d": keras.layers.AveragePooling2D,
    "average_pooling3d": keras.layers.AveragePooling3D,
    "batch_normalization": keras.layers.BatchNormalization,
    "concatenate": keras.layers.Concatenate,
    "conv1d": keras.layers.Conv1D,
    "conv1d_transpose": keras.layers.Conv1DTranspose,
    "conv2d": keras.layers.Conv2D,
    "conv2d_transpose": keras.layers.Conv2DTranspose,
    "conv3d": keras.layers.Conv3D,
    "cropping2d": keras.layers.Cropping2D,
    "dense": keras.layers.Dense,
    "depthwise_conv2d": keras.layers.DepthwiseConv2D,
    "dot": keras.layers.Dot,
    "dropout": keras.layers.Dropout,
    "embedding": keras.layers.Embedding,
    "gaussian_dropout": keras.layers.GaussianDropout,
    "gaussian_noise": keras.layers.GaussianNoise,
    "elu": keras.layers.ELU,
    "flatten": keras.layers.Flatten,
    "global_average_pooling1d": keras.layers.GlobalAveragePooling1D,
    "global_average_pooling2d": keras.layers.GlobalAveragePooling2D,
    "global_max_pooling1d": keras.layers.GlobalMaxPooling1D,
    "global_average_pooling3d": keras.layers.GlobalAveragePooling3D,
    "global_max_pooling2d": keras.layers.GlobalMaxPooling2D,
    "global_max_pooling3d": keras.layers.GlobalMaxPooling3D,
    "gru": keras.layers.GRU,
    "group_normalization": keras.layers.GroupNormalization,
    "layer_normalization": keras.layers.LayerNormalization,
    "leaky_relu": keras.layers.LeakyReLU,
    "lstm": keras.layers.LSTM,
    "max_pooling1d": keras.layers.MaxPooling1D,
    "max_pooling2d": keras.layers.MaxPooling2D,
    "max_pooling3d": keras.layers.MaxPooling3D,
    "zero_padding3d": keras.layers.ZeroPadding3D,
    "maximum": keras.layers.Maximum,
    "minimum": keras.layers.Minimum,
    "multi_head_attention": keras.layers.MultiHeadAttention,
    "multiply": keras.layers.Multiply,
    "permute": keras.layers.Permute,
    "prelu": keras.layers.PReLU,
    "relu": keras.layers.ReLU,
    "repeat_vector": keras.layers.RepeatVector,
    "rescaling": keras.layers.Rescaling,
    "reshape": keras.layers.Reshape,
    "rms_normalization": keras.layers.RMSNormalization,
    "separable_conv2d": keras.layers.SeparableConv2D,
    "simple_rnn": keras.layers.SimpleRNN,
    "softmax": keras.layers.Softmax,
    "spatial_dropout1d": keras.layers.SpatialDropout1D,
    "spatial_dropout2d": keras.layers.SpatialDropout2D,
    "subtract": keras.layers.Subtract,
    "up_sampling2d": keras.layers.UpSampling2D,
    "bidirectional": keras.layers.Bidirectional,
    "time_distributed": keras.layers.TimeDistributed,
    "zero_padding1d": keras.layers.ZeroPadding1D,
    "zero_padding2d": keras.layers.ZeroPadding2D,
}


def gelu(approximate=False, **kwargs):
    return keras.layers.Activation(
        lambda x: keras.activations.gelu(x, approximate=approximate), **kwargs
    )


CLASSES["gelu"] = gelu

IMAGE = [2, 5, 6, 4]
ACTIVATIONS = [
    "elu", "gelu", "leaky_relu", "linear", "log_softmax", "relu", "relu6", "selu", "sigmoid",
    "silu", "softmax", "softplus", "swish", "tanh",
]  # fmt: skip

# (name, layer, shapes of the inputs), and the differences from {"training": True}.
CASES = [
    ("dense", {"type": "dense", "units": 3}, [[4, 5]]),
    ("dense, activation", {"type": "dense", "units": 3, "activation": "tanh"}, [[4, 5]]),
    ("dense, no bias", {"type": "dense", "units": 3, "use_bias": False}, [[4, 5]]),
    ("dense on rows", {"type": "dense", "units": 3}, [[2, 4, 5]]),
    ("dense on images", {"type": "dense", "units": 2, "activation": "relu"}, [[2, 3, 2, 4]]),
    (
        "dense, regularizers",
        {
            "type": "dense",
            "units": 3,
            "kernel_regularizer": "l2",
            "bias_regularizer": "l1",
            "activity_regularizer": {"l1": 0.25, "l2": 0.125},
        },
        [[4, 5]],
    ),
    (
        "dense, frozen",
        {"type": "dense", "units": 3, "trainable": False, "kernel_regularizer": "l2"},
        [[4, 5]],
    ),
    ("conv2d", {"type": "conv2d", "filters": 3, "kernel_size": 3}, [IMAGE]),
    (
        "conv2d, same, strides, even",
        {
            "type": "conv2d",
            "filters": 2,
            "kernel_size": [2, 3],
            "strides": [2, 1],
            "padding": "same",
            "activation": "sigmoid",
        },
        [IMAGE],
    ),
    (
        "conv2d, same, strides on odd",
        {"type": "conv2d", "filters": 2, "kernel_size": 3, "strides": 2, "padding": "same"},
        [[1, 5, 7, 2]],
    ),
    (
        "conv2d, dilation",
        {"type": "conv2d", "filters": 2, "kernel_size": 3, "dilation_rate": 2, "padding": "same"},
        [[1, 6, 5, 2]],
    ),
    (
        "conv2d, groups",
        {"type": "conv2d", "filters": 6, "kernel_size": [3, 2], "groups": 2, "use_bias": False},
        [[1, 4, 4, 4]],
    ),
    (
        "conv2d, regularizers",
        {"type": "conv2d", "filters": 2, "kernel_size": 1, "kernel_regularizer": {"l1": 0.5}},
        [[1, 3, 3, 2]],
    ),
    ("depthwise_conv2d", {"type": "depthwise_conv2d", "kernel_size": 3}, [IMAGE]),
    (
        "depthwise_conv2d, same, strides, multiplier",
        {
            "type": "depthwise_conv2d",
            "kernel_size": [3, 2],
            "strides": 2,
            "padding": "same",
            "depth_multiplier": 2,
            "depthwise_regularizer": "l2",
        },
        [[1, 5, 6, 3]],
    ),
    (
        "depthwise_conv2d, dilation",
        {
            "type": "depthwise_conv2d",
            "kernel_size": 2,
            "dilation_rate": 2,
            "padding": "same",
            "use_bias": False,
        },
        [[1, 5, 4, 2]],
    ),
    ("max_pooling2d", {"type": "max_pooling2d"}, [IMAGE]),
    (
        "max_pooling2d, same, overlap",
        {"type": "max_pooling2d", "pool_size": [3, 2], "strides": [2, 1], "padding": "same"},
        [IMAGE],
    ),
    ("average_pooling2d", {"type": "average_pooling2d", "pool_size": 2}, [IMAGE]),
    (
        "average_pooling2d, same, overlap",
        {"type": "average_pooling2d", "pool_size": [2, 3], "strides": 2, "padding": "same"},
        [IMAGE],
    ),
    ("global_average_pooling2d", {"type": "global_average_pooling2d"}, [IMAGE]),
    (
        "global_average_pooling2d, keepdims",
        {"type": "global_average_pooling2d", "keepdims": True},
        [IMAGE],
    ),
    ("global_max_pooling2d", {"type": "global_max_pooling2d"}, [IMAGE]),
    ("batch_normalization", {"type": "batch_normalization"}, [IMAGE]),
    (
        "batch_normalization, inference",
        {"type": "batch_normalization"},
        [IMAGE],
        {"training": False},
    ),
    (
        "batch_normalization, frozen",
        {"type": "batch_normalization", "trainable": False},
        [[4, 3]],
    ),
    (
        "batch_normalization of rows",
        {"type": "batch_normalization", "momentum": 0.75, "epsilon": 0.0625},
        [[6, 3]],
    ),
    (
        "batch_normalization of sequences",
        {"type": "batch_normalization", "center": False, "gamma_regularizer": "l2"},
        [[3, 4, 2]],
    ),
    (
        "batch_normalization, another axis",
        {"type": "batch_normalization", "axis": 1, "scale": False, "beta_regularizer": "l1"},
        [[3, 2, 4]],
    ),
    ("batch_normalization of one row", {"type": "batch_normalization"}, [[1, 3]]),
    ("layer_normalization", {"type": "layer_normalization"}, [[3, 7]]),
    ("layer_normalization of images", {"type": "layer_normalization"}, [[2, 3, 2, 5]]),
    (
        "layer_normalization, axes",
        {"type": "layer_normalization", "axis": [1, 2], "epsilon": 0.125},
        [[2, 3, 4]],
    ),
    (
        "layer_normalization, axis in the middle, no center",
        {"type": "layer_normalization", "axis": 1, "center": False, "gamma_regularizer": "l1"},
        [[2, 5, 3]],
    ),
    (
        "layer_normalization, plain",
        {"type": "layer_normalization", "center": False, "scale": False},
        [[3, 7]],
    ),
    ("leaky_relu", {"type": "leaky_relu"}, [[3, 7]]),
    ("elu, alpha", {"type": "elu", "alpha": 0.5}, [[3, 7]]),
    ("gelu, approximate", {"type": "gelu", "approximate": True}, [[3, 7]]),
    ("relu, slope", {"type": "relu", "negative_slope": 0.125}, [[3, 7]]),
    ("relu, max", {"type": "relu", "max_value": 0.75}, [[3, 7]]),
    ("relu, max 6", {"type": "relu", "max_value": 6}, [[3, 7]], {"scale": 8}),
    ("relu, threshold", {"type": "relu", "threshold": 0.5}, [[3, 7]]),
    (
        "relu, all",
        {"type": "relu", "negative_slope": 0.25, "max_value": 1, "threshold": 0.5},
        [[3, 7]],
    ),
    ("relu, slope and max", {"type": "relu", "negative_slope": 0.25, "max_value": 1}, [[3, 7]]),
    ("softmax, axis", {"type": "softmax", "axis": 1}, [[2, 3, 4]]),
    ("softmax of images", {"type": "softmax"}, [[1, 2, 2, 3]]),
    ("flatten", {"type": "flatten"}, [[2, 2, 3]]),
    ("flatten of vectors", {"type": "flatten"}, [[3, 4]]),
    ("reshape", {"type": "reshape", "target_shape": [2, -1, 3]}, [[2, 4, 3]]),
    ("zero_padding2d", {"type": "zero_padding2d"}, [[1, 2, 3, 2]]),
    ("zero_padding2d, pair", {"type": "zero_padding2d", "padding": [1, 2]}, [[1, 2, 3, 1]]),
    (
        "zero_padding2d, sides",
        {"type": "zero_padding2d", "padding": [[1, 0], [2, 3]]},
        [[1, 2, 3, 1]],
    ),
    ("add", {"type": "add"}, [[2, 3], [2, 3], [2, 3]]),
    ("add, broadcast", {"type": "add"}, [[2, 3, 4], [2, 1, 4]]),
    ("multiply", {"type": "multiply"}, [[2, 3], [2, 3], [2, 3]]),
    ("multiply, broadcast", {"type": "multiply"}, [[2, 2, 2, 3], [2, 1, 1, 3]]),
    ("concatenate", {"type": "concatenate"}, [[2, 3], [2, 2]]),
    ("concatenate, axis", {"type": "concatenate", "axis": 1}, [[2, 3, 2], [2, 1, 2], [2, 2, 2]]),
    ("rescaling", {"type": "rescaling", "scale": 0.375, "offset": -0.5}, [[3, 4]]),
    ("dropout, inference", {"type": "dropout", "rate": 0.5}, [[3, 4]], {"training": False}),
    ("dropout, rate 0", {"type": "dropout", "rate": 0}, [[3, 4]]),
    ("dropout, rate 1", {"type": "dropout", "rate": 1}, [[3, 4]]),
]
CASES += [
    (f"activation {name}", {"type": "activation", "activation": name}, [[3, 7]])
    for name in ACTIVATIONS
]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    differs = {"policy": policy}
    CASES += [
        (
            f"dense, {policy}",
            {"type": "dense", "units": 3, "activation": "relu", "kernel_regularizer": "l2"},
            [[4, 5]],
            differs,
        ),
        (
            f"conv2d, {policy}",
            {"type": "conv2d", "filters": 3, "kernel_size": 3, "padding": "same"},
            [[2, 4, 4, 2]],
            differs,
        ),
        (f"batch_normalization, {policy}", {"type": "batch_normalization"}, [[2, 3, 3, 2]], differs),
        (
            f"batch_normalization, inference, {policy}",
            {"type": "batch_normalization"},
            [[4, 3]],
            {"policy": policy, "training": False},
        ),
        (f"layer_normalization, {policy}", {"type": "layer_normalization"}, [[3, 6]], differs),
        (f"softmax, {policy}", {"type": "softmax"}, [[3, 6]], differs),
        (f"gelu, {policy}", {"type": "gelu"}, [[3, 6]], differs),
        (f"average_pooling2d, {policy}", {"type": "average_pooling2d", "pool_size": 2}, [[1, 4, 4, 2]], differs),
    ]
# A case's index is the seed of its numbers: new ones follow at the end.
CASES += [
    ("average", {"type": "average"}, [[2, 3], [2, 3], [2, 3]]),
    ("maximum", {"type": "maximum"}, [[2, 3], [2, 3], [2, 3]]),
    ("minimum, broadcast", {"type": "minimum"}, [[2, 3, 4], [2, 1, 4]]),
    ("subtract", {"type": "subtract"}, [[2, 3], [2, 3]]),
    ("permute", {"type": "permute", "dims": [3, 1, 2]}, [[2, 2, 3, 4]]),
    ("repeat_vector", {"type": "repeat_vector", "n": 3}, [[2, 4]]),
    ("cropping2d", {"type": "cropping2d", "cropping": [[1, 0], [2, 1]]}, [[2, 4, 5, 2]]),
    ("cropping2d, pair", {"type": "cropping2d", "cropping": [1, 2]}, [[1, 4, 5, 2]]),
    ("up_sampling2d", {"type": "up_sampling2d"}, [[1, 2, 3, 2]]),
    ("up_sampling2d, pair", {"type": "up_sampling2d", "size": [3, 1]}, [[2, 2, 3, 1]]),
    ("prelu", {"type": "prelu", "alpha_regularizer": "l2"}, [[3, 4, 2]]),
    ("prelu, shared axes", {"type": "prelu", "shared_axes": [1, 2]}, [[2, 3, 2, 4]]),
]
CASES += [
    (f"activation {name}", {"type": "activation", "activation": name}, [[3, 7]], {"scale": 2})
    for name in ["hard_sigmoid", "hard_silu", "mish", "softsign"]
]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    differs = {"policy": policy}
    CASES += [
        (f"average, {policy}", {"type": "average"}, [[2, 3], [2, 3], [2, 3]], differs),
        (f"prelu, {policy}", {"type": "prelu"}, [[3, 4]], differs),
        (f"mish, {policy}", {"type": "activation", "activation": "mish"}, [[3, 7]], differs),
    ]
SEQUENCE = [2, 7, 4]
CASES += [
    ("conv1d", {"type": "conv1d", "filters": 3, "kernel_size": 3}, [SEQUENCE]),
    (
        "conv1d, same, strides, activation",
        {
            "type": "conv1d",
            "filters": 2,
            "kernel_size": 2,
            "strides": 2,
            "padding": "same",
            "activation": "tanh",
        },
        [SEQUENCE],
    ),
    (
        "conv1d, causal, dilation",
        {"type": "conv1d", "filters": 3, "kernel_size": 3, "dilation_rate": 2, "padding": "causal"},
        [SEQUENCE],
    ),
    (
        "conv1d, groups, regularizer",
        {
            "type": "conv1d",
            "filters": 4,
            "kernel_size": 3,
            "groups": 2,
            "use_bias": False,
            "kernel_regularizer": "l2",
        },
        [SEQUENCE],
    ),
    ("max_pooling1d", {"type": "max_pooling1d"}, [SEQUENCE]),
    (
        "max_pooling1d, same, overlap",
        {"type": "max_pooling1d", "pool_size": 3, "strides": 2, "padding": "same"},
        [SEQUENCE],
    ),
    ("average_pooling1d", {"type": "average_pooling1d", "pool_size": 2}, [SEQUENCE]),
    (
        "average_pooling1d, same, overlap",
        {"type": "average_pooling1d", "pool_size": 3, "strides": 1, "padding": "same"},
        [SEQUENCE],
    ),
    ("global_average_pooling1d", {"type": "global_average_pooling1d"}, [SEQUENCE]),
    (
        "global_average_pooling1d, keepdims",
        {"type": "global_average_pooling1d", "keepdims": True},
        [SEQUENCE],
    ),
    ("global_max_pooling1d", {"type": "global_max_pooling1d"}, [SEQUENCE]),
    ("zero_padding1d", {"type": "zero_padding1d"}, [[2, 3, 2]]),
    ("zero_padding1d, pair", {"type": "zero_padding1d", "padding": [1, 2]}, [[2, 3, 2]]),
    ("separable_conv2d", {"type": "separable_conv2d", "filters": 3, "kernel_size": 3}, [IMAGE]),
    (
        "separable_conv2d, same, strides, multiplier",
        {
            "type": "separable_conv2d",
            "filters": 3,
            "kernel_size": [3, 2],
            "strides": 2,
            "padding": "same",
            "depth_multiplier": 2,
            "activation": "sigmoid",
            "depthwise_regularizer": "l2",
            "pointwise_regularizer": "l1",
        },
        [[1, 5, 6, 3]],
    ),
    ("group_normalization", {"type": "group_normalization", "groups": 2}, [[2, 3, 2, 4]]),
    ("group_normalization of channels", {"type": "group_normalization", "groups": -1}, [[2, 3, 4]]),
    (
        "group_normalization of rows, no center",
        {"type": "group_normalization", "groups": 2, "center": False, "epsilon": 0.125},
        [[3, 6]],
    ),
    ("rms_normalization", {"type": "rms_normalization"}, [[3, 7]]),
    ("rms_normalization, axis", {"type": "rms_normalization", "axis": 1, "epsilon": 0.125}, [[2, 7]]),
    ("spatial_dropout1d, inference", {"type": "spatial_dropout1d", "rate": 0.5}, [[2, 3, 2]], {"training": False}),
    ("spatial_dropout2d, rate 0", {"type": "spatial_dropout2d", "rate": 0}, [[2, 3, 2, 2]]),
    ("alpha_dropout, inference", {"type": "alpha_dropout", "rate": 0.5}, [[3, 4]], {"training": False}),
]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    differs = {"policy": policy}
    CASES += [
        (f"conv1d, {policy}", {"type": "conv1d", "filters": 3, "kernel_size": 3, "padding": "causal"}, [[2, 5, 2]], differs),
        (f"separable_conv2d, {policy}", {"type": "separable_conv2d", "filters": 3, "kernel_size": 2}, [[1, 3, 4, 2]], differs),
        (f"group_normalization, {policy}", {"type": "group_normalization", "groups": 2}, [[2, 3, 4]], differs),
        (f"rms_normalization, {policy}", {"type": "rms_normalization"}, [[3, 6]], differs),
        (f"average_pooling1d, {policy}", {"type": "average_pooling1d", "pool_size": 2}, [[2, 4, 2]], differs),
    ]
ATTENTION = {"type": "multi_head_attention", "num_heads": 2, "key_dim": 3}
CASES += [
    ("multi_head_attention", ATTENTION, [[2, 4, 6]]),
    ("multi_head_attention, causal", {**ATTENTION, "use_causal_mask": True}, [[2, 4, 6]]),
    (
        # With a dropout Keras does without its fused kernel on JAX, which lacks these shapes.
        "multi_head_attention, value, widths",
        {**ATTENTION, "value_dim": 2, "output_shape": 5, "use_bias": False, "dropout": 0.5},
        [[2, 3, 4], [2, 5, 6]],
        {"training": False},
    ),
    ("multi_head_attention, value, key", ATTENTION, [[1, 3, 4], [1, 5, 2], [1, 5, 6]]),
    ("attention", {"type": "attention"}, [[2, 4, 3], [2, 5, 3]]),
    (
        "attention, scale, causal",
        {"type": "attention", "use_scale": True, "use_causal_mask": True},
        [[2, 4, 3]],
    ),
    (
        "embedding",
        {"type": "embedding", "input_dim": 5, "output_dim": 3, "embeddings_regularizer": "l2"},
        [[3, 4]],
        {"indices": 5},
    ),
    ("embedding of single indices", {"type": "embedding", "input_dim": 7, "output_dim": 2}, [[6, 1]], {"indices": 7}),
]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    CASES += [
        # Without biases: the gradient towards that of the key is 0, and Keras has its rounding errors.
        (f"multi_head_attention, {policy}", {**ATTENTION, "use_bias": False, "use_causal_mask": True}, [[2, 4, 6]], {"policy": policy}),
        (f"embedding, {policy}", {"type": "embedding", "input_dim": 5, "output_dim": 3}, [[3, 4]], {"policy": policy, "indices": 5}),
    ]
STEPS = [3, 5, 4]
for recurrent in ["lstm", "gru", "simple_rnn"]:
    layer = {"type": recurrent, "units": 3}
    initial = [[3, 3]] * (2 if recurrent == "lstm" else 1)
    CASES += [
        (recurrent, layer, [STEPS]),
        (f"{recurrent}, sequences", {**layer, "return_sequences": True}, [STEPS]),
        (f"{recurrent}, backwards", {**layer, "go_backwards": True}, [STEPS]),
        (
            f"{recurrent}, sequences, backwards, no bias",
            {**layer, "go_backwards": True, "return_sequences": True, "use_bias": False},
            [STEPS],
        ),
        (f"{recurrent}, initial state", {**layer, "return_sequences": True}, [STEPS, *initial]),
        (
            f"{recurrent}, relu, regularizers",
            {
                **layer,
                "activation": "relu",
                "kernel_regularizer": "l2",
                "recurrent_regularizer": "l1",
                "bias_regularizer": "l2",
            },
            [STEPS],
        ),
    ]
    for policy in ["mixed_float16", "mixed_bfloat16"]:
        CASES += [(f"{recurrent}, {policy}", layer, [[2, 3, 4]], {"policy": policy})]
CASES += [
    (
        "gru, linear, tanh gates",
        {"type": "gru", "units": 3, "activation": "linear", "recurrent_activation": "tanh"},
        [STEPS],
    ),
]

LSTM = {"type": "lstm", "units": 3}
GRU = {"type": "gru", "units": 2, "return_sequences": True}
CASES += [
    ("bidirectional", {"type": "bidirectional", "layer": LSTM}, [STEPS]),
    ("bidirectional, sequences, sum", {"type": "bidirectional", "layer": GRU, "merge_mode": "sum"}, [STEPS]),
    ("bidirectional, mul", {"type": "bidirectional", "layer": {**LSTM, "type": "simple_rnn"}, "merge_mode": "mul"}, [STEPS]),
    ("bidirectional, sequences, ave", {"type": "bidirectional", "layer": {**LSTM, "return_sequences": True, "kernel_regularizer": "l2"}, "merge_mode": "ave"}, [STEPS]),
    (
        "bidirectional, backward layer",
        {"type": "bidirectional", "layer": GRU, "backward_layer": {**GRU, "activation": "sigmoid", "go_backwards": True}},
        [STEPS],
    ),
    ("bidirectional, initial states", {"type": "bidirectional", "layer": LSTM}, [STEPS] + [[3, 3]] * 4),
    ("time_distributed dense", {"type": "time_distributed", "layer": {"type": "dense", "units": 3, "activation": "tanh"}}, [STEPS]),
    ("time_distributed conv2d", {"type": "time_distributed", "layer": {"type": "conv2d", "filters": 2, "kernel_size": 2}}, [[2, 3, 3, 4, 2]]),
    ("time_distributed lstm", {"type": "time_distributed", "layer": LSTM}, [[2, 2, 3, 4]]),
    (
        "time_distributed bidirectional",
        {"type": "time_distributed", "layer": {"type": "bidirectional", "layer": {"type": "gru", "units": 2}}},
        [[2, 2, 3, 4]],
    ),
]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    CASES += [
        (f"bidirectional, {policy}", {"type": "bidirectional", "layer": LSTM}, [[2, 3, 4]], {"policy": policy}),
        (f"time_distributed, {policy}", {"type": "time_distributed", "layer": {"type": "dense", "units": 3}}, [[2, 3, 4]], {"policy": policy}),
    ]
# Behind a layer `masking`: the steps of a sample that are 0. A pooling layer behind the layer leaves
# out the output at these steps, which backends of Keras define differently.
SKIPPED = [[3, 4], [0, 1], [0, 2, 3]]
MASKED = {"skipped": SKIPPED}
POOLED = {**MASKED, "then": {"type": "global_average_pooling1d"}}
for recurrent in ["lstm", "gru", "simple_rnn"]:
    layer = {"type": recurrent, "units": 3}
    CASES += [
        (f"{recurrent}, masked", layer, [STEPS], MASKED),
        (f"{recurrent}, masked sequences", {**layer, "return_sequences": True}, [STEPS], MASKED),
        (f"{recurrent}, masked backwards", {**layer, "go_backwards": True}, [STEPS], MASKED),
    ]
CASES += [
    ("lstm, masked, mixed_bfloat16", LSTM, [STEPS], {**MASKED, "policy": "mixed_bfloat16"}),
    ("gru, masked, mixed_float16", {"type": "gru", "units": 3}, [STEPS], {**MASKED, "policy": "mixed_float16"}),
    ("bidirectional, masked", {"type": "bidirectional", "layer": LSTM}, [STEPS], MASKED),
    ("bidirectional, masked sequences", {"type": "bidirectional", "layer": GRU}, [STEPS], MASKED),
    ("global_average_pooling1d, masked", {"type": "global_average_pooling1d"}, [STEPS], MASKED),
    ("global_average_pooling1d, masked, keepdims", {"type": "global_average_pooling1d", "keepdims": True}, [STEPS], MASKED),
    ("dense, masked, pooled", {"type": "dense", "units": 3, "activation": "tanh"}, [STEPS], POOLED),
    ("time_distributed, masked, pooled", {"type": "time_distributed", "layer": {"type": "dense", "units": 3}}, [STEPS], POOLED),
    ("layer_normalization, masked, pooled", {"type": "layer_normalization"}, [STEPS], POOLED),
    ("multi_head_attention, masked, pooled", {**ATTENTION, "dropout": 0.5}, [[3, 5, 6]], {**POOLED, "training": False}),
    (
        "multi_head_attention, causal, masked, pooled",
        {**ATTENTION, "dropout": 0.5, "use_causal_mask": True},
        [[3, 5, 6]],
        {**POOLED, "training": False, "skipped": [[3, 4], [4], []]},
    ),
    ("attention, masked, pooled", {"type": "attention"}, [[3, 5, 4]], POOLED),
    (
        "embedding, mask_zero, pooled",
        {"type": "embedding", "input_dim": 5, "output_dim": 3, "mask_zero": True},
        [[3, 6]],
        {"indices": 5, "then": {"type": "global_average_pooling1d"}},
    ),
]

CASES += [
    ("conv2d_transpose", {"type": "conv2d_transpose", "filters": 3, "kernel_size": 3}, [[2, 3, 4, 2]]),
    (
        "conv2d_transpose, same, strides",
        {
            "type": "conv2d_transpose",
            "filters": 2,
            "kernel_size": [3, 4],
            "strides": [2, 3],
            "padding": "same",
            "activation": "tanh",
            "kernel_regularizer": "l2",
        },
        [[1, 3, 4, 3]],
    ),
    (
        "conv2d_transpose, strides above the kernel",
        {"type": "conv2d_transpose", "filters": 2, "kernel_size": 2, "strides": 3, "use_bias": False},
        [[1, 3, 2, 2]],
    ),
    (
        "conv2d_transpose, dilation",
        {"type": "conv2d_transpose", "filters": 2, "kernel_size": 2, "dilation_rate": 2},
        [[1, 3, 4, 2]],
    ),
    (
        "conv1d_transpose, same, strides",
        {"type": "conv1d_transpose", "filters": 3, "kernel_size": 3, "strides": 2, "padding": "same"},
        [[2, 4, 2]],
    ),
    ("conv1d_transpose", {"type": "conv1d_transpose", "filters": 2, "kernel_size": 4}, [[2, 3, 2]]),
]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    CASES += [
        (
            f"conv2d_transpose, {policy}",
            {"type": "conv2d_transpose", "filters": 2, "kernel_size": 3, "strides": 2},
            [[1, 3, 3, 2]],
            {"policy": policy},
        ),
    ]

VOLUME = [2, 3, 4, 4, 2]
CONV3D = {"type": "conv3d", "filters": 2, "kernel_size": 2}
CASES += [
    ("conv3d", CONV3D, [VOLUME]),
    (
        "conv3d, same, strides, activation",
        {**CONV3D, "kernel_size": [3, 2, 3], "strides": [2, 1, 2], "padding": "same", "activation": "tanh"},
        [[1, 5, 3, 4, 3]],
    ),
    ("conv3d, strides", {**CONV3D, "strides": [3, 2, 1], "use_bias": False}, [[1, 6, 4, 3, 2]]),
    ("conv3d, dilation", {**CONV3D, "dilation_rate": [2, 1, 2], "padding": "same"}, [[1, 4, 3, 4, 2]]),
    (
        "conv3d, groups, regularizer",
        {**CONV3D, "filters": 4, "groups": 2, "kernel_regularizer": "l2", "bias_regularizer": "l1"},
        [[1, 3, 3, 3, 4]],
    ),
    ("conv3d, depth 1", {**CONV3D, "kernel_size": [1, 2, 2], "strides": [2, 1, 1]}, [VOLUME]),
    ("max_pooling3d", {"type": "max_pooling3d"}, [VOLUME]),
    (
        "max_pooling3d, same, overlap",
        {"type": "max_pooling3d", "pool_size": [2, 3, 2], "strides": [1, 2, 1], "padding": "same"},
        [VOLUME],
    ),
    ("average_pooling3d", {"type": "average_pooling3d", "pool_size": 2}, [VOLUME]),
    (
        "average_pooling3d, same, overlap",
        {"type": "average_pooling3d", "pool_size": [3, 2, 3], "strides": [2, 1, 2], "padding": "same"},
        [[1, 4, 4, 3, 2]],
    ),
    ("global_average_pooling3d", {"type": "global_average_pooling3d"}, [VOLUME]),
    ("global_average_pooling3d, keepdims", {"type": "global_average_pooling3d", "keepdims": True}, [VOLUME]),
    ("global_max_pooling3d", {"type": "global_max_pooling3d"}, [VOLUME]),
    ("zero_padding3d", {"type": "zero_padding3d"}, [[1, 2, 2, 3, 1]]),
    ("zero_padding3d, triple", {"type": "zero_padding3d", "padding": [1, 0, 2]}, [[1, 2, 2, 3, 1]]),
    (
        "zero_padding3d, sides",
        {"type": "zero_padding3d", "padding": [[1, 0], [0, 2], [2, 1]]},
        [[1, 2, 2, 3, 1]],
    ),
]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    CASES += [
        (f"conv3d, {policy}", {**CONV3D, "padding": "same"}, [[1, 3, 3, 3, 2]], {"policy": policy}),
        (f"average_pooling3d, {policy}", {"type": "average_pooling3d", "pool_size": 2}, [[1, 2, 4, 4, 2]], {"policy": policy}),
        (f"gelu, approximate, {policy}", {"type": "gelu", "approximate": True}, [[3, 6]], {"policy": policy}),
    ]

for recurrent, states in [("gru", 1), ("lstm", 2), ("simple_rnn", 1)]:
    layer = {"type": recurrent, "units": 3, "return_state": True}
    both = {"type": "bidirectional", "layer": layer}
    initial = [[3, 3]] * states
    CASES += [
        (f"{recurrent}, return_state", layer, [STEPS]),
        (f"{recurrent}, return_state, sequences, backwards", {**layer, "return_sequences": True, "go_backwards": True}, [STEPS]),
        (f"{recurrent}, return_state, initial state, masked", layer, [STEPS, *initial], MASKED),
        (f"bidirectional {recurrent}, return_state", both, [STEPS]),
        (f"bidirectional {recurrent}, return_state, initial state, masked", both, [STEPS, *initial, *initial], MASKED),
    ]
    for policy in ["mixed_float16", "mixed_bfloat16"]:
        CASES += [(f"{recurrent}, return_state, {policy}", layer, [[2, 3, 4]], {"policy": policy})]

BEFORE = {"type": "gru", "units": 3, "reset_after": False}
CASES += [
    ("gru, reset_after false", BEFORE, [STEPS]),
    ("gru, reset_after false, sequences, backwards", {**BEFORE, "return_sequences": True, "go_backwards": True}, [STEPS]),
    ("gru, reset_after false, no bias", {**BEFORE, "use_bias": False}, [STEPS]),
    (
        "gru, reset_after false, relu, regularizers",
        {
            **BEFORE,
            "activation": "relu",
            "recurrent_activation": "tanh",
            "kernel_regularizer": "l2",
            "recurrent_regularizer": "l1",
            "bias_regularizer": "l2",
        },
        [STEPS],
    ),
    ("gru, reset_after false, initial state, masked", {**BEFORE, "return_state": True}, [STEPS, [3, 3]], MASKED),
    ("bidirectional gru, reset_after false", {"type": "bidirectional", "layer": BEFORE}, [STEPS]),
]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    CASES += [
        (f"gru, reset_after false, {policy}", BEFORE, [[2, 3, 4]], {"policy": policy}),
        (f"gru, reset_after false, sequences, {policy}", {**BEFORE, "return_sequences": True}, [[2, 3, 4]], {"policy": policy}),
    ]

APART = {"type": "bidirectional", "layer": {**LSTM, "return_state": True}, "merge_mode": None}
CASES += [
    ("bidirectional, null", {**APART, "layer": GRU}, [STEPS]),
    ("bidirectional, null, last, return_state", APART, [STEPS]),
    ("bidirectional, null, masked sequences", {**APART, "layer": GRU}, [STEPS], MASKED),
]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    CASES += [(f"bidirectional, null, {policy}", APART, [[2, 3, 4]], {"policy": policy})]

SCORES = {"return_attention_scores": True}
CASES += [
    ("attention, scores", {"type": "attention", **SCORES, "use_causal_mask": True}, [[3, 5, 4]]),
    ("attention, scores, two inputs", {"type": "attention", **SCORES}, [[3, 4, 3], [3, 5, 3]]),
    ("multi_head_attention, scores", {**ATTENTION, **SCORES}, [[3, 4, 6]], {"training": False}),
]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    CASES += [(f"attention, scores, {policy}", {"type": "attention", **SCORES}, [[2, 3, 4], [2, 5, 4]], {"policy": policy})]

CASES += [
    ("dot of vectors", {"type": "dot", "axes": 1}, [[3, 4], [3, 4]]),
    ("dot", {"type": "dot", "axes": [2, 1]}, [[2, 3, 4], [2, 4, 5]]),
    ("dot, images", {"type": "dot", "axes": [1, -1]}, [[2, 4, 2, 3], [2, 3, 4]]),
    ("dot, normalize", {"type": "dot", "axes": -1, "normalize": True}, [[2, 3, 4], [2, 4]]),
]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    CASES += [(f"dot, {policy}", {"type": "dot", "axes": 2}, [[2, 3, 4], [2, 2, 4]], {"policy": policy})]

INFERENCE = {"training": False}
CASES += [
    ("gaussian_noise, inference", {"type": "gaussian_noise", "stddev": 0.5}, [[3, 4]], INFERENCE),
    ("gaussian_dropout, inference", {"type": "gaussian_dropout", "rate": 0.5}, [[3, 4]], INFERENCE),
    ("gaussian_noise, stddev 0", {"type": "gaussian_noise", "stddev": 0}, [[3, 4]]),
]

KEEPS = {"units": 3, "stateful": True}
for recurrent in ["lstm", "gru", "simple_rnn"]:
    CASES += [
        (f"{recurrent}, stateful, second batch", {"type": recurrent, **KEEPS}, [STEPS]),
        (f"{recurrent}, stateful, backwards", {"type": recurrent, **KEEPS, "go_backwards": True}, [STEPS]),
    ]
CASES += [("gru, stateful, sequences, masked", {"type": "gru", **KEEPS, "return_sequences": True}, [STEPS], MASKED)]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    CASES += [(f"lstm, stateful, {policy}", {"type": "lstm", **KEEPS}, [[2, 3, 4]], {"policy": policy})]
CASES += [
    (
        "conv1d_transpose, dilation, activation",
        {"type": "conv1d_transpose", "filters": 3, "kernel_size": 3, "dilation_rate": 2, "activation": "tanh",
         "kernel_regularizer": "l2", "bias_regularizer": "l1"},
        [[2, 5, 2]],
    ),
    (
        "conv1d_transpose, same, no bias",
        {"type": "conv1d_transpose", "filters": 2, "kernel_size": 2, "strides": 3, "padding": "same", "use_bias": False},
        [[2, 4, 3]],
    ),
    ("conv2d, bias regularizer", {"type": "conv2d", "filters": 2, "kernel_size": 2, "bias_regularizer": "l2"}, [[1, 3, 3, 2]]),
    (
        "conv2d_transpose, bias regularizer",
        {"type": "conv2d_transpose", "filters": 2, "kernel_size": 2, "bias_regularizer": "l2"},
        [[1, 3, 3, 2]],
    ),
    (
        "depthwise_conv2d, activation, bias regularizer",
        {"type": "depthwise_conv2d", "kernel_size": 2, "activation": "softplus", "bias_regularizer": "l2"},
        [[1, 4, 3, 2]],
    ),
    (
        "separable_conv2d, dilation, no bias",
        {"type": "separable_conv2d", "filters": 3, "kernel_size": 2, "dilation_rate": 2, "use_bias": False},
        [[1, 5, 4, 2]],
    ),
    (
        "separable_conv2d, bias regularizer",
        {"type": "separable_conv2d", "filters": 2, "kernel_size": 2, "bias_regularizer": "l2"},
        [[1, 3, 4, 2]],
    ),
    ("group_normalization, no scale", {"type": "group_normalization", "groups": 3, "scale": False, "beta_regularizer": "l2"}, [[2, 3, 6]]),
    ("group_normalization, regularizer", {"type": "group_normalization", "groups": 2, "gamma_regularizer": "l1"}, [[2, 3, 4]]),
    ("layer_normalization, regularizer", {"type": "layer_normalization", "beta_regularizer": "l2"}, [[3, 4]]),
    ("leaky_relu, slope", {"type": "leaky_relu", "negative_slope": 0.5}, [[3, 4]]),
    ("global_max_pooling1d, keepdims", {"type": "global_max_pooling1d", "keepdims": True}, [[2, 5, 3]]),
    ("global_max_pooling2d, keepdims", {"type": "global_max_pooling2d", "keepdims": True}, [[2, 3, 4, 2]]),
    ("global_max_pooling3d, keepdims", {"type": "global_max_pooling3d", "keepdims": True}, [[1, 2, 3, 4, 2]]),
    ("lstm, recurrent activation", {"type": "lstm", "units": 3, "activation": "relu", "recurrent_activation": "tanh"}, [[2, 3, 4]]),
    (
        "multi_head_attention, regularizers",
        {**ATTENTION, "kernel_regularizer": "l2", "bias_regularizer": "l1"},
        [[2, 4, 6]],
    ),
]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    differs = {"policy": policy}
    CASES += [
        (f"conv1d_transpose, {policy}", {"type": "conv1d_transpose", "filters": 3, "kernel_size": 3, "strides": 2}, [[2, 3, 2]], differs),
        (f"depthwise_conv2d, {policy}", {"type": "depthwise_conv2d", "kernel_size": 2, "depth_multiplier": 2}, [[1, 3, 4, 2]], differs),
        (f"concatenate, {policy}", {"type": "concatenate"}, [[2, 3], [2, 2]], differs),
        (f"maximum, {policy}", {"type": "maximum"}, [[2, 3], [2, 3]], differs),
        (f"global_average_pooling2d, {policy}", {"type": "global_average_pooling2d"}, [[2, 3, 4, 2]], differs),
        (f"max_pooling2d, {policy}", {"type": "max_pooling2d"}, [[2, 4, 4, 2]], differs),
        (f"up_sampling2d, {policy}", {"type": "up_sampling2d", "size": 3}, [[1, 2, 2, 2]], differs),
        (f"rescaling, {policy}", {"type": "rescaling", "scale": 0.375, "offset": -0.5}, [[3, 4]], differs),
        (f"leaky_relu, {policy}", {"type": "leaky_relu"}, [[3, 4]], differs),
    ]
    CASES += [
        (f"{name}, {policy}", {"type": "activation", "activation": name}, [[3, 7]], differs)
        for name in ["elu", "selu", "softplus", "sigmoid", "silu", "tanh", "softsign", "hard_silu", "log_softmax"]
    ]

LESS_COMMON = ["celu", "exponential", "hard_shrink", "hard_tanh", "log_sigmoid", "soft_shrink",
                   "sparse_plus", "squareplus", "tanh_shrink"]
CASES += [
    (f"activation {name}", {"type": "activation", "activation": name}, [[3, 7]], {"scale": 2})
    for name in LESS_COMMON
]
for policy in ["mixed_float16", "mixed_bfloat16"]:
    CASES += [
        (f"{name}, {policy}", {"type": "activation", "activation": name}, [[3, 7]], {"policy": policy})
        for name in LESS_COMMON
    ]

RECURRENT = {"gru", "lstm", "simple_rnn"}
INNER = ("layer", "backward_layer")
CALL = ("use_causal_mask", "return_attention_scores")
# Keras's own functions on JAX compute tanh and sigmoid of float64 in float32.
IN_FLOAT64 = {
    "linear": lambda x: x,
    "relu": jax.nn.relu,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jax.numpy.tanh,
}


def compute_in_float64(layer):
    cell = layer.cell
    cell.activation = IN_FLOAT64[cell.activation.__name__]
    if hasattr(cell, "recurrent_activation"):
        cell.recurrent_activation = IN_FLOAT64[cell.recurrent_activation.__name__]


def regularizer(value):
    return keras.regularizers.L1L2(**value) if isinstance(value, dict) else value


def call(layer, config, slots):
    """Symbolic output; the arguments of attention layers' calls are fields of ours."""
    masked = {k: v for k, v in config.items() if k in CALL}
    if config["type"] == "multi_head_attention":
        return layer(*(slots if len(slots) > 1 else slots * 2), **masked)
    if config["type"] == "attention":
        return layer(slots if len(slots) > 1 else slots * 2, **masked)
    if config["type"] in RECURRENT | {"bidirectional"} and len(slots) > 1:
        # Keras finds the mask of a lone argument only.
        mask = keras.src.backend.get_keras_mask(slots[0])
        return layer(slots[0], initial_state=slots[1:], mask=mask)
    return layer(slots if len(slots) > 1 else slots[0])


def name_of(variable):
    """Path of a variable within its layer."""
    return variable.path.split("/", 1)[1]


def make_layer(config, dtype, inner=False):
    kwargs = {"name": config["type"]} if inner else {}
    kwargs |=  {k: v for k, v in config.items() if k not in ("type", *CALL)}
    for key in list(kwargs):
        if key in INNER:
            kwargs[key] = make_layer(kwargs[key], dtype, inner=True)
        elif key.endswith("_regularizer"):
            kwargs[key] = regularizer(kwargs[key])
        elif isinstance(kwargs[key], list):
            kwargs[key] = tuple(tuple(v) if isinstance(v, list) else v for v in kwargs[key])
    layer = CLASSES[config["type"]](dtype=dtype, **kwargs)
    if dtype == "float64" and not inner:
        for one in [layer, getattr(layer, "layer", None)]:
            for each in [one, getattr(one, "forward_layer", None), getattr(one, "backward_layer", None)]:
                if hasattr(each, "cell"):
                    compute_in_float64(each)
    return layer


class Numbers:
    """Distinct multiples of 1/64 in [-2, 2), moved by 1/128 so that none is a kink."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __call__(self, shape, scale=1):
        size = int(np.prod(shape))
        grid = (np.arange(256) - 128) / 64 + 1 / 128
        return self.rng.choice(grid, size, replace=size > 256).reshape(shape) * scale


def plain(array):
    """Nine digits, the fewest that hold a float32; integers without a point."""
    flat = np.asarray(array, dtype=np.float64).ravel()
    return [int(v) if v == int(v) and abs(v) < 1e6 else float(f"{v:.9g}") for v in flat]


def tensor(array):
    return {"shape": list(np.shape(array)), "values": plain(array)}


def run(index, name, config, shapes, training=True, policy=None, scale=1, indices=None, skipped=None, then=None):
    numbers = Numbers(index)
    layer = make_layer(config, policy or "float64")
    inputs_dtype = "float32" if policy else "float64"
    draw = numbers if indices is None else lambda shape, _: numbers.rng.integers(0, indices, shape)
    inputs = [np.asarray(draw(shape, scale), dtype=inputs_dtype) for shape in shapes]
    for sample, steps in enumerate(skipped or []):
        inputs[0][sample, steps] = 0
    several = len(inputs) > 1
    slots = [keras.Input(batch_shape=x.shape, dtype=inputs_dtype) for x in inputs]
    seen = [keras.layers.Masking(dtype=layer.dtype_policy)(slots[0]), *slots[1:]] if skipped else slots
    outputs = call(layer, config, seen)
    if not isinstance(outputs, (list, tuple)):
        outputs = [outputs]
    if then:
        outputs = [make_layer(then, policy or "float64")(outputs[0])]
    model = keras.Model(slots, list(outputs))
    for weight in layer.weights:
        value = numbers(weight.shape) / 2
        weight.assign(np.abs(value) + 0.25 if "variance" in weight.name else value)

    kept = list(layer.states) if config.get("stateful") else []
    names = ["state", "carry"][: len(kept)]

    def call_stateful(weights, states, x):
        """The outputs and the next states, which stateless_call() does not return."""
        mapping = [*zip(layer.trainable_variables, weights), *zip(kept, states)]
        with keras.StatelessScope(state_mapping=mapping) as scope:
            y = model(x, training=training)
        return y, [scope.get_current_value(state) for state in kept]

    trainable = [v.value for v in layer.trainable_variables]
    fixed = [v.value for v in layer.non_trainable_variables]
    dys = [numbers(output.shape) for output in outputs]
    before = np.asarray(numbers(shapes[0]), dtype=inputs_dtype) if kept else None
    states = call_stateful(trainable, [state.value * 0 for state in kept], before)[1] if kept else []

    def results(weights, xs):
        if kept:
            return *call_stateful(weights, states, xs[0]), []
        return model.stateless_call(
            weights,
            fixed,
            list(xs) if several else xs[0],
            training=training,
            return_losses=True,
        )

    def loss(weights, xs):
        ys, updated, losses = results(weights, xs)
        ys = ys if isinstance(ys, (list, tuple)) else [ys]
        total = sum((y.astype(inputs_dtype) * dy.astype(inputs_dtype)).sum() for y, dy in zip(ys, dys))
        for penalty in losses:
            total = total + penalty.astype(inputs_dtype)
        return total, (ys, updated, losses)

    (_, (ys, updated, losses)), (d_weights, d_inputs) = jax.value_and_grad(
        loss, argnums=(0, 1), has_aux=True
    )(trainable, inputs)
    names = names or [name_of(v) for v in layer.non_trainable_variables]
    case = {
        "name": name,
        "layer": config,
        **({"before": tensor(before)} if kept else {}),
        **({"masking": True} if skipped else {}),
        **({"then": then} if then else {}),
        "training": training,
        "policy": policy,
        "inputs": [tensor(x) for x in inputs],
        "weights": {name_of(v): tensor(w) for v, w in zip(layer.trainable_variables, trainable)},
        "fixed": {key: tensor(w) for key, w in zip(names, states if kept else fixed)},
        "dy": tensor(dys[0]),
        "y": tensor(ys[0].astype("float64")),
        **({"further": [{"dy": tensor(dy), "y": tensor(y.astype("float64"))}
                        for y, dy in zip(ys[1:], dys[1:])]} if len(ys) > 1 else {}),
        "penalty": float(f"{float(sum(p.astype('float64') for p in losses)):.9g}") if losses else 0,
        "d_inputs": [tensor(d) for d in d_inputs],
        "d_weights": {name_of(v): tensor(d) for v, d in zip(layer.trainable_variables, d_weights)},
        "updated": {key: tensor(w) for key, w in zip(names, updated)},
    }
    for key in ["weights", "d_weights", "fixed", "updated"]:
        case[key] = {k: v for k, v in case[key].items() if not k.endswith("seed_generator_state")}
    return case


def main():
    path = pathlib.Path(__file__).parent / "data" / "keras_layers.json"
    keep = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    cases = json.loads(path.read_text())["cases"][:keep]
    for index, (name, config, shapes, *differs) in enumerate(CASES[keep:], keep):
        cases.append(run(index, name, config, shapes, **(differs[0] if differs else {})))
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    path.write_text(f'{{"keras":"{keras.__version__}","cases":[\n{lines}\n]}}\n')
    print(f"{len(cases)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
