#!/usr/bin/env python3
"""Two ranks on two GPUs against one process on one, through the program, mpirun and NCCL.

    ranks.py PROGRAM

Losses agree within the order of summation, and a repetition has the same bits, with sums in float32
and in bfloat16. Prints a line per check as parity.py does; exit status 1 when any failed.
"""

import os
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
    sys.exit(parity.failures > 0)


if __name__ == "__main__":
    main()
