#!/usr/bin/env python3
"""Follows the recipes of CONTRIBUTING.md in a scratch copy of the checkout.

usage: run.py [--keep] [--folder FOLDER]

Adds a layer, an elementwise op, a CUDA kernel, a report field, a pass, a data format and a command by the
patches in this folder, one per recipe. Fails when an addition touches another number of files than
CONTRIBUTING.md states, when the copy does not build, and when the program or the tests that iterate over the
registries do not have the addition. The copy is FOLDER, by default build/recipes, and is removed at the end
unless --keep is given or something failed.
"""

import argparse
import csv
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GUIDE = "CONTRIBUTING.md"
# The preset of .ci/run, so that the compiler cache has the units that no addition touches.
PRESET = "ci"
TARGETS = ["halfstep", "halfstep_cuda_emulated", "test_backend", "test_cuda_run"]

# Each addition by itself: the kernels of the op in every instruction set and dtype against the reference,
# and its gradient against finite differences.
BACKEND_TESTS = "op table*,reference*,gradients*,functions*,vector*,fused elementwise*"
CUDA_TESTS = "device: each row*,device: the plugin has*"

CONFIG = """version: 1
name: recipes
seed: 7
data: {format: numbers, path: points.txt, validation_split: 0.25}
model:
  input: [4]
  layers:
    - {type: dense, units: 16, activation: gaussian}
    - {type: scale, factor: 0.5}
    - {type: reshape, target_shape: [4, 4]}
    - {type: flatten}
    - {type: dense, units: 2}
    - {type: softmax, dtype: float32}
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 1e-2}
training: {epochs: 8, batch_size: 16}
"""


class Failure(Exception):
    """A check that failed; the text says where to look."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def say(text):
    print(text, file=sys.stderr, flush=True)


def last_lines(text, count=30):
    return "\n".join(text.splitlines()[-count:])


# The recipes of the guide.


def stated_counts(guide):
    """Recipe name -> (files of lib/ and app/, files of tests/), from the guide's table."""
    row = re.compile(r"^\| \[(?:an?) ([^\]]+)\]\(#[^)]+\) \| (\d+) \| (\d+) \|", re.M)
    return {name.lower().replace(" ", "_"): (int(code), int(tests))
            for name, code, tests in row.findall(guide)}


def touched(patch):
    """The files that a patch changes or creates: of lib/ and app/, and of tests/."""
    files = re.findall(r"^diff --git a/\S+ b/(\S+)$", patch.read_text(), re.M)
    code = [file for file in files if file.startswith(("lib/", "app/"))]
    tests = [file for file in files if file.startswith("tests/")]
    check(len(code) + len(tests) == len(files),
          f"{patch.name} touches files outside of lib/, app/ and tests/: {', '.join(files)}")
    return code, tests


def check_counts(patches):
    stated = stated_counts((ROOT / GUIDE).read_text())
    names = {patch.stem for patch in patches}
    check(names == set(stated),
          f"the table in {GUIDE} has the recipes {sorted(stated)}, tests/recipes has {sorted(names)}")
    for patch in patches:
        code, tests = touched(patch)
        need, case = stated[patch.stem]
        check((len(code), len(tests)) == (need, case),
              f"{GUIDE} states {need} files of lib/ and app/ and {case} of tests/ for {patch.stem}; "
              f"tests/recipes/{patch.name} touches {len(code)} and {len(tests)}: "
              f"{', '.join(code + tests)}")
        say(f"{patch.stem}: {len(code)} files of lib/ and app/, {len(tests)} of tests/")


# The scratch copy.


def copy_checkout(copy):
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    for name in filter(None, tracked.stdout.decode().split("\0")):
        source, target = ROOT / name, copy / name
        if not source.is_file():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def apply(patch, copy):
    # Without the ceiling, git would take the copy for a folder of this checkout and ignore the patch.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(copy.parent)}
    done = subprocess.run(["git", "apply", "-C1", str(patch)], cwd=copy, env=environment,
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0,
          f"the recipe '{patch.stem}' does not apply any more:\n{done.stderr}"
          f"Make the addition by hand, along {GUIDE}, and write `git diff` to tests/recipes/{patch.name}.")


def in_copy(copy, command, text):
    """A command of scripts/lib.sh in the copy, with its output in a file."""
    log = copy / "build" / "recipes.log"
    log.parent.mkdir(exist_ok=True)
    with open(log, "w", encoding="utf-8") as file:
        done = subprocess.run(["bash", "-ec", f". scripts/lib.sh; {command}"], cwd=copy, stdout=file,
                              stderr=subprocess.STDOUT, check=False)
    output = log.read_text(errors="replace")
    errors = [line for line in output.splitlines() if "error" in line or "FAILED" in line]
    check(done.returncode == 0, f"{text}:\n" + "\n".join(errors[:20]) + "\n" + last_lines(output))
    return output


