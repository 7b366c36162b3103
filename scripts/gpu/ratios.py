#!/usr/bin/env python3
"""Step times of halfstep and PyTorch side by side, from the same run on the same GPU.

    ratios.py OWN.jsonl [TORCH.jsonl]

Lines of OWN: {"workload", "policy", "ms"}; of TORCH: the output of scripts/gpu/torch_steps.py. Prints
a table, then a line per target, `ok NAME: ...` or `FAIL NAME: ...`; exit status 1 when one is missed.
A ratio is PyTorch's time by ours: above 1, halfstep is faster.
"""

import json
import sys

# The lower bound of a step of guide_4096 with 16-bit matmuls on an H100, in milliseconds.
FLOOR_MS = 1.39
FLOOR_SHARE = 0.85

MODES = ("eager", "compile", "compile_graph", "graph")
# (workload, policy): at least this against eager, and against the best of the other modes.
TARGETS = {
    ("guide_4096", "mixed_float16"): (1.35, 1.10),
    ("guide_4096", "mixed_bfloat16"): (1.35, 1.10),
    ("guide_4096", "float32_tf32"): (1.1, 1.05),
    ("guide_4096", "float32"): (1.0, 1.0),
    ("guide_64", "mixed_float16"): (8.0, 1.5),
    ("mnist_cnn", "mixed_float16"): (1.3, 1.05),
    ("fashion_cnn", "mixed_float16"): (1.3, 1.05),
}
# Own times: this policy's by that one's, at least.
OWN_TARGETS = [
    ("guide_4096", "float32", "mixed_float16", 9.0),
    ("guide_4096", "float32_tf32", "mixed_float16", 1.6),
]
MOST_MS = {("guide_64", "mixed_float16"): 0.060}

failures = 0


def report(ok, name, text):
    global failures
    failures += not ok
    print(f"{'ok' if ok else 'FAIL'} {name}: {text}")


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def number(value):
    return "-" if value is None else f"{value:.3f}"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    own = {(r["workload"], r["policy"]): r["ms"] for r in lines(sys.argv[1]) if "ms" in r}
    beside = lines(sys.argv[2]) if len(sys.argv) > 2 else []
    torch = {(r["workload"], r["policy"], r["mode"]): r["ms"] for r in beside if "ms" in r}
    gpu = next((r["gpu"] for r in beside if "gpu" in r), "")
    on_h100 = "H100" in gpu

    def best(key):
        times = [torch[(*key, mode)] for mode in MODES[1:] if (*key, mode) in torch]
        return min(times, default=None)

    def by(time, mine):
        return None if time is None or mine is None else time / mine

    print(f"{'workload':<12} {'policy':<24} {'ms':>8} " + " ".join(f"{m:>13}" for m in MODES)
          + f" {'/eager':>7} {'/best':>7}")
    for key in sorted({*own, *((w, p) for w, p, _ in torch)}):
        times = [own.get(key), *(torch.get((*key, mode)) for mode in MODES)]
        ratios = [by(times[1], times[0]), by(best(key), times[0])]
        print(f"{key[0]:<12} {key[1]:<24} {number(times[0]):>8} "
              + " ".join(f"{number(t):>13}" for t in times[1:]) + " "
              + " ".join(f"{number(r):>7}" for r in ratios))
    if not torch:
        return 0
    for key, wanted in TARGETS.items():
        pairs = {"eager": torch.get((*key, "eager")), "best": best(key)}
        for (what, time), least in zip(pairs.items(), wanted):
            ratio = by(time, own.get(key))
            report(ratio is not None and ratio >= least, f"{key[0]}/{key[1]}/{what}",
                   f"{number(ratio)} times ours, wanted {least}")
    for workload, slow, fast, wanted in OWN_TARGETS:
        times = [own.get((workload, policy)) for policy in (slow, fast)]
        ratio = None if None in times else times[0] / times[1]
        report(ratio is not None and ratio >= wanted, f"{workload}/{slow} by {fast}",
               f"{number(ratio)}, wanted {wanted}")
    # Absolute times are those of one kind of GPU.
    if on_h100:
        for key, most in MOST_MS.items():
            mine = own.get(key)
            report(mine is not None and mine <= most, f"{key[0]}/{key[1]}/ms",
                   f"{number(mine)}, at most {most}")
        for policy in ("mixed_float16", "mixed_bfloat16"):
            mine = own.get(("guide_4096", policy))
            report(mine is not None and mine * FLOOR_SHARE <= FLOOR_MS, f"guide_4096/{policy}/floor",
                   f"{number(mine)} ms, {FLOOR_SHARE:.0%} of the floor is {FLOOR_MS / FLOOR_SHARE:.2f}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
