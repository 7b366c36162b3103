"""A halfstep model as a list of layers, for the scripts that train it in other frameworks.

Each script is held open by scripts/bench/cpu.py: it prepares its modes, then measures one for every
line on standard input, so that short turns of all programs can follow each other.
"""

import dataclasses
import json
import statistics
import sys
import time


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
    """The model and the optimizer of a config."""

    layers: list
    input: list
    classes: int
    optimizer: dict


@dataclasses.dataclass
class Task(Network):
    """The measurement requested from a script; read from its one argument, a JSON text."""

    batch: int
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
    keys = ("batch", "threads", "precisions")
    return Task(**vars(network_of(task["config"])), **{key: task[key] for key in keys})


def vocabulary(task):
    """The number of tokens that a model takes as its input; None: it takes values."""
    sizes = [layer.fields["input_dim"] for layer in task.layers if layer.type == "embedding"]
    return sizes[0] if sizes else None


def measure(step, seconds):
    """Seconds of a step from samples worth about `seconds`, at least one step.

    A call of `step` trains `step.steps` steps, 1 without that attribute.
    {seconds: median, mean, steps, processors: processor time over wall time}
    """
    times = []
    each = getattr(step, "steps", 1)
    used, start = time.process_time(), time.perf_counter()
    end = start + seconds
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) / each)
    wall = time.perf_counter() - start
    return {
        "seconds": statistics.median(times),
        "mean": statistics.fmean(times),
        "steps": len(times) * each,
        "processors": round((time.process_time() - used) / wall, 2),
    }


def tell(line):
    print(json.dumps(line), flush=True)


def reason(error):
    """The first line of its message."""
    return str(error).strip().splitlines()[0] if str(error).strip() else repr(error)


def run(main):
    """Calls `main`, and tells why it failed before the error ends the script."""
    try:
        main()
    except Exception as error:
        tell({"failed": reason(error)})
        raise


def fastest(mode, variants, trial=0.3):
    """The fastest of {variant: function that makes a step}, by two short interleaved trials.

    A variant that this build cannot run is left out. Tells how they compare; returns the step of the
    fastest one, None when none runs.
    """
    steps, failed = {}, {}
    for name, make in variants.items():
        try:
            steps[name] = make()
            for _ in range(2):  # compiles, allocates
                steps[name]()
        except Exception as error:
            steps.pop(name, None)
            failed[name] = reason(error)
            print(f"{mode}, {name}: {failed[name]}", file=sys.stderr)
    times = {}
    for name in [*steps, *reversed(steps)] if len(steps) > 1 else []:
        seconds = measure(steps[name], trial)["seconds"]
        times[name] = min(times.get(name, seconds), seconds)
    chosen = min(steps, key=lambda name: times.get(name, 0)) if steps else None
    compared = [f"{name} {seconds * 1e3:.3g} ms" for name, seconds in times.items()]
    compared += [f"{name}: {reason}"[:120] for name, reason in failed.items()]
    note = f"not measured; {'; '.join(compared)}"
    if chosen is not None:
        note = chosen + (f" ({'; '.join(compared)})" if len(compared) > 1 else "")
    tell({"mode": mode, "runs": chosen is not None, "note": note})
    return steps.get(chosen)


def serve(versions, modes):
    """Prepares every mode, then measures one for each line {"mode", "seconds"} on standard input.

    `modes`: {mode: {variant: function that makes a step}}. A model is kept in memory for each mode.
    """
    tell({"versions": versions})
    steps = {mode: fastest(mode, variants) for mode, variants in modes.items()}
    tell({"ready": True})
    slow = set()
    for line in sys.stdin:
        request = json.loads(line)
        step = steps[request["mode"]]
        if request["mode"] not in slow:
            step()  # refills the caches that other modes have used
        result = measure(step, request["seconds"])
        if result["seconds"] > 0.3:
            slow.add(request["mode"])
        tell(result)
