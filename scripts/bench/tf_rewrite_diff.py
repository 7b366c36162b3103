#!/usr/bin/env python3
"""Runs TensorFlow's own automatic mixed precision pass and halfstep's on the same graphs and prints
where they differ.

usage: tf_rewrite_diff.py [--models mlp,cnn,...] [--random N] [--seed S] [--level LEVEL] [--keep DIR]
                          [--modes bf16,emulated,cpu,cuda]

Graphs are the training steps of small Keras models (functions inlined, as the pass sees them) and
random graphs over TensorFlow's op registry. Modes: `bf16`; `emulated` (float16, ops kept in float32
between casts); `cpu` (float16, ops retyped); `cuda` (float16 on a GPU, which need not be there: the
pass gets a virtual cluster that describes one). `cuda` needs the kernels for GPUs, which TensorFlow
asks for and which the package tensorflow has and tensorflow-cpu lacks; by default it is compared
where they are there. --keep writes the graphs that differ there. The exit status is 1 when something
differs, 77 when TensorFlow or a package that a mode needs is not installed. HALFSTEP_PROGRAM names the
program, default build/release/bin/halfstep.

halfstep follows the rules of the release that is installed (--tensorflow).
"""

import argparse
import collections
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts/bench")]

import tf_graph  # noqa: E402

PREFIX = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"
SUFFIX = "-AutoMixedPrecision"
Mode = collections.namedtuple("Mode", "optimizer mode target emulate device")
MODES = {
    "bf16": Mode("auto_mixed_precision_onednn_bfloat16", "bf16", "bfloat16", True, "CPU"),
    "emulated": Mode("auto_mixed_precision_cpu", "cpu", "float16", True, "CPU"),
    "cpu": Mode("auto_mixed_precision_cpu", "cpu", "float16", False, "CPU"),
    "cuda": Mode("auto_mixed_precision", "cuda", "float16", True, "GPU"),
}
# The GPU that `halfstep explain --graph` assumes by default.
GPU = {"architecture": "8.0", "cuda": "11050", "cudnn": "8302"}


class Failed(Exception):
    """A pass refused the graph."""


class Crashed(Exception):
    """TensorFlow's pass came to grief by itself: some graphs make its emulation look up a node that
    it has just replaced."""


@functools.cache
def cluster(device):
    """This machine, of which TensorFlow takes one at a time; for `GPU` a virtual one, which the pass
    asks for nothing but its devices' properties."""
    from tensorflow.core.protobuf import device_properties_pb2
    from tensorflow.python.grappler import cluster as grappler_cluster

    if device == "CPU":
        return grappler_cluster.Cluster(disable_detailed_stats=True)
    devices = []
    for kind, environment in (("CPU", {}), ("GPU", GPU)):
        properties = device_properties_pb2.DeviceProperties(
            type=kind, frequency=1000, num_cores=80, memory_size=16 << 30, environment=environment
        )
        name = f"/job:localhost/replica:0/task:0/device:{kind}:0"
        devices.append(device_properties_pb2.NamedDevice(name=name, properties=properties))
    return grappler_cluster.Cluster(devices=devices)


@functools.cache
def has_gpu_kernels():
    """Whether this TensorFlow registers kernels for GPUs, without which nothing but the allow list
    would be converted in mode cuda."""
    from tensorflow.python.framework import kernels

    rows = kernels.get_registered_kernels_for_op("Relu").kernel
    return any(row.device_type == "GPU" for row in rows)


def rules(version):
    """halfstep's word for the rules of a TensorFlow release."""
    major, minor = (int(number) for number in version.split(".")[:2])
    return "2.20+" if (major, minor) >= (2, 20) else "2.19"


def placed(graph_def, device):
    """The graph with the devices that it names exchanged in mode cuda, where nodes on a CPU are the
    ones to be left alone."""
    if device == "CPU":
        return graph_def
    copy = type(graph_def)()
    copy.CopyFrom(graph_def)
    for node in copy.node:
        node.device = node.device.replace("GPU", "CPU")
    return copy


def run_tensorflow(graph_def, fetches, mode, level):
    """The GraphDef that TensorFlow makes of it, no other optimizer running."""
    from tensorflow.core.protobuf import config_pb2, meta_graph_pb2, rewriter_config_pb2
    from tensorflow.python.grappler import tf_optimizer

    os.environ[PREFIX + "EMULATE_FP16"] = str(int(mode.emulate))
    os.environ[PREFIX + "LEVEL"] = level
    meta = meta_graph_pb2.MetaGraphDef()
    meta.graph_def.CopyFrom(graph_def)
    meta.collection_def["train_op"].node_list.value.extend(fetches)
    config = config_pb2.ConfigProto()
    options = config.graph_options.rewrite_options
    options.optimizers.append(mode.optimizer)
    options.meta_optimizer_iterations = rewriter_config_pb2.RewriterConfig.ONE
    options.min_graph_nodes = -1
    options.fail_on_optimizer_errors = True
    try:
        return tf_optimizer.OptimizeGraph(config, meta, cluster=cluster(mode.device))
    except Exception as error:  # of many types, all of them TensorFlow's
        crashed = "raw_hash_map" in str(error)
        raise (Crashed if crashed else Failed)(str(error)) from error


