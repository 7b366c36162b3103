#!/usr/bin/env python3
"""Writes docs/benchmarks.md from the runs under docs/benchmarks/.

    scripts/bench/page.py [RUN.json...]   adds runs of scripts/bench/cpu.py, then writes the page
    scripts/bench/page.py --check         exit status 1 when the page is not up to date with the runs

A run is kept in short, docs/benchmarks/KIND.json, one for each kind of processor (and each cap on its
instructions); a newer one replaces it. docs/benchmarks/KIND.md is text copied into the section of
the kind: figures from before there were such files.
"""

import json
import pathlib
import sys

import samples
import targets
from machine import UNIT_NAMES
from programs import ROOT

FOLDER = ROOT / "docs/benchmarks"
PAGE = ROOT / "docs/benchmarks.md"
# Kinds of processors by instruction set, in the order of the page.
KINDS = {
    "amx": "AMX",
    "avx512_bf16": "AVX512-BF16",
    "avx512": "AVX-512",
    "avx2": "AVX2",
    "baseline": "baseline instructions",
}
TOP_OPS = 6
PROFILED = "mixed_bfloat16"


def short(value, digits=4):
    """Numbers rounded to significant digits, in all of a value."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {key: short(item, digits) for key, item in value.items()}
    if isinstance(value, list):
        return [short(item, digits) for item in value]
    return value


def short_mode(name, result, flops):
    """{ms, worst_ms, turns, unit, peak: range in GFLOP/s, share, processors} of a mode."""
    some = result["samples"]
    unit = samples.unit_of(name, some)
    peaks = [value for sample in some for value in sample["peak"].get(unit, [])]
    found = {
        "ms": samples.best(some)["seconds"] * 1e3,
        "worst_ms": max(sample["seconds"] for sample in some) * 1e3,
        "turns": len(some),
        "unit": unit,
        "peak": [min(peaks), max(peaks)] if peaks else None,
        "share": samples.peak_share(some, flops, unit) if unit else None,
    }
    used = [sample["processors"] for sample in some if "processors" in sample]
    if used:
        found["processors"] = samples.median(used)
    return found


def short_ops(name, profile):
    """The slowest ops of a step: {op, layer, kernel, ms, of_step, gflops, of_peak, gbs, of_copy}."""
    peak = profile["peak"]
    fastest = samples.unit_of(name, [{"peak": peak}])
    copy = sum(peak["copy"]) / 2 if "copy" in peak else None
    ops = []
    for op in sorted(profile["ops"], key=lambda op: -op["ms"])[:TOP_OPS]:
        gflops = op["achieved_tflops"] * 1e3 if op["achieved_tflops"] else None
        gbs = op["achieved_gbs"]
        # Direct convolutions sum in float32 registers, whatever the tensors' dtype.
        unit = "float32" if "direct" in op["kernel"] else fastest
        multiply = sum(peak[unit]) / 2 if unit in peak else None
        ops.append(
            {
                "op": op["type"],
                "layer": op["layer"],
                "kernel": op["kernel"],
                "ms": op["ms"],
                "of_step": op["share"],
                "gflops": gflops,
                "of_peak": gflops / multiply if gflops and multiply else None,
                "gbs": gbs,
                "of_copy": gbs / copy if gbs and copy else None,
            }
        )
    return ops


def compact(run):
    """The parts of a run that the page shows."""
    workloads = {}
    for key, workload in run["workloads"].items():
        workloads[key] = {
            "modes": {
                name: short_mode(name, result, workload["flops"])
                for name, result in workload["modes"].items()
            },
            "verdict": workload["state"]["verdict"],
            "notes": workload["notes"],
            "ops": {name: short_ops(name, p) for name, p in workload["profiles"].items() if p},
        }
    kept = ("date", "isa", "native_isa", "capped", "threads", "machine", "versions", "state")
    result = {key: run[key] for key in kept}
    result["gemm"] = run["extras"].get("gemm", [])
    return short(
        result | {"seconds": run["seconds"], "table": run["table"], "workloads": workloads}
    )


def kind(run):
    """The name of a run's file."""
    return f"{run['isa']}-on-{run['native_isa']}" if run["capped"] else run["isa"]


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def number(value, digits=3):
    """A number in a few digits, without an exponent."""
    if value is None:
        return "-"
    size = abs(value)
    places = 0 if size >= 100 else digits - 1 - (0 if size < 10 else 1)
    if 0 < size < 1:
        places = digits
    return f"{value:.{places}f}"


def percent(value):
    return (
        "-" if value is None else f"{value * 100:.0f} %" if value >= 0.1 else f"{value * 100:.1f} %"
    )


def steps(key, workload):
    rows = []
    for name, mode in sorted(workload["modes"].items(), key=lambda item: item[1]["ms"]):
        peak = "-"
        if mode["peak"]:
            low, high = mode["peak"]
            peak = f"{number(low / 1e3)} to {number(high / 1e3)} ({UNIT_NAMES[mode['unit']]})"
        row = [name, number(mode["ms"]), number(mode["worst_ms"]), peak, percent(mode["share"])]
        rows.append([*row, number(mode.get("processors"))])
    head = ["mode", "ms, best turn", "worst", "peak beside, TFLOP/s", "share of peak", "processors"]
    words = [f"**{key}** ({workload['verdict']})", table(head, rows)]
    notes = [f"- {mode}: {note}" for mode, note in sorted(workload["notes"].items())]
    return "\n\n".join([*words, *(["\n".join(notes)] if notes else [])])


