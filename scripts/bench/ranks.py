#!/usr/bin/env python3
"""Steps of several ranks beside one process with the same threads, and the sums between them.

    scripts/bench/ranks.py [--build release] [--ranks 2] [--rounds 4] [-o FILE]
    scripts/bench/ranks.py --model FILE [--bandwidth GB/s] [--latency US]

Needs mpirun (Open MPI or MPICH) on this machine, and MNIST and Fashion-MNIST where HALFSTEP_DATA says.

- Steps: one process with all threads, and `--ranks` ranks that share them, train the same config with
  the same global batch, in turns, forth and back; the ranks also with divided masters and slots
  (parallel.shard: optimizer). The ratio is of the best turns (samples.py).
- Sums: bench_all_reduce adds buffers over the ranks by MPI_Allreduce and by halfstep's sums, in turns
  in the same processes. Their share is the ratio of medians.
- Model: the time of a step on 1 to 1,024 ranks from those measurements; see predict().
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import machine
import samples
import targets
from programs import ROOT, config_path, output

# (config, samples of a step, policies, steps a turn, ranks' time over one process' at most)
WORKLOADS = [
    ("guide_4096", 1024, ("float32", "mixed_bfloat16"), 6, 1.10),
    ("mnist_cnn", 128, ("float32", "mixed_bfloat16"), 40, 1.05),
    ("fashion_cnn", 128, ("float32", "mixed_bfloat16"), 40, 1.05),
]
HIDDEN_SHARE = 0.7
BARE_SHARE = 0.8
SUMS = [4, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
# Sums of fewer bytes are bound by latency; the target is about bandwidth.
LARGE_SUM = 1 << 20
MODEL_RANKS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def launcher(ranks):
    """mpirun for `ranks` processes on this machine, and its environment."""
    environment = dict(os.environ)
    if os.geteuid() == 0:  # Open MPI asks root twice
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environment |= {"OMPI_MCA_rmaps_base_oversubscribe": "1"}
    return ["mpirun", "-np", str(ranks)], environment


# Modes of a workload, with their settings.
MODES = {"one": (), "ranks": (), "divided": ("parallel.shard=optimizer",)}


class Training:
    """A config on so many ranks with so many threads in all."""

    def __init__(self, program, config, batch, policy, ranks, threads, steps, added):
        words = ["train", config_path(config), "--json", "-q", "--policy", policy]
        words += ["--batch-size", batch, "--threads", max(1, threads // ranks)]
        settings = [f"training.max_steps={steps}", "data.validation_split=0", *added]
        words += [word for setting in settings for word in ("--set", setting)]
        start, self.environment = launcher(ranks) if ranks > 1 else ([], None)
        self.command = [*start, program, *words]
        self.ranks = ranks

    def turn(self):
        """One sample, with the block `parallel` of the report where there are several ranks."""
        with tempfile.TemporaryDirectory() as folder:
            words = [*self.command, "--run-dir", folder]
            start = time.perf_counter()
            report = json.loads(output(words, env=self.environment))
        wall = time.perf_counter() - start
        times = report["step_time"]
        sample = {"seconds": times["median"] * 1e-3, "mean": times["mean"] * 1e-3}
        sample |= {"steps": times["n"], "wall": wall, "peak": {}, "taken": 0.0, "stolen": 0.0}
        if self.ranks > 1:
            block = report["parallel"]
            sample["hidden_share"] = block["hidden_share"]
            for key in ("sent_bytes", "summing_seconds", "waited_seconds", "state_bytes"):
                sample[key] = block["each"][0][key]
            sample["bucket_bytes"] = report["config"]["resolved"]["parallel"]["bucket_mib"] * 2**20
        return sample


def steps(options, program):
    """{"config batch, policy": {one, ranks, divided: samples, goal}}"""
    found = {}
    for config, batch, policies, count, goal in WORKLOADS:
        if options.only and config not in options.only.split(","):
            continue
        for policy in policies:
            modes = {}
            for mode, added in MODES.items():
                ranks = 1 if mode == "one" else options.ranks
                modes[mode] = Training(
                    program, config, batch, policy, ranks, options.threads, count, added
                )
            result = {mode: [] for mode in modes} | {"goal": goal, "samples": batch}
            for turn in range(options.rounds):
                order = list(modes.items())
                for name, training in order if turn % 2 == 0 else reversed(order):
                    usage = machine.Usage()
                    sample = training.turn()
                    sample["taken"], sample["stolen"] = usage.taken(sample["wall"])
                    result[name].append(sample)
            name = f"{config} {batch}, {policy}"
            found[name] = result
            best = [f"{mode} {samples.best(result[mode])['seconds'] * 1e3:.1f} ms" for mode in MODES]
            say(f"{name}: {', '.join(best)}")
    return found


def sums(options):
    """[{bytes, ranks, library, bare, sum: seconds}]"""
    start, environment = launcher(options.ranks)
    program = ROOT / f"build/{options.build}/bin/bench_all_reduce"
    text = output([*start, program, *SUMS], env=environment)
    return [json.loads(line) for line in text.splitlines()]


def fill(run):
    """The table of targets of a run."""
    table = targets.Table()
    for name, result in run["steps"].items():
        one = samples.best(result["one"])["seconds"]
        for mode, words in (("ranks", ""), ("divided", ", masters and slots divided")):
            many = samples.best(result[mode])["seconds"]
            figure = f"{name}: time of {run['ranks']} ranks over one process{words}"
            table.add(figure, result["goal"], many / one, at_most=True)
            shares = [s["hidden_share"] for s in result[mode] if s["hidden_share"] is not None]
            measured = samples.median(shares) if shares else None
            table.add(f"{name}: share of sums hidden{words}", HIDDEN_SHARE, measured)
    for line in run["sums"]:
        share = samples.median(line["bare"]) / samples.median(line["sum"])
        target = BARE_SHARE if line["bytes"] >= LARGE_SUM else None
        table.add(f"sum of {line['bytes']} bytes: share of MPI_Allreduce's rate", target, share)
    return table.lines


def constants(run):
    """{latency: s a message, seconds_per_byte: of a byte that a rank sends} of the sums measured."""
    ranks = run["ranks"]
    small, large = run["sums"][0], run["sums"][-1]
    latency = samples.median(small["sum"]) / (2 * (ranks - 1))
    sent = 2 * (ranks - 1) / ranks * large["bytes"]
    return {"latency": latency, "seconds_per_byte": samples.median(large["sum"]) / sent}


def predict(ranks, step_seconds, gradient_bytes, bucket_bytes, latency, seconds_per_byte):
    """The parts of a step on `ranks` ranks, in seconds: {compute, sums, exposed, step}.

    One process computes the global batch in `step_seconds`, each of N ranks, which have as many
    threads each, in 1/N of it. A sum of V
    bytes of gradients sends 2 (N - 1) / N V bytes from each rank, in two halves of N - 1 messages for
    each bucket. Buckets travel while the backward pass, two thirds of the computation, goes on; the
    last one, of the first layers, can only follow it.
    """
    compute = step_seconds / ranks
    if ranks == 1:
        return {"compute": compute, "sums": 0.0, "exposed": 0.0, "step": compute}
    buckets = math.ceil(gradient_bytes / min(bucket_bytes, gradient_bytes / 4))
    sent = 2 * (ranks - 1) / ranks * gradient_bytes
    all_sums = sent * seconds_per_byte + buckets * 2 * (ranks - 1) * latency
    exposed = max(all_sums / buckets, all_sums - compute * 2 / 3)
    return {"compute": compute, "sums": all_sums, "exposed": exposed, "step": compute + exposed}


def model_text(run, link):
    """Tables of predict() for the workloads of a run; link: {latency, seconds_per_byte}."""
    lines = [
        f"latency {link['latency'] * 1e6:.1f} us a message,"
        f" {1e-9 / link['seconds_per_byte']:.1f} GB/s sent by a rank"
    ]
    for name, result in run["steps"].items():
        step = samples.best(result["one"])["seconds"]
        sent, bucket = (result["ranks"][0][key] for key in ("sent_bytes", "bucket_bytes"))
        gradients = sent / (2 * (run["ranks"] - 1) / run["ranks"])
        lines += ["", f"{name}: {gradients / 1e6:.1f} MB of gradients"]
        lines.append("ranks   same global batch: ms  speedup   same batch a rank: ms  efficiency")
        for ranks in MODEL_RANKS:
            sizes = (gradients, bucket, link["latency"], link["seconds_per_byte"])
            strong = predict(ranks, step, *sizes)["step"]
            weak = predict(ranks, step * ranks, *sizes)["step"]
            same = f"{strong * 1e3:22.2f} {step / strong:8.1f}"
            if ranks > result["samples"]:  # a rank would have none
                same = f"{'-':>22} {'-':>8}"
            lines.append(
                f"{ranks:5}   {same}   {weak * 1e3:21.1f} {step / weak * 100:9.0f} %"
            )
    return "\n".join(lines)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="release", help="preset whose programs are measured")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="in all")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each mode")
    parser.add_argument("--only", default="", help="comma-separated configs")
    parser.add_argument("-o", "--output", default=str(ROOT / "build/bench-ranks.json"))
    parser.add_argument("--model", help="predict from the numbers in this file, measure nothing")
    parser.add_argument("--bandwidth", type=float, help="GB/s that a rank sends; else as measured")
    parser.add_argument("--latency", type=float, help="us a message; else as measured")
    return parser.parse_args()


def main():
    options = arguments()
    if options.model:
        run = json.loads(pathlib.Path(options.model).read_text())
        link = constants(run)
        if options.bandwidth:
            link["seconds_per_byte"] = 1e-9 / options.bandwidth
        if options.latency:
            link["latency"] = options.latency * 1e-6
        print(model_text(run, link))
        return
    build = ["cmake", "--build", ROOT / f"build/{options.build}", "--target"]
    subprocess.run([*build, "halfstep", "bench_all_reduce"], check=True, stdout=sys.stderr)
    program = ROOT / f"build/{options.build}/bin/halfstep"
    described = machine.description()
    run = {"ranks": options.ranks, "threads": options.threads, "machine": described}
    run["sums"] = sums(options)
    run["steps"] = steps(options, program)
    every = [s for r in run["steps"].values() for mode in MODES for s in r[mode]]
    run["state"] = machine.state(every)
    run["table"] = fill(run)
    pathlib.Path(options.output).write_text(json.dumps(run, indent=1) + "\n")
    print(targets.text(run["table"]))
    print(f"{described['model']}, {described['processors']} processors, {run['sums'][0]['library']}")
    print(f"state of the processor: {run['state']['verdict']}; all numbers: {options.output}")


if __name__ == "__main__":
    main()
