"""The table of targets: each figure with its target on this kind of processor and its measurement.

Two columns: processors with AMX, and those with AVX512-BF16 alone, where bfloat16 has twice the peak of
float32 and not sixteen times. For other instruction sets the targets are that 16 bits are nowhere
slower than float32, and that a step keeps its share of the time beside busy processes.
"""

import samples
from programs import ROOT

AMX, AVX512_BF16 = "amx", "avx512_bf16"
BF16, F16 = "mixed_bfloat16", "mixed_float16"
HALVES = (BF16, F16, "rewrite:bfloat16", "rewrite:float16")
# Batch -> bfloat16 over float32, float16 over float32, bfloat16 over PyTorch's best bfloat16.
GUIDE_4096 = {
    AMX: {8192: (10, 4, 2), 1024: (7.5, 3, 2.5), 128: (4, 2, 4)},
    AVX512_BF16: {8192: (1.9, 1, 1.1), 1024: (1.8, 1, 1.5), 128: (1.6, 1, 3.5)},
}
PEAK_SHARE = {AMX: 0.45, AVX512_BF16: 0.85}
# Config -> the same three.
CNNS = {
    AMX: {"fashion_cnn": (4, 2, 2.5), "mnist_cnn": (4, 2, 2.5), "residual": (3, 1.7, 2.5)},
    AVX512_BF16: {name: (1.9, 1, 2) for name in ("fashion_cnn", "mnist_cnn", "residual")},
}
# bfloat16 over float32, and the figures beside peers, which are the same on all processors: PyTorch's
# eager step over halfstep's in float32 and bfloat16 (only PyTorch's script has the encoder's layers);
# the faster of PyTorch and Keras over halfstep in float32; PyTorch's best bfloat16 over halfstep's.
ENCODER = {AMX: 3, AVX512_BF16: 1.5}
ENCODER_EAGER = {"float32": 1.2, "bfloat16": 1.5}
LSTM_FLOAT32 = 1.5
RESNET = {AMX: (3, 1, 1.3), AVX512_BF16: (1.5, 1, 1.3)}
GUIDE_64 = {AMX: (10, 6), AVX512_BF16: (10, 6)}
NAMES = {"guide_4096": "guide 4096", "guide_64": "guide 64", "fashion_cnn": "BatchNorm CNN"}


class Table:
    """Lines of figure, target and measurement."""

    def __init__(self):
        self.lines = []

    def add(self, figure, target, measured, at_most=False, rounds="", why=""):
        """`measured` None: not measured, `why` says for which reason. `target` None: a figure alone."""
        met = None
        if measured is not None and target is not None:
            # As printed: 3.996 meets 4.
            shown = round(measured, 2)
            met = shown <= target if at_most else shown >= target
        line = {"figure": figure, "target": target, "measured": measured, "at_most": at_most}
        self.lines.append(line | {"met": met, "rounds": rounds, "why": why})

    def speedup(self, figure, target, slow, fast):
        """How many times as fast, both lists of samples."""
        found = samples.speedup(slow, fast)
        if found is None:
            self.add(figure, target, None)
        else:
            self.add(figure, target, found["ratio"], rounds=found["rounds"])


def met_word(line):
    if line["measured"] is None:
        return "not measured"
    if line["met"] is None:
        return "-"
    return "yes" if line["met"] else "no"


def cells(line):
    """(figure, target, measured, met) as text."""
    target = "-"
    if line["target"] is not None:
        target = f"{'at most ' if line['at_most'] else ''}{line['target']:g}"
    measured = "-" if line["measured"] is None else f"{line['measured']:.2f}"
    if line["rounds"] not in ("", "best"):
        measured += f" ({line['rounds']})"
    met = met_word(line)
    return line["figure"], target, measured, met + (f": {line['why']}" if line["why"] else "")


