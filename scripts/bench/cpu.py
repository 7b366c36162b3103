#!/usr/bin/env python3
"""Every figure of halfstep on a CPU with its target, measured in one run.

    scripts/bench/cpu.py [--quick] [--build ci] [--largest 8192] [--only CONFIGS] [--peers LIST]
    scripts/bench/cpu.py --max-isa avx2        own steps alone, with fewer instructions
    scripts/bench/page.py build/bench-cpu.json the page of benchmarks from the run

Training steps of the shipped models under every precision, against PyTorch (eager and compiled),
Keras on TensorFlow (jit on and off) and JAX; steps next to busy processes; dense GEMMs against
oneDNN and the register peak; optimizer passes against copying; time to an accuracy. All on the same
shapes, optimizers and thread count, with data in memory.

How times are made comparable on a host that changes:
- The modes of a workload take short turns, forth and back, `--rounds` times. Frameworks are held open
  between their turns; halfstep is a process a turn.
- Before and after every turn bench_peak measures the register peak of each unit on all processors (AMX,
  AVX512-BF16, float32 FMA) and a copy bandwidth. They are stored with the sample.
- A mode's time is its best turn, as other tenants only add time; `worst` is its slowest. A ratio takes
  the best turns of both modes if the peaks stored with them are alike, else the fastest pair of turns with
  like peaks, since AMX and float32 slow down by different factors (scripts/bench/samples.py).
- A mode with fewer than two turns in which others took less than 10 % of the processors gets up to two
  more.
- The verdict says whether the processor was quiet: the time that others took (/proc/stat), and how far
  the peak of the fastest unit varied.

Of each peer's mode the fastest variant counts (channels last or first, autocast or float32 tensors with
bfloat16 matmuls, steps per call); the notes list them all. `processors`
of a peer's time is its processor time over wall time: near the thread count, or it sleeps.

PYTHON is an interpreter with torch, tensorflow and jax; without it a virtual environment is made in
build/bench-python. A peer that is not installed there is "not measured".
"""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

import machine
import programs
import samples
import targets
from programs import PEERS, ROOT, output

POLICIES = ["float32", "mixed_bfloat16", "mixed_float16", "rewrite:bfloat16", "rewrite:float16"]
PROFILED = ["float32", "mixed_bfloat16", "mixed_float16"]

# (config, batch, seconds a turn, rounds, precisions of peers)
WORKLOADS = [
    ("quickstart", 256, 0.3, 4, ()),
    ("small_cnn", 128, 0.3, 4, ()),
    ("guide_64", 128, 0.3, 4, ("float32", "bfloat16")),
    ("guide_64", 1024, 0.3, 4, ()),
    ("guide_64", 8192, 0.5, 4, ()),
    ("guide_4096", 128, 0.8, 4, ("bfloat16",)),
    ("guide_4096", 1024, 1.0, 4, ("bfloat16",)),
    ("guide_4096", 8192, 1.0, 3, ("bfloat16",)),
    ("mnist_cnn", 128, 0.5, 4, ("bfloat16",)),
    ("fashion_cnn", 128, 0.5, 4, ("bfloat16",)),
    ("residual", 128, 0.5, 4, ("bfloat16",)),
    ("encoder", 32, 1.0, 4, ("float32", "bfloat16")),
    ("lstm_rows", 128, 0.3, 4, ("float32", "bfloat16")),
    ("cifar10_resnet", 128, 0.5, 4, ("bfloat16",)),
    ("gru_rows", 128, 0.3, 4, ()),
    ("transformer_patches", 128, 0.3, 4, ()),
    ("char_lm", 32, 0.3, 4, ()),
    ("char_lstm", 32, 0.5, 4, ()),
    ("conv3d_clips", 64, 0.5, 4, ()),
    ("tabular", 32, 0.1, 4, ()),
]
# JAX's matmuls on a CPU use no bfloat16 unit: a larger step of guide_4096 takes ten seconds.
LARGEST_JAX = 1024
# Steps of the encoder with as many tokens in all: (tokens of a sample, batch).
SEQUENCES = [(128, 32), (1024, 4)]
# Modes with fewer turns that others left alone get up to so many more.
MIN_TURNS, EXTRA_ROUNDS = 2, 2
# Steps next to busy processes: (config, batch).
SHARED = [("small_cnn", 128), ("guide_64", 128), ("fashion_cnn", 128), ("guide_4096", 128)]
BUSY_PROCESSES = 2


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def build(preset):
    folder = ROOT / f"build/{preset}"
    if not (folder / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", preset], cwd=ROOT, check=True, stdout=sys.stderr)
    targets_built = ["halfstep", "bench_kernels", "bench_gemm", "bench_peak"]
    command = ["cmake", "--build", str(folder), "--target", *targets_built]
    subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)


