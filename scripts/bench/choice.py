#!/usr/bin/env python3
"""How far the cost model's choices are from the fastest kernel, on shapes it has not measured.

    scripts/bench/choice.py [FILE...] [--json FILE]

For every shape in a table of measured times (lib/backend/cpu/costs/*.txt, or one of `halfstep tune`),
the samples of that shape are left out, the model predicts each kernel from the others, as
lib/backend/cost_model.cc does, and the kernel it would choose is looked up in the samples left out. The
regret is the chosen kernel's measured time over the least measured time. On the measured shapes
themselves the choice is the fastest by construction. Nothing is run, so that the table of any processor
can be checked on any machine.

Prints, per kind of op and dtype: shapes, the share of them within 10 % of the fastest kernel, the
seconds lost by all choices over the seconds of the fastest kernels, and the worst shape.
"""

import argparse
import collections
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALLOWED = 1.10


def read(path):
    """`{(kind, dtype, products): {shape: {kernel: seconds}}}`; a kernel that measures any number of
    partial products is listed under each."""
    rows = []
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        kind, dtype, products, *rest = line.split(maxsplit=9)
        shape = tuple(int(extent) for extent in rest[:5])
        rows.append((kind, dtype, int(products), shape, float(rest[5]), rest[6]))
    tables = collections.defaultdict(lambda: collections.defaultdict(dict))
    numbers = collections.defaultdict(set)
    for kind, dtype, products, *_ in rows:
        if products:
            numbers[kind, dtype].add(products)
    for kind, dtype, products, shape, seconds, kernel in rows:
        for p in [products] if products else numbers[kind, dtype] or {0}:
            tables[kind, dtype, p][shape][kernel] = seconds
    return tables


def operations(kind, shape):
    """Proportional to Workload::flops."""
    matmul = kind.startswith("matmul") or kind == "pack"
    return math.prod(shape[:2] if matmul else shape[:4])


def predicted(kind, samples, shape):
    """Seconds by inverse distance weighting over `samples`, {shape: seconds}; see CostModel::seconds."""
    weights = logarithms = 0.0
    for other, seconds in samples.items():
        squared = sum(math.log2(a / b) ** 2 for a, b in zip(other, shape))
        weight = 1 / squared**2
        weights += weight
        logarithms += weight * math.log(seconds / operations(kind, other))
    return operations(kind, shape) * math.exp(logarithms / weights)


def regrets(kind, table):
    """[(regret, shape, chosen kernel, its seconds, fastest kernel, its seconds)]"""
    by_kernel = collections.defaultdict(dict)
    for shape, times in table.items():
        for kernel, seconds in times.items():
            by_kernel[kernel][shape] = seconds
    result = []
    for shape, times in table.items():
        guesses = {}
        for kernel in times:
            others = {s: t for s, t in by_kernel[kernel].items() if s != shape}
            if others:
                guesses[kernel] = predicted(kind, others, shape)
        if len(guesses) < 2:
            continue
        chosen = min(guesses, key=guesses.get)
        best = min(guesses, key=times.get)
        result.append((times[chosen] / times[best], shape, chosen, times[chosen], best, times[best]))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, help="write the figures here too")
    options = parser.parse_args()
    files = options.files or sorted((ROOT / "lib/backend/cpu/costs").glob("*.txt"))
    report = []
    for path in files:
        print(f"{path.name}: {path.read_text().splitlines()[0].lstrip('# ')}")
        for (kind, dtype, products), table in sorted(read(path).items()):
            found = regrets(kind, table)
            if not found:
                continue
            within = sum(r[0] <= ALLOWED for r in found) / len(found)
            lost = sum(r[3] for r in found) / sum(r[5] for r in found)
            worst = max(found)
            name = dtype if products <= 1 else f"{dtype} x{products}"
            print(
                f"  {kind:24} {name:12} {len(found):4} shapes, {within:4.0%} within 10 %, "
                f"seconds {lost:.3f} of the fastest; worst {worst[0]:.2f}: "
                f"{' '.join(map(str, worst[1]))}, {worst[2]} {worst[3] * 1e6:.3g} us "
                f"for {worst[4]} {worst[5] * 1e6:.3g} us"
            )
            report.append(
                {
                    "table": path.name,
                    "kind": kind,
                    "dtype": name,
                    "shapes": len(found),
                    "within_10_percent": within,
                    "seconds_over_fastest": lost,
                    "worst": {"regret": worst[0], "shape": worst[1], "chosen": worst[2], "fastest": worst[4]},
                }
            )
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
