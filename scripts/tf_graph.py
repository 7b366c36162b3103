#!/usr/bin/env python3
"""Writes a TensorFlow graph in the text form that `halfstep explain --graph` reads.

usage: tf_graph.py GRAPH [--fetch a,b] [-o FILE]

GRAPH is one of
  graph.pb, graph.pbtxt   a GraphDef
  saved_model/            a SavedModel (--signature names one of its signatures)
  model.keras, model.h5   a Keras model: the graph of one training step (--batch samples, with the
                          loss and optimizer it was compiled with, else --loss and --optimizer)

Fetches and placeholders are written as preserved. Functions that nodes call are declared, not
inlined, but where --inline asks TensorFlow to. Needs TensorFlow, from PyPI say.
"""

import argparse
import math
import os
import re
import sys

PLAIN_NAME = re.compile(r"[A-Za-z0-9_./>\\-]+$")


class NoTensorFlow(Exception):
    """TensorFlow cannot be imported here."""


def tensorflow():
    """The module, with its chatter turned off."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    try:
        import tensorflow as tf
    except ImportError as error:
        raise NoTensorFlow(f"TensorFlow is not installed here ({error})") from error
    return tf


def op_registry():
    """Every op that TensorFlow knows, by name."""
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    ops = op_def_pb2.OpList()
    buffer = pywrap_tf_session.TF_GetAllOpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(buffer))
    return {op.name: op for op in ops.op}


def dtype_name(number):
    return tensorflow().dtypes.as_dtype(number).base_dtype.name


def quoted(name):
    """A name as the text form wants it."""
    if PLAIN_NAME.match(name):
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def reference(text):
    """`n`, `n:1` and `^n` of a NodeDef."""
    if text.startswith("^"):
        return "^" + quoted(text[1:])
    name, _, port = text.rpartition(":")
    if not name or not port.isdigit():
        return quoted(text)
    return quoted(name) + (f":{port}" if port != "0" else "")


def scalar(tensor):
    """The number of a constant without axes, or None."""
    dtype = tensorflow().dtypes.as_dtype(tensor.dtype)
    if tensor.tensor_shape.dim or tensor.tensor_shape.unknown_rank or not dtype.is_floating:
        return None
    number = float(tensorflow().make_ndarray(tensor))
    return number if math.isfinite(number) else None


def attributes(node, op):
    """Type attributes, the counts that say how many ports there are, and the numbers of scalar
    constants, a loss scale among them."""
    counts = set()
    if op is not None:
        counts = {arg.number_attr for arg in [*op.input_arg, *op.output_arg]} - {""}
    words = []
    for key in sorted(node.attr):
        value = node.attr[key]
        kind = value.WhichOneof("value")
        if key.startswith("_"):
            continue
        if kind == "type":
            words.append(f"{key}: {dtype_name(value.type)}")
        elif kind == "list" and value.list.type:
            words.append(f"{key}: [{', '.join(dtype_name(t) for t in value.list.type)}]")
        elif kind == "i" and key in counts:
            words.append(f"{key}: {value.i}")
        elif kind == "tensor" and node.op == "Const" and (number := scalar(value.tensor)) is not None:
            words.append(f"{key}: {number!r}")
    return " {" + ", ".join(words) + "}" if words else ""


def to_text(graph_def, fetches=(), extra_lines=()):
    """The text form of a GraphDef.

    fetches: names of nodes that must keep their dtypes, beside all placeholders.
    extra_lines: written after the nodes, `no_kernel ...` say.
    """
    ops = op_registry()
    lines = []
    for node in graph_def.node:
        inputs = ", ".join(reference(i) for i in node.input)
        device = f" @{node.device}" if node.device else ""
        lines.append(
            f"{quoted(node.name)} = {node.op}({inputs}){attributes(node, ops.get(node.op))}{device}"
        )
    lines += [f"function {quoted(f.signature.name)}" for f in graph_def.library.function]
    lines += extra_lines
    kept = [f.split(":")[0] for f in fetches]
    kept += [n.name for n in graph_def.node if n.op.startswith("Placeholder") and n.name not in kept]
    if kept:
        lines.append("preserve " + ", ".join(map(quoted, kept)))
    return "\n".join(lines) + "\n"


def sinks(graph_def):
    """Nodes without consumers: the fetches of a graph that names none."""
    read = {i.lstrip("^").split(":")[0] for node in graph_def.node for i in node.input}
    return [node.name for node in graph_def.node if node.name not in read]


def inlined(graph_def, fetches, cluster=None):
    """The graph as the rewrite gets to see it in TensorFlow, where functions are inlined first.

    cluster: one that is there already, since TensorFlow takes one of this machine at a time.
    """
    from tensorflow.core.protobuf import config_pb2, meta_graph_pb2, rewriter_config_pb2
    from tensorflow.python.grappler import tf_optimizer

    meta = meta_graph_pb2.MetaGraphDef()
    meta.graph_def.CopyFrom(graph_def)
    meta.collection_def["train_op"].node_list.value.extend(fetches)
    config = config_pb2.ConfigProto()
    options = config.graph_options.rewrite_options
    options.optimizers.append("function")
    options.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    options.min_graph_nodes = -1
    return tf_optimizer.OptimizeGraph(config, meta, cluster=cluster)


def training_step(model, batch, loss=None, optimizer=None):
    """GraphDef and fetches of one training step of a Keras model.

    loss, optimizer: for a model that is not compiled.
    """
    tf = tensorflow()
    if loss or optimizer or not getattr(model, "optimizer", None):
        model.compile(optimizer=optimizer or "sgd", loss=loss or "mse", jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    x = tf.TensorSpec([batch, *model.inputs[0].shape[1:]], model.inputs[0].dtype, name="x")
    sparse = "sparse" in str(model.loss)
    shape = model.outputs[0].shape[1:-1] if sparse else model.outputs[0].shape[1:]
    y = tf.TensorSpec([batch, *shape], tf.int32 if sparse else tf.float32, name="y")

    def step(images, targets):
        return model.train_step((images, targets))["loss"]

    graph_def = tf.function(step).get_concrete_function(x, y).graph.as_graph_def()
    return graph_def, sinks(graph_def)


def load(path, arguments):
    """GraphDef and fetches of the model or graph at `path`."""
    tf = tensorflow()
    if os.path.isdir(path):
        loaded = tf.saved_model.load(path)
        function = loaded.signatures[arguments.signature]
        graph_def = function.graph.as_graph_def()
        return graph_def, sinks(graph_def)
    if path.endswith((".keras", ".h5")):
        model = tf.keras.models.load_model(path)
        return training_step(model, arguments.batch, arguments.loss, arguments.optimizer)
    graph_def = tf.compat.v1.GraphDef()
    if path.endswith(".pbtxt"):
        from google.protobuf import text_format

        with open(path, encoding="utf-8") as file:
            text_format.Parse(file.read(), graph_def)
    else:
        with open(path, "rb") as file:
            graph_def.ParseFromString(file.read())
    return graph_def, sinks(graph_def)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("graph")
    parser.add_argument("--fetch", default="", help="comma-separated nodes; default: all sinks")
    parser.add_argument("--inline", action="store_true", help="inline functions first")
    parser.add_argument("--signature", default="serving_default")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--loss")
    parser.add_argument("--optimizer")
    parser.add_argument("-o", "--output", help="default: standard output")
    arguments = parser.parse_args()
    if not os.path.exists(arguments.graph):
        sys.exit(f"{arguments.graph}: no such file")
    try:
        graph_def, fetches = load(arguments.graph, arguments)
    except NoTensorFlow as error:
        sys.exit(f"{error}; `pip install tensorflow` in a virtual environment gives it")
    if arguments.fetch:
        fetches = arguments.fetch.split(",")
    if arguments.inline:
        graph_def = inlined(graph_def, fetches)
    text = to_text(graph_def, fetches)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