def build(copy):
    in_copy(copy, f"configure_preset {PRESET}; build_preset {PRESET} {' '.join(TARGETS)}",
            "the copy does not build with the additions")


# The additions at work.


class Program:
    def __init__(self, copy, folder):
        self.binary = copy / "build" / PRESET / "bin" / "halfstep"
        self.folder = folder

    def run(self, *words, status=0):
        done = subprocess.run([self.binary, *words], cwd=self.folder, capture_output=True, text=True,
                              check=False)
        check(done.returncode == status,
              f"halfstep {' '.join(words)}: exit status {done.returncode}, not {status}\n"
              f"{last_lines(done.stdout + done.stderr)}")
        return done.stdout if status == 0 else done.stderr

    def json(self, *words):
        return json.loads(self.run(*words, "--json"))


def write_points(path):
    """Two classes of points with four coordinates: inside of a sphere, and around it."""
    numbers = random.Random(7)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for sample in range(512):
            label = sample % 2
            direction = [numbers.gauss(0, 1) for _ in range(4)]
            length = sum(x * x for x in direction)**0.5
            radius = 2 * label + numbers.uniform(0.5, 1)
            writer.writerow([label, *(f"{x / length * radius:.6f}" for x in direction)])


def named(entries, name):
    return next((entry for entry in entries if entry["name"] == name), None)


def check_layer(program):
    entry = named(program.json("help", "layers")["entries"], "scale")
    check(entry is not None, "`halfstep help layers` does not list the layer scale")
    check(named(entry["arguments"], "factor") is not None, "the layer scale has no argument factor")
    schema = program.run("config", "schema")
    check('"layers.scale"' in schema, "the schema of configs does not have the layer scale")


def check_readme(copy):
    layer = (copy / "lib/nn/layers/scale.cc").read_text()
    check(layer in (ROOT / "docs/architecture.md").read_text(),
          "the layer of tests/recipes/layer.patch is not the one that docs/architecture.md shows")


def check_elementwise_op(program, copy):
    graph = program.run("explain", "run.yaml", "--dump-after", "append_updates")
    names = set(re.findall(r" = (\w+)\(", graph))
    check({"Gaussian", "GaussianGrad"} <= names,
          f"the graph of a step has neither Gaussian nor its gradient, only {sorted(names)}")
    run_tests(copy, "test_backend", BACKEND_TESTS)


def check_cuda_kernel(copy):
    run_tests(copy, "test_cuda_run", CUDA_TESTS)
    rows = (copy / "build" / PRESET / "bin" / "libhalfstep_cuda_emulated.so").read_bytes()
    check(b"cuda/transpose_matrix" in rows, "the plugin does not have the kernel")
    folder = "lib/backend/cuda/kernels"
    unit = f"{folder}/CMakeFiles/halfstep_cuda_kernels.dir/transpose.cu.o"
    known = subprocess.run(["cmake", "--build", f"build/{PRESET}", "--target", "help"], cwd=copy,
                           capture_output=True, text=True, check=True).stdout
    if "halfstep_cuda_kernels:" not in known:
        say("cuda_kernel: skipped: the compilation by nvcc, since no CUDA toolkit was found")
        return
    in_copy(copy, f"build_preset {PRESET} {unit}", "nvcc does not compile the CUDA kernel")