def run_halfstep(text, mode, level):
    """The report of `explain --graph`."""
    program = os.environ.get("HALFSTEP_PROGRAM", str(ROOT / "build/release/bin/halfstep"))
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        command = [program, "explain", "--graph", file.name, "--json", "--mode", mode.mode]
        command += ["--tensorflow", rules(tf_graph.tensorflow().__version__)]
        if level:
            command += ["--level", level.lower()]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX)}
        environment[PREFIX + "EMULATE_FP16"] = str(int(mode.emulate))
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise SystemExit(f"halfstep cannot read the graph:\n{done.stderr}")
    report = json.loads(done.stdout)
    if report["status"] == "failed":
        raise Failed(report["message"])
    return report


def kernel_lines(graph_def, registry, target, device):
    """`no_kernel` lines for ops whose kernels do not take the target, as TensorFlow knows them. None
    when the answer depends on the node, which a line per op cannot say."""
    from tensorflow.python.framework import kernels

    number = tf_graph.tensorflow().dtypes.as_dtype(target).as_datatype_enum
    answers = {}
    for node in graph_def.node:
        op = registry.get(node.op)
        for attr in op.attr if op is not None else []:
            admits = not attr.allowed_values.list.type or number in attr.allowed_values.list.type
            if attr.type != "type" or node.attr[attr.name].type != 1 or not admits:
                continue
            rows = kernels.get_registered_kernels_for_op(node.op).kernel
            answers.setdefault(node.op, set()).add(
                any(takes(row, node, attr.name, number, device) for row in rows)
            )
    if any(len(found) > 1 for found in answers.values()):
        return None
    return [f"no_kernel {op} {target}" for op, found in sorted(answers.items()) if not any(found)]


def takes(row, node, changed, number, device):
    """Whether a kernel runs the node with one attribute changed."""
    if row.device_type not in (device, "DEFAULT") or row.label:
        return False
    for constraint in row.constraint:
        allowed = set(constraint.allowed_values.list.type)
        if not allowed:  # a constraint on something else than dtypes
            continue
        value = node.attr[constraint.name]
        given = [number] if constraint.name == changed else (list(value.list.type) or [value.type])
        if not allowed.issuperset(given):
            return False
    return True


def tensorflow_outcome(graph_def, names):
    """Per node its op, type attributes and inputs with the casts before them; the casts' names."""
    nodes = {node.name: node for node in graph_def.node}

    def source(text):
        casts = []
        while True:
            name, _, port = text.partition(":")
            if name in names:
                return f"{name}:{port or 0}" + "".join(f" > {c}" for c in reversed(casts))
            casts.append(tf_graph.dtype_name(nodes[name].attr["DstT"].type))
            text = nodes[name].input[0]

    outcome = {}
    for name in names & nodes.keys():
        node = nodes[name]
        types = {}
        for key, value in node.attr.items():
            if value.WhichOneof("value") == "type":
                types[key] = tf_graph.dtype_name(value.type)
            elif value.WhichOneof("value") == "list" and value.list.type:
                types[key] = [tf_graph.dtype_name(t) for t in value.list.type]
        reads = {source(i) for i in node.input if not i.startswith("^")}
        outcome[name] = (node.op, types, {r for r in reads if ">" in r})
    return outcome, sorted(nodes.keys() - names)


def halfstep_outcome(report):
    casts = {cast["name"]: cast for cast in report["casts"]}
    reads = collections.defaultdict(set)
    for cast in casts.values():
        chain, text = cast["to"], cast["input"]
        while text.rpartition(":")[0] in casts:
            before = casts[text.rpartition(":")[0]]
            chain, text = f"{before['to']} > {chain}", before["input"]
        for consumer in cast["consumers"]:
            reads[consumer].add(f"{text} > {chain}")
    outcome = {n["name"]: (n["op"], n["attrs"], reads[n["name"]]) for n in report["nodes"]}
    return outcome, sorted(casts)