def ops(run):
    rows = []
    for key, workload in run["workloads"].items():
        for op in workload["ops"].get(PROFILED, []):
            row = [key, op["op"], op["layer"], op["kernel"], number(op["ms"])]
            row += [percent(op["of_step"]), number(op["gflops"]), percent(op["of_peak"])]
            rows.append([*row, number(op["gbs"]), percent(op["of_copy"])])
    head = ["workload", "op", "layer", "kernel", "ms", "of the step", "GFLOP/s", "of peak"]
    return table([*head, "GB/s", "of a copy"], rows)


def products(run):
    """Batch, inputs, outputs of a dense layer: forward, gradients towards x and towards weights."""
    rows = []
    for line in run["gemm"]:
        peak = line["own_gflops"] / line["peak_gflops"]
        row = [line["product"], number(line["own_ms"]), number(line["own_pack_ms"])]
        row += [number(line["onednn_bf16_ms"]), number(line["onednn_f32_ms"])]
        rows.append([*row, number(line["own_gflops"]), percent(peak)])
    head = ["product", "packed, ms", "with packing", "oneDNN bfloat16", "oneDNN float32", "GFLOP/s"]
    return table([*head, "of peak"], rows)


def section(run):
    """The text of one run."""
    title = KINDS[run["isa"]]
    if run["capped"]:
        title += f", capped on a processor with {KINDS[run['native_isa']]}"
    about, state = run["machine"], run["state"]
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    facts = [
        f"- {run['date']}, {about['model']}, {about['processors']} processors,"
        f" {run['threads']} threads, governor {about['governor'] or 'not readable'};"
        f" {run['seconds'] / 60:.0f} minutes.",
        f"- Versions: {versions}.",
        f"- State of the processor: {state['verdict']}. Load average before:"
        f" {number(about['load_average'])}; taken by other programs {percent(state['taken'])},"
        f" by the host {percent(state['stolen'])}.",
    ]
    for key, (low, high) in state["ranges"].items():
        name = "copy" if key == "copy" else f"{UNIT_NAMES[key]} register peak"
        unit = "GB/s" if key == "copy" else "GFLOP/s"
        facts.append(f"- {name}, all threads: {number(low)} to {number(high)} {unit}.")
    if run["capped"]:
        facts.append(
            f"- `HALFSTEP_MAX_ISA={run['capped']}`: what the processor would do with fewer"
            " instructions. Own steps alone."
        )
    figures = [targets.cells(line) for line in run["table"]]
    parts = [f"## {title}", "\n".join(facts), "### Targets"]
    parts += [table(["figure", "target", "measured", "met"], figures), "### Steps"]
    parts += [steps(key, workload) for key, workload in run["workloads"].items()]
    parts += [f"### Slowest ops of a step, {PROFILED}", ops(run)]
    if run["gemm"]:
        parts += ["### Matmuls", products(run)]
    return "\n\n".join(parts)


HEAD = """# Benchmarks on CPUs

Written by `scripts/bench/page.py` from the runs in `docs/benchmarks/`, which `scripts/bench/cpu.py`
measured; do not edit by hand.

Training steps on random data in memory. Modes take short turns after each other; a time is that of the
best turn, a ratio that of the best turns with like register peaks (`scripts/bench/samples.py`
says why). The register peak is the rate of the unit on operands that never leave registers, on all threads,
measured before and after each turn. Shares count a multiplication and an addition as two operations; a
float16 matmul on AMX takes three or four bfloat16 ones of the unit, which are counted as one. GB/s count
operands and results once; above the rate of a copy they came from caches. An op's share is of the peak of
the mode's unit, float32 FMA for kernels named `direct`. `processors` is a framework's processor time over
wall time."""


def page(runs, notes):
    """The page of {kind: compact run} and {kind: text}."""
    parts = [HEAD]
    for isa in KINDS:
        own = [run for name, run in runs.items() if name == isa]
        capped = [run for _, run in sorted(runs.items()) if run["capped"] and run["isa"] == isa]
        if isa in notes and not own:
            parts.append(f"## {KINDS[isa]}")
        parts += [section(run) for run in own]
        if isa in notes:
            parts.append(notes[isa].strip())
        parts += [section(run) for run in capped]
    return "\n\n".join(parts) + "\n"


def stored():
    runs = {p.stem: json.loads(p.read_text(encoding="utf-8")) for p in FOLDER.glob("*.json")}
    notes = {p.stem: p.read_text(encoding="utf-8") for p in FOLDER.glob("*.md")}
    return runs, notes


def write_run(path, run):
    """One line for each workload and each target, so that a change is readable."""
    head = {key: value for key, value in run.items() if key not in ("table", "workloads")}
    lines = [f'"{key}": {json.dumps(value)}' for key, value in head.items()]
    rows = ",\n  ".join(json.dumps(line) for line in run["table"])
    lines.append(f'"table": [\n  {rows}\n ]')
    works = ",\n  ".join(f"{json.dumps(k)}: {json.dumps(w)}" for k, w in run["workloads"].items())
    lines.append(f'"workloads": {{\n  {works}\n }}')
    text = "{" + ",\n ".join(lines) + "}\n"
    path.write_text(text, encoding="utf-8")


def main(arguments):
    check = "--check" in arguments
    for path in (word for word in arguments if word != "--check"):
        run = compact(json.loads(pathlib.Path(path).read_text(encoding="utf-8")))
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_run(FOLDER / f"{kind(run)}.json", run)
    text = page(*stored())
    if check:
        if PAGE.read_text(encoding="utf-8") == text:
            return 0
        print(f"{PAGE} is not what the runs give: scripts/bench/page.py writes it", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