def text(lines):
    rows = [("figure", "target", "measured", "met"), *(cells(line) for line in lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in rows)


def modes_of(run, key):
    """{mode: samples} of a workload; empty when it was not measured."""
    workload = run["workloads"].get(key)
    return {m: r["samples"] for m, r in workload["modes"].items()} if workload else {}


def fastest(modes, *, starts, ends=""):
    """The samples of the fastest mode whose name starts and ends so; None without one."""
    some = [s for mode, s in modes.items() if mode.startswith(starts) and mode.endswith(ends) and s]
    return min(some, key=lambda s: samples.best(s)["seconds"], default=None)


def own(modes):
    """The samples of the fastest of halfstep's own modes."""
    mine = [modes[mode] for mode in ("float32", *HALVES) if modes.get(mode)]
    return min(mine, key=lambda s: samples.best(s)["seconds"], default=None)


def three(table, name, modes, goals):
    """bfloat16 and float16 over float32, bfloat16 over PyTorch's best bfloat16."""
    bf16, f16, torch = goals
    table.speedup(f"{name}: bfloat16 over float32", bf16, modes.get("float32"), modes.get(BF16))
    table.speedup(f"{name}: float16 over float32", f16, modes.get("float32"), modes.get(F16))
    if torch is not None:
        theirs = fastest(modes, starts="torch", ends="bfloat16")
        table.speedup(
            f"{name}: bfloat16 over PyTorch's best bfloat16", torch, theirs, modes.get(BF16)
        )


def worst_half(run):
    """The least speed-up of any 16-bit mode over float32, over all workloads; its name; or None."""
    least = None
    for key in run["workloads"]:
        modes = modes_of(run, key)
        for mode in HALVES:
            found = samples.speedup(modes.get("float32"), modes.get(mode))
            if found and (least is None or found["ratio"] < least[0]["ratio"]):
                least = found, f"{key}, {mode}"
    return least


def fill(run):
    """The table's lines from the figures of a run; the columns are those of run["isa"]."""
    table = Table()
    isa = run["isa"]
    column = isa if isa in (AMX, AVX512_BF16) else None
    capped = run.get("capped")
    peers = not capped
    known = column is not None and not capped
    for batch in (8192, 1024, 128):
        modes = modes_of(run, f"guide_4096 {batch}")
        goals = GUIDE_4096[column][batch] if known else (1, 1, None)
        if modes or known:
            three(table, f"guide 4096, B = {batch}", modes, goals)
    if known:
        workload = run["workloads"].get("guide_4096 8192")
        share = None
        if workload:
            some = workload["modes"].get(BF16, {}).get("samples", [])
            unit = "amx_bf16" if isa == AMX else "avx512_bf16"
            share = samples.peak_share(some, workload["flops"], unit)
        figure = "guide 4096, B = 8192: bfloat16 step, share of the register peak beside it"
        table.add(figure, PEAK_SHARE[column], share)
    for config in ("fashion_cnn", "mnist_cnn", "residual"):
        modes = modes_of(run, f"{config} 128")
        goals = CNNS[column][config] if known else (1, 1, None)
        if modes or known:
            three(table, NAMES.get(config, config), modes, goals)
    if known:
        modes = modes_of(run, "guide_64 128")
        keras, eager = GUIDE_64[column]
        name = "guide 64, B = 128: fastest policy over"
        table.speedup(f"{name} Keras's fastest", keras, fastest(modes, starts="keras"), own(modes))
        eagerly = fastest(modes, starts="torch eager")
        table.speedup(f"{name} PyTorch's fastest eager", eager, eagerly, own(modes))
    fill_models(table, run, column if known else None)
    worst = worst_half(run)
    shipped = {path.stem for path in (ROOT / "configs").glob("*.yaml")}
    whole = shipped <= {key.split()[0] for key in run["workloads"]}
    which = "every shipped config" if whole else "shipped configs measured here"
    figure = f"{which}: 16 bits over float32, the worst"
    if worst:
        table.add(figure, 1.0, worst[0]["ratio"], rounds=worst[0]["rounds"], why=worst[1])
    else:
        table.add(figure, 1.0, None)
    busy = run.get("busy", {})
    shares = {
        name: samples.fair_share(b["quiet"], b["busy"], run["threads"], b["processes"])
        for name, b in busy.items()
    }
    shares = {name: share for name, share in shares.items() if share is not None}
    figure = "a step beside two busy processes, over its fair share of time, the worst"
    if shares:
        name = max(shares, key=shares.get)
        table.add(figure, 1.3, shares[name], at_most=True, why=name)
    else:
        table.add(figure, 1.3, None, at_most=True)
    if peers:
        fill_extras(table, run)
    return table.lines


def fill_models(table, run, column):
    """Models with attention, recurrent and residual layers; without a column 16 bits are to lose nothing."""
    modes = modes_of(run, "encoder 32")
    if modes:
        slow, fast = modes.get("float32"), modes.get(BF16)
        table.speedup("encoder: bfloat16 over float32", ENCODER.get(column, 1), slow, fast)
        for precision, goal in ENCODER_EAGER.items():
            mine = modes.get("float32" if precision == "float32" else BF16)
            eager = modes.get(f"torch eager {precision}")
            table.speedup(f"encoder: {precision} over PyTorch's eager {precision}", goal, eager, mine)
    modes = modes_of(run, "lstm_rows 128")
    if modes:
        theirs = fastest(modes, starts=("torch", "keras"), ends="float32")
        figure = "LSTM: float32 over the faster of PyTorch and Keras"
        table.speedup(figure, LSTM_FLOAT32, theirs, modes.get("float32"))
    modes = modes_of(run, "cifar10_resnet 128")
    if modes:
        three(table, "ResNet-20", modes, RESNET.get(column, (1, 1, None)))


def fill_extras(table, run):
    """Figures in addition to the targets of the steps."""
    extras = run.get("extras", {})
    for batch, ratio in extras.get("raw", {}).items():
        figure = f"guide 4096, B = {batch}: float32 step over oneDNN's bare matmuls"
        table.add(figure, 1.05, ratio, at_most=True)
    for op, ratio in extras.get("updates", {}).items():
        table.add(f"{op}, 20 M parameters: over copying its bytes", 1.5, ratio, at_most=True)
    for key in ("guide_4096 8192", "mnist_cnn 128", "fashion_cnn 128", "residual 128"):
        modes = run["workloads"].get(key, {}).get("modes", {})
        bytes_of = {m: r["planned_arena_bytes"] for m, r in modes.items() if m in (BF16, "float32")}
        if len(bytes_of) == 2:
            share = bytes_of[BF16] / bytes_of["float32"]
            table.add(f"{key}: activation bytes, bfloat16 over float32", 0.55, share, at_most=True)
    sequences = extras.get("sequences", {})
    if sequences:
        (_, few), (_, many) = sorted(sequences.items(), key=lambda item: int(item[0]))
        figure = "encoder: bytes of a step a token, 1,024 tokens a sample over 128"
        table.add(figure, 1.3, many / few, at_most=True)
    for name, result in extras.get("accuracy", {}).items():
        wall, torch = result["wall_seconds"], result.get("torch_seconds")
        table.add(f"{name}, seconds with start-up", result["target"], wall, at_most=True)
        table.add(f"{name}: over PyTorch", 5, torch / wall if torch and wall else None)
