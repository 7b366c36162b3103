#!/usr/bin/env python3
"""Two ranks on two GPUs against one process on one, through the program, mpirun and NCCL.

    ranks.py PROGRAM

Losses agree within the order of summation, and a repetition has the same bits, with sums in float32
and in bfloat16. A rank whose other one is killed ends by itself, with a captured
step in NCCL. Prints a line per check as parity.py does; exit status 1 when any failed.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile

import parity

# As root in a container, with more ranks than processors.
LAUNCHER = ["env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
            "OMPI_MCA_rmaps_base_oversubscribe=1", "mpirun", "-np", "2"]
# Name: flags, and how far losses may be apart.
SUMS = {"float32": (["--policy", "float32"], 1e-4),
        "mixed_float16": (["--policy", "mixed_float16"], 2e-2),
        "bfloat16_sums": (["--policy", "float32", "--set", "parallel.all_reduce_dtype=bfloat16"], 2e-2)}
# Rank 1 is killed after so many seconds, and mpirun leaves the other one alone.
KILLED_AFTER = 12
LOSING = ["env", "OMPI_MCA_orte_enable_recovery=1", *LAUNCHER[1:], "sh", "-c",
          f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then exec timeout -s KILL {KILLED_AFTER} "$@"; fi; exec "$@"',
          "sh"]


def check_lost(program, path, folder):
    run_dir = os.path.join(folder, "lost")
    process = subprocess.Popen(
        [*LOSING, program, "train", path, "--device", "cuda", "--quiet", "--progress", "none", "--run-dir",
         run_dir, "--set", "training.epochs=1000000", "--set", "training.checkpoint_every={steps: 100000}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        _, said = process.communicate(timeout=KILLED_AFTER + 25)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        parity.report(False, "lost_rank", "the rank that is left does not end")
        return
    with open(os.path.join(run_dir, "report.json"), encoding="utf-8") as file:
        report = json.load(file)
    parity.report(report["status"] == "rank_lost", "lost_rank",
                  f"{report['status']}: {report.get('message', said.strip()[-200:])}")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ranks.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(parity.config(parity.MODELS["mlp"], parity.OPTIMIZERS["dropout"]))
        for name, (flags, allowed) in SUMS.items():
            try:
                one = parity.train(program, path, "cuda", flags)
                two, again = (parity.train(program, path, "cuda", flags, LAUNCHER)
                              for _ in range(2))
            except (RuntimeError, ValueError) as error:
                parity.report(False, name, str(error))
                continue
            far = parity.apart(one["history"]["loss"], two["history"]["loss"])
            parity.report(two["run"]["rank_count"] == 2 and far <= allowed, f"{name}/losses",
                          f"apart by {far:.2e}, allowed {allowed:.0e}")
            hashes = [run["reproducibility"]["state_hash"] for run in (two, again)]
            parity.report(hashes[0] == hashes[1], f"{name}/same_bits", "two runs of two ranks")
        check_lost(program, path, folder)
    sys.exit(parity.failures > 0)


if __name__ == "__main__":
    main()
