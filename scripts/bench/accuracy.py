#!/usr/bin/env python3
"""Writes docs/accuracy.md: the accuracy of shipped configs in 32 and in 16 bits.

    scripts/bench/accuracy.py [REPORT.json...]   adds reports of `halfstep compare --json`, writes the page
    scripts/bench/accuracy.py --check            exit status 1 when the page, or the comment of a config,
                                                 is not up to date with the reports

A report is kept in short, docs/benchmarks/accuracy/CONFIG.json; a newer one replaces it. The comment
at the top of each config quotes sentence().
"""

import json
import pathlib
import sys

from page import short
from programs import ROOT

FOLDER = ROOT / "docs/benchmarks/accuracy"
PAGE = ROOT / "docs/accuracy.md"
POLICIES = ["float32", "mixed_bfloat16", "mixed_float16", "rewrite:bfloat16", "rewrite:float16"]
WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}


def compact(report):
    """The figures of a compare report that the page shows."""
    def interval(value):
        return value and {"mean": value["mean"], "ci95": value["ci95"]}

    # The metric of a language model is its perplexity.
    metric = "test_perplexity"
    if metric not in report["policies"][0]["metrics"]:
        metric = report["metric"]

    context = report["context"]
    found = {row["policy"]: row for row in report["policies"]}
    if missing := [name for name in POLICIES if name not in found]:
        sys.exit(f"a report without {', '.join(missing)}: compare with --policies {','.join(POLICIES)}")
    if failed := [name for name in POLICIES if found[name]["diverged"]]:
        sys.exit(f"diverged under {', '.join(failed)}: the page has finished runs only")
    return short({
        "date": context["date"][:10],
        "device": context["device"],
        "processor": context["cpu"]["model"],
        "isa": context["cpu"]["isa"][-1],
        "threads": context["threads"],
        "version": context["library_version"],
        "commit": context["git_commit"],
        "metric": metric,
        "seeds": report["seeds"],
        "epochs": report["config"]["resolved"]["training"]["epochs"],
        "policies": {name: {"skipped": found[name]["skipped_steps"],
                            "value": interval(found[name]["metrics"][metric]),
                            "delta": interval(found[name]["metrics"][metric]["delta"])}
                     for name in POLICIES},
    }, digits=6)


def write_run(path, run):
    """One line for each policy, so that a change is readable."""
    head = [f'"{key}": {json.dumps(value)}' for key, value in run.items() if key != "policies"]
    rows = ",\n  ".join(f'"{name}": {json.dumps(row)}' for name, row in run["policies"].items())
    path.write_text("{" + ",\n ".join([*head, f'"policies": {{\n  {rows}\n }}']) + "}\n",
                    encoding="utf-8")


def decimals(run):
    """Decimals of a fraction; a perplexity has fewer."""
    return 4 if run["policies"]["float32"]["value"]["mean"] < 1 else 3


def half_width_of(value):
    """Of the 95 % interval, which is symmetric."""
    return value["ci95"][1] - value["mean"]


def sentence(run):
    """The figure of a config in its own comment."""
    places = decimals(run)
    values = [row["value"] for row in run["policies"].values()]
    means = sorted(f"{value['mean']:.{places}f}" for value in values)
    half_width = max(map(half_width_of, values))
    seeds = WORDS[len(run["seeds"])]
    reached = means[0] if means[0] == means[-1] else f"{means[0]} to {means[-1]}"
    metric = run["metric"].replace("_", " ")
    if half_width == 0:
        return (f"Reaches a {metric} of {reached} in each run: {seeds} seeds in float32 and under each 16-bit"
                " policy and rewrite (docs/accuracy.md).")
    return (f"Reaches a {metric} of {reached}, the means of {seeds} seeds in float32 and under each 16-bit"
            f" policy and rewrite (95 %: +- {half_width:.{places}f} at most; docs/accuracy.md).")


def quoted(name):
    """The comment at the top of a config, as one line."""
    words = []
    for line in (ROOT / f"configs/{name}.yaml").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        words += line[1:].split()
    return " ".join(words)


def cell(value, places, sign=""):
    return f"{value['mean']:{sign}.{places}f} ± {half_width_of(value):.{places}f}"


def rows(runs, column, policies, sign=""):
    lines = [f"| config | metric | {' | '.join(policies)} |", "|" + "---|" * (len(policies) + 2)]
    for name, run in runs.items():
        cells = [cell(run["policies"][policy][column], decimals(run), sign) for policy in policies]
        lines.append(f"| [{name}](../configs/{name}.yaml) | {run['metric']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def measured(name, run):
    skipped = [f"{policy} {row['skipped']}" for policy, row in run["policies"].items() if row["skipped"]]
    return (f"| {name} | {run['date']} | {run['device']}, {run['processor']}, {run['isa']}, threads: {run['threads']}"
            f" | {', '.join(map(str, run['seeds']))} | {run['epochs']} | {', '.join(skipped) or 'none'} |")


def page(runs):
    shipped = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))
    missing = [name for name in shipped if name not in runs]
    return f"""# Accuracy of the shipped configs

Written by `scripts/bench/accuracy.py` from reports of `halfstep compare`; do not edit by hand.

Each config was trained to its end with each seed under each policy and rewrite:

    halfstep compare configs/CONFIG.yaml --seeds 3 --json \\
      --policies {",".join(POLICIES)}

Figures are means over seeds ± half of the 95 % interval of Student's t, which is wide for few seeds. A policy's
run and float32's with the same seed have the same initial weights and batches, so their difference
mostly has a narrower interval than either. [Measuring](measuring.md) says how to read them.

Not measured in this way: {", ".join(missing) or "none"}.

## Reached

{rows(runs, "value", POLICIES)}

## Differences from float32

{rows(runs, "delta", POLICIES[1:], "+")}

## How they were measured

| config | date | device | seeds | epochs | skipped steps, all seeds |
|---|---|---|---|---|---|
""" + "\n".join(measured(name, run) for name, run in runs.items()) + "\n"


def main(arguments):
    check = "--check" in arguments
    for path in (word for word in arguments if word != "--check"):
        report = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        name = report["config"]["resolved"]["name"]
        FOLDER.mkdir(parents=True, exist_ok=True)
        write_run(FOLDER / f"{name}.json", compact(report))
    runs = {path.stem: json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(FOLDER.glob("*.json"))}
    text = page(runs)
    stale = [f"configs/{name}.yaml: its comment must say: {sentence(run)}"
             for name, run in runs.items() if sentence(run) not in quoted(name)]
    if not check:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        stale.append(f"{PAGE} is not what the reports give: scripts/bench/accuracy.py writes it")
    print("\n".join(stale), end="\n" if stale else "", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