def run_tests(copy, name, cases):
    binary = copy / "build" / PRESET / "bin" / name
    for pattern in cases.split(","):
        # doctest succeeds where no name matches.
        listed = subprocess.run([binary, "--list-test-cases", f"--test-case={pattern}"],
                                cwd=copy, capture_output=True, text=True, check=True).stdout
        check(re.search(r"passing the current filters: [1-9]", listed), f"{name} has no test {pattern!r}")
    done = subprocess.run([binary, "--minimal", f"--test-case={cases}"],
                          cwd=copy, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{name} --test-case={cases!r}:\n{last_lines(done.stdout)}")


def check_report_field(program):
    report = program.json("doctor")
    check(report.get("processors", 0) >= 1, "the report of `doctor` does not have the field processors")
    path = program.folder / "doctor.json"
    path.write_text(json.dumps(report))
    program.run("report", "validate", path.name)
    check('"processors"' in program.run("report", "schema"), "the schema does not have processors")
    del report["processors"]
    path.write_text(json.dumps(report))
    check("processors" in program.run("report", "validate", path.name, status=2),
          "validate does not name the missing field")


def check_pass(program):
    def outcome(*flags):
        return named(program.json("explain", "run.yaml", "--passes", *flags)["passes"], "fuse_reshapes")

    listed = outcome()
    check(listed is not None, "`halfstep explain --passes` does not list fuse_reshapes")
    check(listed["outcome"] == "changed", f"fuse_reshapes left the graph {listed['outcome']}")
    check(listed["nodes_after"] < listed["nodes_before"], "fuse_reshapes removed no node")
    skipped = outcome("--skip-pass", "fuse_reshapes")
    check(skipped["outcome"] == "skipped", f"--skip-pass: fuse_reshapes {skipped['outcome']}")


def check_data_format(program):
    check(named(program.json("help", "data")["entries"], "numbers") is not None,
          "`halfstep help data` does not describe the format numbers")
    info = program.run("data", "info", "points.txt", "--format", "numbers")
    check("512 training" in info, f"`data info` does not find the 512 samples:\n{info}")
    (program.folder / "bad.txt").write_text("0,1,2\n1,x,2\n")
    error = program.run("data", "info", "bad.txt", "--format", "numbers", status=3)
    check("bad.txt" in error and "line 2" in error, f"the error does not name file and line:\n{error}")


def check_training(program):
    program.run("train", "run.yaml", "--run-dir", "run", "--threads", "1", "--quiet")
    report = json.loads((program.folder / "run" / "report.json").read_text())
    program.run("report", "validate", "run/report.json")
    accuracy = report["history"]["val_accuracy"][-1]
    check(accuracy > 0.9, f"the run with the new layer, op and format has an accuracy of {accuracy} only")
    say(f"training: validation accuracy {accuracy:.3f} after {len(report['history']['epoch'])} epochs")


def check_command(program):
    check("  ops " in program.run("--help"), "`halfstep --help` does not list the command ops")
    check("PREFIX" in program.run("ops", "--help"), "`halfstep ops --help` does not describe PREFIX")
    check(program.run("ops", "Gaussian").split() == ["Gaussian", "GaussianGrad"],
          "`halfstep ops Gaussian` does not list both ops")
    check("'ops')" in program.run("completion", "bash"), "the completion does not have ops")


def check_pages(copy):
    """The generated pages need no edit by hand."""
    script = f"scripts/reference.sh build/{PRESET}/bin/halfstep"
    in_copy(copy, f"{script}; scripts/reference.sh --check build/{PRESET}/bin/halfstep",
            "the reference pages cannot be generated")
    pages = {page.stem: page.read_text() for page in (copy / "docs").glob("*.md")}
    for page, text in (("layers", "\n### scale\n"), ("data", "\n### numbers\n"), ("config", "one of numbers, csv, npz,"),
                       ("ops", "\n## Gaussian\n"), ("reports", "\n| `processors` |")):
        check(text in pages[page], f"docs/{page}.md does not have {text.strip()!r}")
    for op, kernels in (("Gaussian", ("vector/map", "cuda/unary")),
                        ("Transpose", ("cuda/transpose_matrix", "cuda/transpose"))):
        entry = pages["ops"].split(f"\n## {op}\n")[1].split("\n## ")[0]
        for kernel in kernels:
            check(kernel in entry, f"docs/ops.md names no kernel {kernel} of {op}")


def follow(copy, folder):
    patches = sorted(HERE.glob("*.patch"))
    check_counts(patches)
    copy_checkout(copy)
    for patch in patches:
        apply(patch, copy)
    check_readme(copy)
    start, spent = time.monotonic(), os.times().children_user
    build(copy)
    say(f"built in {time.monotonic() - start:.0f} s, {os.times().children_user - spent:.0f} s of processor time")
    folder.mkdir()
    (folder / "run.yaml").write_text(CONFIG)
    write_points(folder / "points.txt")
    program = Program(copy, folder)
    for name, run in (("layer", lambda: check_layer(program)),
                      ("data format", lambda: check_data_format(program)),
                      ("command", lambda: check_command(program)),
                      ("report field", lambda: check_report_field(program)),
                      ("pass", lambda: check_pass(program)),
                      ("training", lambda: check_training(program)),
                      ("reference pages", lambda: check_pages(copy)),
                      ("elementwise op", lambda: check_elementwise_op(program, copy)),
                      ("CUDA kernel", lambda: check_cuda_kernel(copy))):
        start = time.monotonic()
        run()
        say(f"{name}: ok ({time.monotonic() - start:.0f} s)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave the scratch copy")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "recipes")
    flags = parser.parse_args()
    folder = flags.folder.resolve()
    copy, runs = folder / "checkout", folder / "runs"
    for old in (copy, runs):
        shutil.rmtree(old, ignore_errors=True)
    copy.mkdir(parents=True)
    try:
        follow(copy, runs)
    except Failure as failure:
        say(f"error: {failure}\nThe scratch copy is {copy}.")
        return 1
    if not flags.keep:
        shutil.rmtree(copy)
        shutil.rmtree(runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
