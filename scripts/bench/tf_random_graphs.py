"""Random GraphDefs over TensorFlow's op registry, for tf_rewrite_diff.py."""

import os
import random
import re

from tensorflow.core.framework import graph_pb2, node_def_pb2, types_pb2
import tensorflow as tf

FLOAT = types_pb2.DT_FLOAT
ALLOWED = [
    "MatMul", "Einsum", "BatchMatMulV2", "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter",
    "DepthwiseConv2dNative", "Conv3D",
]  # fmt: skip
DENIED = [
    "Exp", "Expm1", "L2Loss", "Mean", "Pow", "Sum", "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits",
]  # fmt: skip
UNLISTED = [
    "Cumsum", "Cast", "Cast", "Div", "DivNoNan", "LRN", "ResourceGather", "RsqrtGrad", "Sin",
    "SqrtGrad", "UnsortedSegmentSum", "Xdivy", "LogicalNot", "TensorListReserve", "Unique",
]  # fmt: skip
# Made by the builder itself, or with attributes that cannot be drawn at random; TopK's kernels ask
# for an attribute that the op lacks, over which TensorFlow's pass fails.
HANDLED = re.compile(
    r"^Cudnn|While|^_|^(Enter|Exit|Merge|NextIteration|Switch|SaveV2|BatchFunction|FusedConv2D|TopK$)"
)
# Dtypes that no op of the lists ever receives in practice.
STRANGE = {"string", "complex64", "complex128", "qint8", "quint8", "qint16", "quint16", "qint32"}


def listed_ops(registry):
    """Ops on TensorFlow's own lists, from the header that comes with it."""
    path = os.path.join(
        tf.sysconfig.get_include(),
        "tensorflow/core/grappler/optimizers/auto_mixed_precision_lists.h",
    )
    with open(path, encoding="utf-8") as file:
        names = set(re.findall(r'"([A-Z]\w+)"', file.read()))
    return sorted(n for n in names if n in registry and not HANDLED.search(n))


