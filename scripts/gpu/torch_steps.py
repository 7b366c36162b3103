#!/usr/bin/env python3
"""The time of a training step in PyTorch, for the workloads that halfstep is compared on.

    torch_steps.py PROGRAM [--workload NAME]... [--seconds LIMIT] [--ceilings]

PROGRAM is halfstep, which reads the configs.
The data set is resident on the GPU and each step gathers its batch there by a shuffled index, as
halfstep does. Modes: `eager` (autocast and GradScaler as PyTorch's pages show them), `compile`
(torch.compile of the forward pass and the loss), `compile_graph` (the same with CUDA graphs: mode
"reduce-overhead"), `graph` (a CUDA graph of the whole step; under
float16 of the forward and backward pass, for GradScaler looks at the device between those and the
update). Prints a JSON line per case: the median of several rounds of steps, in milliseconds. A case
that fails says so and the next one follows; none is begun after LIMIT seconds.
"""

import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/bench/peers"))

import network  # noqa: E402
import torch_model  # noqa: E402

SAMPLES = 48000
ROUNDS = 5
# Seconds that the first case of a mode may take.
FIRST_SECONDS = {"eager": 5, "graph": 5, "compile": 40, "compile_graph": 40}
POLICIES = ("mixed_float16", "mixed_bfloat16", "float32_tf32", "float32")


# name: (batch, steps per round). The model and the optimizer are those of the config of that name.
WORKLOADS = {
    "guide_4096": (8192, 20),
    "guide_64": (128, 300),
    "mnist_cnn": (1024, 40),
    "fashion_cnn": (1024, 40),
    "lstm_rows": (128, 100),
    "transformer_patches": (128, 100),
    "cifar10_resnet": (256, 20),
}


def resolved(program, workload):
    """The resolved config, from the report of the shortest benchmark."""
    command = [program, "bench", ROOT / f"configs/{workload}.yaml", "--synthetic", "--json", "--quiet",
               "--device", "cpu", "--batch-size", "2", "--warmup", "0", "--steps", "1", "--repeat", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return network.network_of(json.loads(done.stdout)["config"]["resolved"])


class Step:
    """One training step: gather, forward, loss, backward, update."""

    def __init__(self, task, batch, policy, mode):
        self.batch = batch
        torch.manual_seed(1)
        tf32 = policy == "float32_tf32"
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = True
        self.dtype = {"mixed_float16": torch.float16, "mixed_bfloat16": torch.bfloat16}.get(policy)
        self.model = torch_model.Model(task).train().cuda()
        shape = task.input
        if len(shape) == 3:
            shape = shape[-1:] + shape[:-1]
            self.model = self.model.to(memory_format=torch.channels_last)
        self.optimizer = torch_model.optimizer_of(self.model, task.optimizer, capturable=True)
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.dtype == torch.float16)
        self.images = torch.randint(0, 256, (SAMPLES, *shape), dtype=torch.uint8, device="cuda")
        self.labels = torch.randint(0, task.classes, (SAMPLES,), device="cuda")
        self.order = torch.randperm(SAMPLES, device="cuda")
        self.index = self.order[:self.batch].clone()
        self.cursor = 0
        self.loss = self.forward
        if mode == "compile":
            self.loss = torch.compile(self.forward)
        if mode == "compile_graph":
            self.loss = torch.compile(self.forward, mode="reduce-overhead")
        self.graph = None
        if mode == "graph":
            self.capture()

    def forward(self, images, labels):
        context = contextlib.nullcontext()
        if self.dtype is not None:
            context = torch.autocast("cuda", dtype=self.dtype)
        with context:
            if images.dim() == 4:
                images = images.to(memory_format=torch.channels_last)
            x = images.float() / 255
            return nn.functional.cross_entropy(self.model(x), labels)

    def backward(self):
        # Results of the previous step's graphs are not read any more.
        torch.compiler.cudagraph_mark_step_begin()
        loss = self.loss(self.images[self.index], self.labels[self.index])
        self.scaler.scale(loss).backward()

    def update(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def whole(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.backward()
        self.update()

    def capture(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(4):
                self.whole()
        torch.cuda.current_stream().wait_stream(stream)
        self.optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.backward()
            if not self.scaler.is_enabled():
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)

    def __call__(self):
        if self.cursor + self.batch > SAMPLES:
            self.cursor = 0
        self.index.copy_(self.order[self.cursor:self.cursor + self.batch])
        self.cursor += self.batch
        if self.graph is None:
            self.whole()
            return
        self.graph.replay()
        if self.scaler.is_enabled():
            self.update()


def measure(task, workload, policy, mode):
    batch, count = WORKLOADS[workload]
    step = Step(task, batch, policy, mode)
    for _ in range(max(10, count // 4)):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / count * 1e3)
    return statistics.median(times), times


def ceiling(name, unit, work, run, count=20):
    """The peak rate of the GPU: `work` units per run, by the median of rounds."""
    for _ in range(3):
        run()
    rates = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            run()
        torch.cuda.synchronize()
        rates.append(work * count / (time.perf_counter() - begin))
    print(json.dumps({"ceiling": name, "value": statistics.median(rates), "unit": unit}), flush=True)


def ceilings():
    x = torch.empty(1 << 29, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    ceiling("copy", "TB/s", 2 * x.numel() / 1e12, lambda: y.copy_(x))
    n = 8192
    for name, dtype, tf32 in (("bfloat16", torch.bfloat16, False), ("float16", torch.float16, False),
                              ("tf32", torch.float32, True), ("float32", torch.float32, False)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a = torch.randn(n, n, device="cuda").to(dtype)
        b = torch.randn(n, n, device="cuda").to(dtype)
        ceiling(f"product {name}", "TFLOP/s", 2 * n**3 / 1e12, lambda: a @ b, 10)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program")
    parser.add_argument("--workload", action="append", choices=list(WORKLOADS))
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--ceilings", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, help="file for the lines, instead of the terminal")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    if options.out:
        sys.stdout = options.out.open("w", encoding="utf-8")
    print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda,
                      "cudnn": torch.backends.cudnn.version(),
                      "gpu": torch.cuda.get_device_name()}), flush=True)
    if options.ceilings:
        ceilings()
    workloads = options.workload or list(WORKLOADS)
    tasks = {workload: resolved(options.program, workload) for workload in workloads}
    # The modes that compile take ten times as long: they come last, the policies of 16 bits first.
    cases = [(mode, workload, policy) for modes in (("eager", "graph"), ("compile_graph",), ("compile",))
             for policy in POLICIES for workload in workloads for mode in modes]
    end = time.monotonic() + options.seconds
    longest = {}
    for mode, workload, policy in cases:
        case = {"workload": workload, "policy": policy, "mode": mode}
        begin = time.monotonic()
        # A case that would not end in time is not begun.
        if begin + longest.get(mode, FIRST_SECONDS[mode]) > end:
            print(json.dumps({**case, "error": "no time left"}), flush=True)
            continue
        try:
            median, times = measure(tasks[workload], workload, policy, mode)
            print(json.dumps({**case, "ms": median, "rounds": times}), flush=True)
        except Exception as error:  # any failure of a case is a result of that case
            print(json.dumps({**case, "error": str(error)[:300]}), flush=True)
        longest[mode] = max(longest.get(mode, 0), time.monotonic() - begin)
        # A model of another structure would count as a recompilation, of which there are at most 8.
        torch.compiler.reset()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
