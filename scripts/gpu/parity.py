#!/usr/bin/env python3
"""Training on the GPU against training on the CPU, through the program.

    parity.py PROGRAM parity|scaling [--quick]

`parity`: small models under each policy start from the same weights, see the same batches and have
the same losses within tolerance; a second run on the GPU ends in the same bits, and so do one that
was left and resumed and one that launches each kernel by itself. `scaling`: the loss scale, the
skipped steps and the finite ones agree where gradients overflow. Prints a line per check,
`ok NAME: what was seen` or `FAIL NAME: what is wrong`; exit status 1 when any failed.
"""

import argparse
import concurrent.futures
import json
import math
import os
import subprocess
import sys
import tempfile

DENSE = """
    - {type: flatten}
    - {type: dense, units: 64, activation: relu}
    - {type: dense, units: 64, activation: relu}
"""
# Those that use the most libraries come first.
MODELS = {
    "cnn": """
    - {type: conv2d, filters: 8, kernel_size: 3, activation: relu}
    - {type: max_pooling2d}
    - {type: conv2d, filters: 16, kernel_size: 3, strides: 2, padding: same, activation: relu}
    - {type: flatten}
""",
    "batch_norm": """
    - {type: conv2d, filters: 8, kernel_size: 3, strides: 2, padding: same, use_bias: false}
    - {type: batch_normalization}
    - {type: relu}
    - {type: global_average_pooling2d}
""",
    "strided": """
    - {type: conv2d, filters: 16, kernel_size: 3, padding: same, activation: relu}
    - {type: conv2d, filters: 32, kernel_size: 3, strides: 2, padding: same, use_bias: false}
    - {type: batch_normalization}
    - {type: relu}
    - {type: conv2d, filters: 32, kernel_size: 3, padding: same, activation: relu}
    - {type: global_average_pooling2d}
""",
    "mlp": DENSE,
    "dropout": """
    - {type: flatten}
    - {type: dense, units: 70, activation: relu}
    - {type: dropout, rate: 0.3}
""",
    "layer_norm": """
    - {type: flatten}
    - {type: dense, units: 48}
    - {type: layer_normalization}
    - {type: relu}
""",
    "recurrent": """
    - {type: reshape, target_shape: [28, 28]}
    - {type: masking}
    - type: bidirectional
      layer: {type: lstm, units: 32, return_sequences: true, recurrent_dropout: 0.1}
    - {type: gru, units: 24, return_sequences: true}
    - {type: gru, units: 20, reset_after: false}
""",
}
OPTIMIZERS = {
    "mlp": "{type: rmsprop, learning_rate: 1e-3}",
    "dropout": "{type: adam, learning_rate: 1e-3, global_clipnorm: 1}",
    "layer_norm": "{type: adam, learning_rate: 1e-3}",
    "recurrent": "{type: adam, learning_rate: 1e-3}",
    "cnn": "{type: sgd, learning_rate: 0.05, momentum: 0.9}",
    "batch_norm": "{type: sgd, learning_rate: 0.05, momentum: 0.9, nesterov: true}",
    "strided": "{type: sgd, learning_rate: 0.05, momentum: 0.9}",
}
# Name: policy, flags for the GPU alone, and how far losses may be apart, relative to the CPU's.
POLICIES = {
    "float32": ("float32", [], 1e-3),
    "float32_tf32": ("float32", ["--set", "precision.float32_math=tf32"], 1e-2),
    "mixed_float16": ("mixed_float16", [], 2e-2),
    "mixed_bfloat16": ("mixed_bfloat16", [], 5e-2),
}

failures = 0


def report(ok, name, text):
    global failures
    failures += not ok
    print(f"{'ok' if ok else 'FAIL'} {name}: {text}", flush=True)


def config(layers, optimizer, batch=48):
    # 400 samples in batches of 48: the last batch of an epoch has 16.
    return f"""
data: {{name: synthetic_digits, train_samples: 400, test_samples: 100}}
model:
  input: [28, 28, 1]
  layers:{layers}    - {{type: dense, units: 10}}
    - {{type: softmax, dtype: float32}}
loss: sparse_categorical_crossentropy
optimizer: {optimizer}
training: {{epochs: 2, batch_size: {batch}}}
seed: 3
"""


def train(program, path, device, flags, launcher=()):
    """The report of a run. Raises RuntimeError with the program's message when there is none."""
    result = subprocess.run(
        [*launcher, program, "train", path, "--device", device, "--json", "--quiet", "--progress", "none",
         "--set", "report.warmup_steps=0", "--run-dir", tempfile.mkdtemp(prefix="halfstep_run_"),
         *flags],
        capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"exit {result.returncode}: {result.stderr.strip()[-400:]}")
    return json.loads(result.stdout)