def interpreter():
    folder = ROOT / "build/bench-python"
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        for package in ("torch", "tensorflow-cpu", "jax"):
            subprocess.run([python, "-m", "pip", "install", "--quiet", package])
    return str(python)


class Bench:
    """The programs and the meter of one run."""

    def __init__(self, options):
        self.options = options
        self.bin = ROOT / f"build/{options.build}/bin"
        self.meter = machine.PeakMeter(self.bin / "bench_peak", options.max_isa)
        self.all_samples = []

    def sample(self, mode, seconds, before):
        """One turn of a mode and the reading of the peaks after it; `before` is the last one."""
        usage = machine.Usage(mode.pids)
        result = mode.turn(seconds)
        taken, stolen = usage.taken(result["wall"])
        after = self.meter.now()
        result |= {"peak": machine.beside(before, after), "taken": taken, "stolen": stolen}
        self.all_samples.append(result)
        return result, after

    def halfstep(self, config, batch, policy):
        return programs.Halfstep(
            self.bin / "halfstep", config, batch, policy, self.options.threads, self.options.max_isa
        )

    def peers(self, python, resolved, batch, precisions):
        if not precisions or self.options.max_isa:
            return []
        names = [name for name in self.options.peers.split(",") if name]
        if batch > LARGEST_JAX and resolved["name"] == "guide_4096" and "jax" in names:
            names.remove("jax")
        log = open(ROOT / "build/bench-peers.log", "a", encoding="utf-8")
        return [
            programs.Peer(python, name, resolved, batch, self.options.threads, precisions, log)
            for name in names
        ]

    def workload(self, python, config, batch, seconds, rounds, precisions):
        """One workload: {config, batch, flops, modes: {mode: {samples, memory}}, notes, profiles}"""
        own = {policy: self.halfstep(config, batch, policy) for policy in POLICIES}
        own["float32"].bench(1, 0)
        peers = self.peers(python, own["float32"].resolved, batch, precisions)
        modes = own | {mode.name: mode for peer in peers for mode in peer.modes}
        found = {mode: {"samples": []} for mode in modes}
        before = self.meter.now()
        for turn in range(rounds + EXTRA_ROUNDS):
            names = list(modes)
            if turn >= rounds:
                least = min(MIN_TURNS, rounds)
                names = [n for n in names if samples.undisturbed(found[n]["samples"]) < least]
            for name in names if turn % 2 == 0 else reversed(names):
                try:
                    result, before = self.sample(modes[name], seconds, before)
                except (RuntimeError, OSError) as error:
                    say(f"{name}: {error}")
                    continue
                found[name]["samples"].append(result)
        notes = {mode: note for peer in peers for mode, note in peer.notes.items()}
        versions = {name: v for peer in peers for name, v in peer.versions.items()}
        for peer in peers:
            peer.close()
        for policy, mode in own.items():
            found[policy] |= mode.memory()
        profiles = {policy: self.profile(own[policy], seconds) for policy in PROFILED}
        return {
            "config": config,
            "batch": batch,
            "flops": own["float32"].flops,
            "state": machine.state([s for result in found.values() for s in result["samples"]]),
            "modes": {mode: result for mode, result in found.items() if result["samples"]},
            "notes": notes,
            "profiles": profiles,
        }, versions

    def profile(self, mode, seconds):
        """Ops of a step by time, with the peaks beside: {peak, total_ms, ops}; None: not measured."""
        before = self.meter.now()
        report = mode.profile(seconds)
        if report is None:
            return None
        peak = machine.beside(before, self.meter.now())
        return {"peak": peak} | {key: report["profile"][key] for key in ("total_ms", "ops")}

    def busy(self, config, batch, rounds, seconds):
        """{policy: {quiet, busy: samples, processes}}, a quiet and a busy turn after each other."""
        found = {}
        for policy in PROFILED:
            mode = self.halfstep(config, batch, policy)
            mode.turn(0.1)
            quiet, shared = [], []
            for _ in range(rounds):
                quiet.append(mode.turn(seconds))
                with programs.BusyProcesses(BUSY_PROCESSES):
                    shared.append(mode.turn(seconds))
            name = f"{config} {batch}, {policy}"
            found[name] = {"quiet": quiet, "busy": shared, "processes": BUSY_PROCESSES}
        return found

    def memory_of_sequences(self):
        """{tokens of a sample: bytes of a bfloat16 step of the encoder}."""
        found = {}
        for tokens, batch in SEQUENCES:
            mode = self.halfstep("encoder", batch, "mixed_bfloat16")
            sizes = (f"model.inputs.tokens=[{tokens}]", f"model.nodes.positions.sequence_length={tokens}")
            mode.bench(1, 0, *(word for size in sizes for word in ("--set", size)))
            found[tokens] = mode.memory()["planned_arena_bytes"]
        return found

    def raw_ratios(self, batches):
        ratios = {}
        for batch in batches:
            config = ROOT / "configs/guide_4096.yaml"
            line = output([self.bin / "bench_kernels", "step", config, batch])
            ratios[batch] = float(line.split()[-1])
        return ratios

    def updates(self):
        lines = output([self.bin / "bench_kernels", "updates"]).splitlines()
        return {line.split()[0]: float(line.split()[-1]) for line in lines if "ratio" in line}

    def gemm(self):
        """Products of 1024 samples against oneDNN's; none without bfloat16 instructions."""
        command = [self.bin / "bench_gemm", "1024,4096,4096"]
        done = subprocess.run(command, capture_output=True, text=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def accuracies(self, python):
        """Wall time from process start to report of runs that stop at an accuracy on MNIST."""
        goals = {
            "MNIST to 97 %, guide_64": ("guide_64", 0.97, 1.5),
            "MNIST to 99 %, CNN": ("mnist_cnn", 0.99, 300),
        }
        results = {}
        for name, (config, goal, target) in goals.items():
            path = str(ROOT / f"configs/{config}.yaml")
            threads = self.options.threads
            command = [str(self.bin / "halfstep"), "train", path, "--json", "-q"]
            command += ["--batch-size", "128", "--threads", str(threads)]
            command += ["--policy", "mixed_bfloat16", "--set", "data.name=mnist"]
            command += ["--set", f"training.target=val_accuracy={goal}"]
            command += ["--set", "training.stop_at_target=true", "--set", "training.epochs=20"]
            start = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True)
            wall = time.perf_counter() - start
            results[name] = {"target": target, "wall_seconds": None}
            if done.returncode != 0:
                say(f"{name}: {done.stderr.strip()}")
                continue
            results[name]["wall_seconds"] = wall
            data = os.environ.get("HALFSTEP_DATA")
            if data and "torch" in self.options.peers:
                resolved = json.loads(done.stdout)["config"]["resolved"]
                task = {"config": resolved, "batch": 128, "threads": threads}
                task["precisions"] = ["bfloat16"]
                script = [python, str(PEERS / "torch_accuracy.py"), json.dumps(task)]
                start = time.perf_counter()
                done = subprocess.run([*script, f"{data}/mnist", str(goal)], capture_output=True)
                if done.returncode == 0:
                    results[name]["torch_seconds"] = time.perf_counter() - start
        return results


