"""A halfstep model as a list of layers, for the scripts that train it in other frameworks."""

import dataclasses
import json
import sys


@dataclasses.dataclass
class Layer:
    name: str
    type: str
    fields: dict
    inputs: list


def layers_of(model):
    """The layers of a `model` block in an order in which inputs come first; the input is `x`.

    Errors: ValueError for a form that these scripts do not know.
    """
    layers = []
    if model.get("layers"):
        last = "x"
        for i, entry in enumerate(model["layers"]):
            fields = dict(entry)
            kind = fields.pop("type")
            name = fields.pop("name", None) or f"{kind}_{i}"
            layers.append(Layer(name, kind, fields, [last]))
            last = name
        return layers
    image = next(iter(model["inputs"]))
    for name, entry in model["nodes"].items():
        fields = dict(entry)
        sources = fields.pop("from")
        sources = [sources] if isinstance(sources, str) else sources
        kind = fields.pop("type")
        layers.append(Layer(name, kind, fields, ["x" if s == image else s for s in sources]))
    known = {"x"}
    for layer in layers:
        if not known.issuperset(layer.inputs):
            raise ValueError(f"{layer.name} comes before its inputs")
        known.add(layer.name)
    return layers


def pair(value, default=1):
    """A size of two extents."""
    if value is None:
        value = default
    return tuple(value) if isinstance(value, list) else (value, value)


@dataclasses.dataclass
class Network:
    """What a config says of the model and its optimizer."""

    layers: list
    input: list
    classes: int
    optimizer: dict


@dataclasses.dataclass
class Task(Network):
    """What a script is to measure; read from its one argument, a JSON text."""

    batch: int
    seconds: float
    threads: int
    precisions: list


def network_of(config):
    """The network of a resolved config."""
    model = config["model"]
    shape = model.get("input") or next(iter(model["inputs"].values()))
    layers = layers_of(model)
    classes = [layer.fields["units"] for layer in layers if layer.type == "dense"][-1]
    optimizer = dict(config["optimizer"])
    # The schedule costs nothing; its first rate stands for it.
    rate = optimizer.get("learning_rate", 1e-3)
    if isinstance(rate, dict):
        optimizer["learning_rate"] = rate["initial_learning_rate"]
    # The last softmax is part of every framework's cross-entropy.
    if layers[-1].type == "softmax":
        layers.pop()
    return Network(layers, list(shape), classes, optimizer)


def read_task():
    task = json.loads(sys.argv[1])
    keys = ("batch", "seconds", "threads", "precisions")
    return Task(**vars(network_of(task["config"])), **{key: task[key] for key in keys})


def measure(step, seconds, finish=lambda: None):
    """Median seconds of `step()` after a warm-up, from samples worth `seconds`."""
    import statistics
    import time

    warm = time.perf_counter() + seconds / 4
    count = 0
    while count < 3 or time.perf_counter() < warm:
        step()
        count += 1
    finish()
    samples = []
    end = time.perf_counter() + seconds
    while len(samples) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        finish()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def report(mode, seconds):
    """One JSON line of a mode's step time; None when it cannot run."""
    import resource

    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"mode": mode, "seconds": seconds, "peak_rss_bytes": rss}), flush=True)