def differences(theirs, ours, emulated):
    """Lines that say where two outcomes differ; TensorFlow has attributes beside ours."""
    lines = []
    for name, (op, types, reads) in sorted(ours[0].items()):
        if name not in theirs[0]:
            lines.append(f"{name}: only halfstep has it")
            continue
        their_op, their_types, their_reads = theirs[0][name]
        if their_op != op:
            lines.append(f"{name}: op {their_op} in TensorFlow, {op} here")
        for attr, dtype in types.items():
            if their_types.get(attr) != dtype:
                lines.append(
                    f"{name} ({op}) {attr}: {their_types.get(attr)} in TensorFlow, {dtype} here"
                )
        if reads != their_reads:
            lines.append(f"{name} ({op}) reads: {their_reads} in TensorFlow, {reads} here")
    names = [theirs[1], ours[1]]
    if emulated:  # TensorFlow numbers casts in the order of a hash table there
        names = [sorted(re.sub(rf"-\d+{SUFFIX}", "", n) for n in side) for side in names]
    if names[0] != names[1]:
        only = [sorted(set(a) - set(b)) for a, b in (names, names[::-1])]
        lines.append(f"casts: only in TensorFlow {only[0]}, only here {only[1]}")
    return lines


def compare(graph_def, fetches, mode, level, registry):
    """(outcome, lines, the text form)."""
    graph_def = placed(graph_def, mode.device)
    extra = kernel_lines(graph_def, registry, mode.target, mode.device)
    if extra is None:
        return "kernels differ between nodes", [], ""
    text = tf_graph.to_text(graph_def, fetches, extra)
    results = []
    for run in (
        lambda: run_tensorflow(graph_def, fetches, mode, level),
        lambda: run_halfstep(text, mode, level),
    ):
        try:
            results.append(run())
        except Crashed:
            return "TensorFlow crashes", [], text
        except Failed as failure:
            results.append(failure)
    failed = [isinstance(result, Failed) for result in results]
    if any(failed):
        if all(failed):
            return "both refuse it", [], text
        sides = "TensorFlow" if failed[0] else "halfstep"
        return "differs", [f"only {sides} fails: {results[failed.index(True)]}"], text
    theirs = tensorflow_outcome(results[0], {node.name for node in graph_def.node})
    ours = halfstep_outcome(results[1])
    lines = differences(theirs, ours, mode.mode == "cpu" and mode.emulate)
    if lines:
        return "differs", lines, text
    return "same" if ours[1] else "same, nothing converted", [], text


def graphs(arguments, registry):
    """(name, GraphDef, fetches) of everything to compare."""
    import tf_keras_models
    import tf_random_graphs

    for name in filter(None, arguments.models.split(",")):
        model = tf_keras_models.MODELS[name]()
        graph_def, fetches = tf_graph.training_step(
            model, 32, tf_keras_models.CROSS_ENTROPY, "rmsprop"
        )
        yield name, tf_graph.inlined(graph_def, fetches, cluster("CPU")), fetches
    for seed in range(arguments.seed, arguments.seed + arguments.random):
        graph_def, fetches = tf_random_graphs.Builder(registry, seed).build()
        yield f"random-{seed}", graph_def, fetches


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default="mlp,cnn,residual,attention,lstm")
    parser.add_argument("--random", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modes")
    parser.add_argument("--level", default="")
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    try:
        tf = tf_graph.tensorflow()
    except tf_graph.NoTensorFlow as error:
        print(f"{error}: nothing was compared. In a virtual environment, `pip install tensorflow`.")
        sys.exit(77)
    print(f"TensorFlow {tf.__version__}, compared with the rules of {rules(tf.__version__)}")
    modes = arguments.modes.split(",") if arguments.modes else list(MODES)
    if "cuda" in modes and not has_gpu_kernels():
        print(
            "mode cuda: this TensorFlow has no kernels for GPUs, which its pass asks for. In a virtual "
            f"environment, `pip install tensorflow=={tf.__version__}` (not tensorflow-cpu) has them; "
            "no GPU is needed."
        )
        if arguments.modes:
            sys.exit(77)
        modes.remove("cuda")
    registry = tf_graph.op_registry()
    counts = collections.Counter()
    for name, graph_def, fetches in graphs(arguments, registry):
        for word in modes:
            outcome, lines, text = compare(
                graph_def, fetches, MODES[word], arguments.level, registry
            )
            counts[word, outcome] += 1
            if lines:
                print(f"{name}, {word}: differs")
                print("".join(f"  {line}\n" for line in lines[:8]), end="")
                if arguments.keep:
                    path = pathlib.Path(arguments.keep, f"{name}-{word}.txt")
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
    for (word, outcome), count in sorted(counts.items()):
        print(f"{word:9} {outcome}: {count}")
    sys.exit(any(outcome == "differs" for _, outcome in counts))


if __name__ == "__main__":
    main()