def steps_text(key, workload):
    """The modes of a workload, fastest first, with the peak beside and the share of it."""
    lines = [f"{key}"]
    for name, r in sorted(
        workload["modes"].items(), key=lambda item: samples.best(item[1]["samples"])["seconds"]
    ):
        some = r["samples"]
        unit = samples.unit_of(name, some)
        low, worst = samples.best(some)["seconds"], max(s["seconds"] for s in some)
        line = f"  {name:24} {low * 1e3:10.3f} to {worst * 1e3:10.3f} ms"
        if unit:
            peaks = [value for s in some for value in s["peak"].get(unit, [])]
            share = samples.peak_share(some, workload["flops"], unit)
            line += f"  {min(peaks):6.0f} to {max(peaks):6.0f} GFLOP/s {unit}"
            line += f", {share * 100:5.1f} % of it" if share else ""
        lines.append(line)
    lines.append(f"  {workload['state']['verdict']}")
    lines += [f"  {mode}: {note}" for mode, note in workload["notes"].items()]
    return "\n".join(lines)


def chosen_workloads(options):
    only = options.only.split(",") if options.only else None
    if options.quick and not only:
        quick = {("quickstart", 256), ("guide_64", 128), ("guide_4096", 128), ("guide_4096", 1024)}
        quick |= {("mnist_cnn", 128), ("fashion_cnn", 128), ("residual", 128)}
        chosen = [w for w in WORKLOADS if w[:2] in quick]
    else:
        chosen = [w for w in WORKLOADS if only is None or {w[0], f"{w[0]}:{w[1]}"} & set(only)]
    chosen = [w for w in chosen if w[1] <= options.largest]
    rounds = options.rounds or (3 if options.quick else None)
    return [(c, b, s, rounds or r, p) for c, b, s, r, p in chosen]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="own steps alone, about 4 minutes")
    parser.add_argument("--largest", type=int, default=8192, help="batch")
    parser.add_argument(
        "--only",
        default="",
        help="comma-separated, as guide_4096 or guide_4096:8192; no other figures then",
    )
    parser.add_argument("--python", help="interpreter with torch, tensorflow and jax")
    parser.add_argument("--rounds", type=int, help="turns of each mode")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--peers", default=None, help="comma-separated, none: torch,keras,jax")
    parser.add_argument("--build", default="release", help="preset whose programs are measured")
    parser.add_argument("--max-isa", help="own steps alone, with at most these instructions")
    parser.add_argument("-o", "--output", default=str(ROOT / "build/bench-cpu.json"))
    options = parser.parse_args()
    if options.peers is None:
        options.peers = "" if options.quick or options.max_isa else "torch,keras,jax"
    if options.peers == "none":
        options.peers = ""
    return options