class Builder:
    """One graph: each op reads existing values, or new constants and placeholders."""

    def __init__(self, registry, seed):
        self.registry = registry
        self.random = random.Random(seed)
        self.nodes = []
        self.outputs = {}  # dtype -> ["node", "node:1", ...]
        listed = listed_ops(registry)
        self.neutral = [n for n in listed if n not in ALLOWED and n not in DENIED]

    def node(self, op, inputs, types, counts=None):
        """Adds a node; every attribute gets a value of its kind."""
        node = node_def_pb2.NodeDef(name=f"n{len(self.nodes)}", op=op, input=inputs)
        if self.random.random() < 0.05:
            node.device = "/device:GPU:0"
        for attr in self.registry[op].attr:
            value = node.attr[attr.name]
            if attr.name in types:
                chosen = types[attr.name]
                if isinstance(chosen, list):
                    value.list.type.extend(chosen)
                else:
                    value.type = chosen
            elif attr.name in (counts or {}):
                value.i = counts[attr.name]
            elif attr.HasField("default_value"):
                value.CopyFrom(attr.default_value)
            else:
                fill(value, attr, op, types)
        self.nodes.append(node)
        self.publish(node, types, counts or {})
        return node

    def publish(self, node, types, counts):
        port = 0
        for arg in self.registry[node.op].output_arg:
            for dtype in port_types(arg, types, counts):
                name = node.name if port == 0 else f"{node.name}:{port}"
                self.outputs.setdefault(dtype, []).append(name)
                port += 1

    def value(self, dtype):
        """Something of this dtype to read, most often something new."""
        there = self.outputs.get(dtype, [])
        if there and self.random.random() < 0.85:
            return there[-1 - int(len(there) * self.random.random() ** 2)]
        if dtype == types_pb2.DT_VARIANT:
            return self.op("EmptyTensorList").name
        if dtype == types_pb2.DT_RESOURCE:
            return self.node("VarHandleOp", [], {"dtype": FLOAT}).name
        source = self.random.choice(["Placeholder", "Const"])
        return self.node(source, [], {"dtype": dtype}).name

    def draw_type(self, attr):
        names = {t: tf.dtypes.as_dtype(t).name for t in attr.allowed_values.list.type if t < 24}
        plain = [t for t, name in names.items() if name not in STRANGE]
        if not names:
            plain = [FLOAT, types_pb2.DT_INT32, types_pb2.DT_BOOL, types_pb2.DT_DOUBLE]
        if (FLOAT in plain or not plain) and self.random.random() < 0.93:
            return FLOAT
        return self.random.choice(plain or [FLOAT])

    def op(self, name):
        types, counts = {}, {}
        for attr in self.registry[name].attr:
            if attr.type == "type":
                types[attr.name] = self.draw_type(attr)
            elif attr.type == "list(type)":
                length = self.random.randint(1, 3)
                types[attr.name] = [self.draw_type(attr) for _ in range(length)]
            elif attr.type == "int" and not attr.HasField("default_value"):
                counts[attr.name] = self.random.randint(max(1, attr.minimum), max(3, attr.minimum))
        inputs = []
        for arg in self.registry[name].input_arg:
            inputs += [self.value(t) for t in port_types(arg, types, counts)]
        return self.node(name, inputs, types, counts)

    def loop(self):
        enter = self.node("Enter", [self.value(FLOAT)], {"T": FLOAT})
        merge = self.node("Merge", [enter.name, ""], {"T": FLOAT}, {"N": 2})
        for _ in range(self.random.randint(0, 4)):
            self.op(self.random.choice(ALLOWED + self.neutral + DENIED))
        back = self.node("NextIteration", [self.value(FLOAT)], {"T": FLOAT})
        merge.input[1] = back.name
        self.outputs[FLOAT].remove(back.name)  # nothing but a Merge may read it
        self.node("Exit", [merge.name], {"T": FLOAT})

    def build(self):
        kinds = [
            (0.25, lambda: self.op(self.random.choice(ALLOWED))),
            (0.10, lambda: self.op(self.random.choice(DENIED))),
            (0.45, lambda: self.op(self.random.choice(self.neutral))),
            (0.12, lambda: self.op(self.random.choice(UNLISTED))),
            (0.08, self.loop),
        ]
        weights = [weight for weight, _ in kinds]
        for _ in range(self.random.randint(4, 45)):
            self.random.choices([make for _, make in kinds], weights)[0]()
        return self.finish()

    def finish(self):
        """The graph, in a random order at times, and the fetches: some of its sinks directly, others
        behind a NoOp, so that they may be converted."""
        if self.random.random() < 0.5:
            self.random.shuffle(self.nodes)
        graph = graph_pb2.GraphDef()
        graph.versions.producer = 2000
        graph.node.extend(self.nodes)
        read = {i.split(":")[0] for node in self.nodes for i in node.input}
        fetches = []
        for node in self.nodes:
            if node.name in read:
                if self.random.random() < 0.03:
                    fetches.append(node.name)
            elif self.random.random() < 0.2:
                fetches.append(node.name)
            else:
                done = graph.node.add(name=node.name + "_done", op="NoOp")
                done.input.append("^" + node.name)
                fetches.append(done.name)
        return graph, fetches


def port_types(arg, types, counts):
    """The dtypes of the ports that one argument of an op stands for."""
    if arg.type_list_attr:
        return types[arg.type_list_attr]
    dtype = types[arg.type_attr] if arg.type_attr else arg.type
    return [dtype] * (counts.get(arg.number_attr, 1) if arg.number_attr else 1)


def fill(value, attr, op, types):
    """Any value of an attribute's kind; the rewrite looks at none of them."""
    kind = attr.type
    if kind == "string":
        value.s = b"SAME" if attr.name == "padding" else b"x"
    elif kind == "shape":
        value.shape.unknown_rank = True
    elif kind == "list(int)":
        value.list.i.extend([1] * (5 if "3D" in op else 4))
    elif kind == "list(shape)":
        value.list.shape.add().unknown_rank = True
    elif kind == "float":
        value.f = 1.0
    elif kind == "bool":
        value.b = False
    elif kind == "tensor":
        value.tensor.dtype = types.get("dtype", FLOAT)
        value.tensor.tensor_shape.dim.add().size = 0
    else:
        value.i = 1
