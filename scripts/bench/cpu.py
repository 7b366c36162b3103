#!/usr/bin/env python3
"""Every figure of halfstep on a CPU beside its target, measured in one run.

    scripts/bench/cpu.py [--largest 8192] [--only CONFIGS] [--python PYTHON] [--rounds 3] [--threads N]

Training steps of the shipped models under every precision, against PyTorch (eager and compiled),
Keras on TensorFlow (jit on and off) and JAX; dense products against oneDNN and the processor's own
rate; optimizer passes against copying; time to an accuracy. Programs take turns, on the same shapes,
optimizers and thread count, with data in memory. A round has every program on every model once and
gives the median over steps; each number is the best of the rounds, as what else runs on a machine only
adds time, and the list tells the worst beside it. --largest leaves out larger batches: one of 8192
takes minutes a framework.

PYTHON is an interpreter with torch, tensorflow and jax; without it a virtual environment is made in
build/bench-python. What is not installed there is left out of the table.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "scripts/bench/peers"
BIN = ROOT / "build/release/bin"
POLICIES = ["float32", "mixed_bfloat16", "mixed_float16", "rewrite:bfloat16", "rewrite:float16"]
SCRIPTS = {"torch": "torch_steps.py", "keras": "keras_steps.py", "jax": "jax_steps.py"}

# (config, batch, seconds a mode and round)
WORKLOADS = [
    ("guide_64", 128, 1),
    ("guide_64", 1024, 1),
    ("guide_64", 8192, 2),
    ("guide_4096", 128, 2),
    ("guide_4096", 1024, 4),
    ("guide_4096", 8192, 12),
    ("mnist_cnn", 128, 2),
    ("fashion_cnn", 128, 2),
    ("residual", 128, 2),
]


def output(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.stderr.write(done.stderr[-2000:])
        raise RuntimeError(f"{command[0]} ended with {done.returncode}")
    return done.stdout


def build():
    if not (ROOT / "build/release/build.ninja").exists():
        subprocess.run(["cmake", "--preset", "release"], cwd=ROOT, check=True, stdout=sys.stderr)
    targets = ["halfstep", "bench_kernels", "bench_gemm"]
    command = ["cmake", "--build", "build/release", "--target", *targets]
    subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)


def interpreter():
    folder = ROOT / "build/bench-python"
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        for package in ("torch", "tensorflow", "jax"):
            subprocess.run([python, "-m", "pip", "install", "--quiet", package])
    return str(python)


def halfstep_steps(config, batch, seconds, threads):
    """{policy: {seconds, peak bytes}} and the resolved config."""
    results, resolved = {}, None
    for policy in POLICIES:
        # A process for each policy: its peak memory is its own.
        command = [str(BIN / "halfstep"), "bench", str(ROOT / f"configs/{config}.yaml"), "--json"]
        command += ["-q", "--synthetic", "--batch-size", str(batch), "--threads", str(threads)]
        command += ["--policies", policy, "--warmup", "3", "--repeat", "1"]
        quick = json.loads(output([*command, "--steps", "5"]))
        steps = max(5, int(seconds * 1e3 / quick["step_time"]["median"]))
        report = json.loads(output([*command, "--steps", str(min(steps, 2000))]))
        resolved = report["config"]["resolved"]
        results[policy] = {
            "seconds": report["step_time"]["median"] * 1e-3,
            "peak_rss_bytes": report["memory"]["host_peak_rss_bytes"],
            "planned_arena_bytes": report["memory"]["planned_arena_bytes"],
        }
    return results, resolved


def peer_steps(python, peer, config, batch, seconds, threads):
    task = {
        "config": config,
        "batch": batch,
        "seconds": seconds,
        "threads": threads,
        "precisions": ["float32", "bfloat16"],
    }
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    command = [python, str(PEERS / SCRIPTS[peer]), json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        reason = (done.stderr.strip().splitlines() or ["no word"])[-1]
        print(f"{peer}: left out: {reason}", file=sys.stderr)
    return {
        line["mode"]: {"seconds": line["seconds"], "peak_rss_bytes": line["peak_rss_bytes"]}
        for line in lines
        if line["seconds"] is not None
    }


def measure_once(python, peers, workload, threads):
    """{mode: seconds and bytes} of one round."""
    config, batch, seconds = workload
    found, resolved = halfstep_steps(config, batch, seconds, threads)
    for peer in peers:
        found |= peer_steps(python, peer, resolved, batch, seconds, threads)
    return found


def over_rounds(samples):
    """The best round of a mode, what the worst took, and the median of its bytes."""
    result = {key: statistics.median(s[key] for s in samples) for key in samples[0]}
    seconds = [s["seconds"] for s in samples]
    return result | {"seconds": min(seconds), "worst_seconds": max(seconds)}


def measure_steps(python, peers, workloads, rounds, threads):
    """{workload: {mode: result over rounds}}."""
    samples = {f"{config} {batch}": {} for config, batch, _ in workloads}
    for turn in range(rounds):
        for workload in workloads:
            key = f"{workload[0]} {workload[1]}"
            for mode, result in measure_once(python, peers, workload, threads).items():
                samples[key].setdefault(mode, []).append(result)
            print(f"{key}, rounds so far: {turn + 1}", file=sys.stderr)
            modes = {mode: over_rounds(some) for mode, some in samples[key].items()}
            for mode, result in sorted(modes.items(), key=lambda item: item[1]["seconds"]):
                ms, worst = result["seconds"] * 1e3, result["worst_seconds"] * 1e3
                mib = result["peak_rss_bytes"] / 2**20
                print(f"  {mode:28} {ms:10.3f} to {worst:10.3f} ms {mib:7.0f} MiB", file=sys.stderr)
    return {
        key: {mode: over_rounds(some) for mode, some in modes.items()}
        for key, modes in samples.items()
    }


def best(result, prefix):
    """The fastest mode whose name starts so."""
    times = [r["seconds"] for mode, r in result.items() if mode.startswith(prefix)]
    return min(times) if times else None


class Table:
    """Lines of figure, target and what was measured."""

    def __init__(self):
        self.lines = []

    def add(self, figure, target, measured, at_most=False):
        if measured is None:
            met = None
        else:
            met = measured <= target if at_most else measured >= target
        line = {"figure": figure, "target": target, "measured": measured}
        self.lines.append(line | {"at_most": at_most, "met": met})

    def ratio(self, figure, target, slow, fast):
        """How many times as fast."""
        self.add(figure, target, slow / fast if slow and fast else None)

    def print(self):
        print(f"{'figure':66} {'target':>9} {'measured':>9}  met")
        for line in self.lines:
            sign = "<=" if line["at_most"] else ">="
            value = "-" if line["measured"] is None else f"{line['measured']:.2f}"
            met = {None: "not measured", True: "yes", False: "no"}[line["met"]]
            print(f"{line['figure']:66} {sign} {line['target']:>6g} {value:>9}  {met}")


def fill(table, steps, extras):
    own = {key: {p: r["seconds"] for p, r in result.items()} for key, result in steps.items()}
    goals = {8192: (7.5, 3.3, 2, 2.5), 1024: (5, 2.5, 2.5, 3), 128: (3.5, 1.7, 3, 4)}
    for batch, (bf16, f16, torch, keras) in goals.items():
        result = steps.get(f"guide_4096 {batch}")
        if result is None:
            continue
        t = own[f"guide_4096 {batch}"]
        name = f"guide 4096, B = {batch}"
        table.ratio(f"{name}: bfloat16 over float32", bf16, t["float32"], t["mixed_bfloat16"])
        table.ratio(f"{name}: float16 over float32", f16, t["float32"], t["mixed_float16"])
        for peer, goal in (("torch", torch), ("keras", keras)):
            theirs = [
                r["seconds"]
                for mode, r in result.items()
                if mode.startswith(peer) and mode.endswith("bfloat16")
            ]
            table.ratio(
                f"{name}: bfloat16 over {peer}'s best bfloat16",
                goal,
                min(theirs, default=None),
                t["mixed_bfloat16"],
            )
    for batch, ratio in extras["raw"].items():
        table.add(f"guide 4096, B = {batch}: float32 step over raw products", 1.05, ratio, True)
    if extras["peak"] is not None:
        figure = "guide 4096, B = 8192: bfloat16 step, share of dot-product peak"
        table.add(figure, 0.36, extras["peak"])
    small = steps.get("guide_64 128")
    if small:
        mine = own["guide_64 128"]["float32"]
        table.ratio("guide 64, B = 128: float32 over Keras", 10, best(small, "keras"), mine)
        table.ratio("guide 64, B = 128: over PyTorch eager", 4, best(small, "torch eager"), mine)
    for config in ("fashion_cnn", "residual"):
        result = steps.get(f"{config} 128")
        if not result:
            continue
        t = own[f"{config} 128"]
        theirs = [
            r["seconds"]
            for mode, r in result.items()
            if mode.startswith("torch") and mode.endswith("bfloat16")
        ]
        table.ratio(f"{config}: bfloat16 over float32", 2.5, t["float32"], t["mixed_bfloat16"])
        table.ratio(
            f"{config}: bfloat16 over PyTorch's bfloat16",
            1.5,
            min(theirs, default=None),
            t["mixed_bfloat16"],
        )
    for op, ratio in extras["updates"].items():
        table.add(f"{op}, 20 M parameters: over copying its bytes", 1.5, ratio, True)
    for config in ("guide_4096 8192", "mnist_cnn 128", "fashion_cnn 128", "residual 128"):
        result = steps.get(config)
        if result:
            share = (
                result["mixed_bfloat16"]["planned_arena_bytes"]
                / result["float32"]["planned_arena_bytes"]
            )
            table.add(f"{config}: activation bytes, bfloat16 over float32", 0.55, share, True)
    for name, result in extras["accuracy"].items():
        table.add(f"{name}, seconds with start-up", result["target"], result["wall_seconds"], True)
        table.ratio(f"{name}: over PyTorch", 5, result.get("torch_seconds"), result["wall_seconds"])


def raw_ratios(batches):
    ratios = {}
    for batch in batches:
        line = output([BIN / "bench_kernels", "step", ROOT / "configs/guide_4096.yaml", str(batch)])
        ratios[batch] = float(line.split()[-1])
    return ratios


def updates():
    lines = output([BIN / "bench_kernels", "updates"]).splitlines()
    return {line.split()[0]: float(line.split()[-1]) for line in lines if "ratio" in line}


def accuracies(python, threads):
    """Wall time from process start to report of runs that stop at an accuracy on MNIST."""
    goals = {
        "MNIST to 97 %, guide_64": ("guide_64", 0.97, 1.5),
        "MNIST to 99 %, CNN": ("mnist_cnn", 0.99, 300),
    }
    results = {}
    for name, (config, goal, target) in goals.items():
        path = str(ROOT / f"configs/{config}.yaml")
        command = [str(BIN / "halfstep"), "train", path, "--json", "-q", "--batch-size", "128"]
        command += ["--threads", str(threads), "--policy", "mixed_bfloat16"]
        command += ["--set", "data.name=mnist", "--set", f"training.target=val_accuracy={goal}"]
        command += ["--set", "training.stop_at_target=true", "--set", "training.epochs=20"]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        wall = time.perf_counter() - start
        if done.returncode not in (0, 5):
            print(f"{name}: {done.stderr.strip()}", file=sys.stderr)
            results[name] = {"target": target, "wall_seconds": None}
            continue
        report = json.loads(done.stdout)
        result = {"target": target, "wall_seconds": wall if done.returncode == 0 else None}
        data = os.environ.get("HALFSTEP_DATA")
        if data:
            task = {
                "config": report["config"]["resolved"],
                "batch": 128,
                "seconds": 0,
                "threads": threads,
                "precisions": ["bfloat16"],
            }
            script = [python, str(PEERS / "torch_accuracy.py")]
            script += [json.dumps(task), f"{data}/mnist", str(goal)]
            start = time.perf_counter()
            done = subprocess.run(script, capture_output=True, text=True)
            if done.returncode == 0:
                result["torch_seconds"] = time.perf_counter() - start
        results[name] = result
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=8192, help="batch")
    parser.add_argument("--only", default="", help="comma-separated configs instead of all")
    parser.add_argument("--python", help="interpreter with torch, tensorflow and jax")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--peers", default="torch,keras,jax", help="comma-separated")
    parser.add_argument("-o", "--output", default=str(ROOT / "build/bench-cpu.json"))
    options = parser.parse_args()
    build()
    python = options.python or interpreter()
    peers = [peer for peer in options.peers.split(",") if peer]
    only = options.only.split(",") if options.only else [config for config, _, _ in WORKLOADS]
    workloads = [w for w in WORKLOADS if w[1] <= options.largest and w[0] in only]
    steps = measure_steps(python, peers, workloads, options.rounds, options.threads)
    gemm = [json.loads(line) for line in output([BIN / "bench_gemm"]).splitlines()]
    peak = None
    # 931.9 GFLOP: a step's products.
    large = steps.get("guide_4096 8192")
    if large and gemm:
        rate = 931.9e9 / large["mixed_bfloat16"]["seconds"]
        peak = rate * 1e-9 / statistics.median(line["peak_gflops"] for line in gemm)
    extras = {
        "raw": raw_ratios([batch for batch in (128, 1024, 8192) if batch <= options.largest]),
        "updates": {} if options.only else updates(),
        "peak": peak,
        "accuracy": {} if options.only else accuracies(python, options.threads),
    }
    table = Table()
    fill(table, steps, extras)
    table.print()
    result = {"steps": steps, "gemm": gemm, **extras, "table": table.lines}
    pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n")
    print(f"all numbers: {options.output}")


if __name__ == "__main__":
    main()