def apart(a, b):
    """The largest relative distance between two lists of losses."""
    if len(a) != len(b):
        return math.inf
    return max(abs(x - y) / max(abs(x), 1e-6) for x, y in zip(a, b))


def check_recording(program, path, name, flags, recorded):
    """Steps launched as a captured graph against the same launches one by one."""
    launched = train(program, path, "cuda", [*flags, "--set", "device.recorded=false"])
    hashes = [run["reproducibility"]["state_hash"] for run in (recorded, launched)]
    report(hashes[0] == hashes[1], f"{name}/recorded", "replayed steps and launched ones, in bits")


def check_policy(program, path, model, word):
    policy, flags, allowed = POLICIES[word]
    name = f"{model}/{word}"
    flags = ["--policy", policy, *flags]
    try:
        cpu = train(program, path, "cpu", flags[:2])
        gpu = train(program, path, "cuda", flags)
        again = train(program, path, "cuda", flags)
        start = ("init_hash", "batch_order_hash")
        same_start = all(cpu["reproducibility"][k] == gpu["reproducibility"][k] for k in start)
        far = apart(cpu["history"]["loss"], gpu["history"]["loss"])
        report(same_start and far <= allowed, f"{name}/losses",
               f"apart by {far:.2e}, allowed {allowed:.0e}" + ("" if same_start else "; another start"))
        report(gpu["reproducibility"]["state_hash"] == again["reproducibility"]["state_hash"],
               f"{name}/same_bits", "two runs on the GPU")
        if policy == "mixed_float16":
            check_recording(program, path, name, flags, gpu)
    except (RuntimeError, ValueError) as error:
        report(False, name, str(error))


def check_resume(program, path, model):
    resumed = subprocess.run([program, "verify-resume", path, "--device", "cuda", "--quiet",
                              "--policy", "mixed_float16", "--at-step", "5"],
                             capture_output=True, text=True)
    report(resumed.returncode == 0, f"{model}/resume",
           (resumed.stdout + resumed.stderr).strip().replace("\n", " ")[-200:])


def check_parity(program, folder, models):
    """Several runs at a time: most of a run's time is that of opening the device."""
    with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        checks = []
        for model in models:
            path = f"{folder}/{model}.yaml"
            with open(path, "w", encoding="utf-8") as file:
                file.write(config(MODELS[model], OPTIMIZERS[model]))
            checks += [pool.submit(check_policy, program, path, model, word) for word in POLICIES]
            checks.append(pool.submit(check_resume, program, path, model))
        for check in checks:
            check.result()


SCALES = {
    # Overflows from the first step on, until the scale fits.
    "starts_too_high": ["precision.loss_scale.initial=2.0e9"],
    "grows_often": ["precision.loss_scale.growth_steps=3"],
    "halves_at_growth": ["precision.loss_scale.initial=1.0e9", "precision.loss_scale.growth_steps=2"],
    "fixed": ["precision.loss_scale.mode=fixed", "precision.loss_scale.initial=128"],
}


def check_scaling(program, folder):
    path = f"{folder}/scaling.yaml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(config(DENSE, OPTIMIZERS["mlp"]))
    for name, settings in SCALES.items():
        flags = ["--policy", "mixed_float16"]
        for setting in settings:
            flags += ["--set", setting]
        try:
            runs = [train(program, path, device, flags)["history"] for device in ("cpu", "cuda")]
        except (RuntimeError, ValueError) as error:
            report(False, name, str(error))
            continue
        cpu, gpu = runs
        same = all(cpu[k] == gpu[k] for k in ("loss_scale", "skipped_steps", "steps"))
        report(same, name, f"scale {gpu['loss_scale']}, skipped {gpu['skipped_steps']}"
               + ("" if same else f"; the CPU has {cpu['loss_scale']} and {cpu['skipped_steps']}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program")
    parser.add_argument("what", choices=["parity", "scaling"])
    parser.add_argument("--quick", action="store_true", help="a dense, a convolutional and a recurrent model")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="halfstep_parity_") as folder:
        # Runs are left where mkdtemp puts them, inside of this.
        tempfile.tempdir = folder
        if options.what == "parity":
            check_parity(options.program, folder, ["cnn", "mlp", "recurrent"] if options.quick else MODELS)
        else:
            check_scaling(options.program, folder)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