def main():
    options = arguments()
    build(options.build)
    python = options.python or (interpreter() if options.peers else "")
    bench = Bench(options)
    described = machine.description()
    start = time.monotonic()
    run = {
        "date": datetime.date.today().isoformat(),
        "isa": bench.meter.isa,
        "capped": options.max_isa,
        "native_isa": native_isa(bench) if options.max_isa else bench.meter.isa,
        "threads": options.threads,
        "machine": described,
        "versions": {},
        "workloads": {},
    }
    for config, batch, seconds, rounds, precisions in chosen_workloads(options):
        key = f"{config} {batch}"
        found, versions = bench.workload(python, config, batch, seconds, rounds, precisions)
        run["workloads"][key] = found
        run["versions"] |= versions
        say(steps_text(key, found), f"\n  {time.monotonic() - start:.0f} s since the start")
    run["busy"] = {}
    whole = not options.only and not options.max_isa
    for config, batch in SHARED:
        few = options.quick and config not in ("quickstart", "guide_64")
        if few or options.max_isa or f"{config} {batch}" not in run["workloads"]:
            continue
        run["busy"] |= bench.busy(config, batch, 3, 0.6)
    say(f"busy processes: {time.monotonic() - start:.0f} s since the start")
    run["state"] = machine.state(bench.all_samples)
    run["versions"] |= {"oneDNN": onednn(bench)}
    extras = run["extras"] = {}
    if any(key.startswith("encoder") for key in run["workloads"]):
        extras["sequences"] = bench.memory_of_sequences()
    if whole and not options.quick:
        batches = [batch for batch in (128, 1024, 8192) if batch <= options.largest]
        extras["raw"] = bench.raw_ratios(batches)
        extras["updates"] = bench.updates()
        extras["gemm"] = bench.gemm()
        extras["accuracy"] = bench.accuracies(python)
    bench.meter.close()
    run["seconds"] = time.monotonic() - start
    run["table"] = targets.fill(run)
    print(targets.text(run["table"]))
    governor = described["governor"] or "not readable"
    about = f"{described['model']}, {described['processors']} processors, {run['isa']}"
    print(f"{about}, governor {governor}, load average before {described['load_average']:.1f}")
    print(f"state of the processor: {run['state']['verdict']}")
    pathlib.Path(options.output).write_text(json.dumps(run, indent=1) + "\n")
    print(f"all numbers: {options.output}; {run['seconds']:.0f} s")


def native_isa(bench):
    """The processor's own instruction set, for a run that is capped."""
    meter = machine.PeakMeter(bench.bin / "bench_peak")
    meter.close()
    return meter.isa


def onednn(bench):
    """The version that halfstep reports."""
    mode = bench.halfstep("quickstart", 256, "float32")
    return mode.bench(1, 0)["context"]["versions"]["onednn"]


if __name__ == "__main__":
    main()
