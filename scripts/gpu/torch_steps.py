#!/usr/bin/env python3
"""The time of a training step in PyTorch, for the workloads that halfstep is compared on.

    torch_steps.py [--workload NAME]... [--seconds LIMIT] [--ceilings]

The data set is resident on the GPU and each step gathers its batch there by a shuffled index, as
halfstep does. Modes: `eager` (autocast and GradScaler as PyTorch's pages show them), `compile`
(torch.compile of the forward pass and the loss), `graph` (a CUDA graph of the whole step; under
float16 of the forward and backward pass, for GradScaler looks at the device between those and the
update). Prints a JSON line per case: the median of several rounds of steps, in milliseconds. A case
that fails says so and the next one follows; none is begun after LIMIT seconds.
"""

import argparse
import contextlib
import json
import statistics
import sys
import time

import torch
from torch import nn

CLASSES = 10
SAMPLES = 48000
ROUNDS = 5
POLICIES = ("mixed_float16", "mixed_bfloat16", "float32_tf32", "float32")


def mlp(width):
    return nn.Sequential(nn.Flatten(), nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width),
                         nn.ReLU(), nn.Linear(width, CLASSES))


def small_cnn():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128),
                         nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, CLASSES))


def norm_cnn():
    def block(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
                nn.ReLU()]

    return nn.Sequential(*block(1, 32), nn.MaxPool2d(2), *block(32, 64), nn.MaxPool2d(2),
                         *block(64, 128), nn.Dropout(0.1), nn.Flatten(), nn.Linear(6272, 128),
                         nn.ReLU(), nn.Dropout(0.25), nn.Linear(128, CLASSES))


def rmsprop(parameters):
    return torch.optim.RMSprop(parameters, lr=1e-3, alpha=0.9, eps=1e-7, capturable=True)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=2e-3, eps=1e-7, fused=True, capturable=True)


# name: (model, optimizer, batch, steps per round). The configs of the same names say the same.
WORKLOADS = {
    "guide_4096": (lambda: mlp(4096), rmsprop, 8192, 20),
    "guide_64": (lambda: mlp(64), rmsprop, 128, 300),
    "mnist_cnn": (small_cnn, adam, 1024, 40),
    "fashion_cnn": (norm_cnn, adam, 1024, 40),
}


class Step:
    """One training step: gather, forward, loss, backward, update."""

    def __init__(self, workload, policy, mode):
        build, make_optimizer, self.batch, _ = WORKLOADS[workload]
        torch.manual_seed(1)
        tf32 = policy == "float32_tf32"
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = True
        self.dtype = {"mixed_float16": torch.float16, "mixed_bfloat16": torch.bfloat16}.get(policy)
        self.model = build().cuda().to(memory_format=torch.channels_last)
        self.optimizer = make_optimizer(self.model.parameters())
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.dtype == torch.float16)
        self.images = torch.randint(0, 256, (SAMPLES, 1, 28, 28), dtype=torch.uint8, device="cuda")
        self.labels = torch.randint(0, CLASSES, (SAMPLES,), device="cuda")
        self.order = torch.randperm(SAMPLES, device="cuda")
        self.index = self.order[:self.batch].clone()
        self.cursor = 0
        self.loss = self.forward
        if mode == "compile":
            self.loss = torch.compile(self.forward)
        self.graph = None
        if mode == "graph":
            self.capture()

    def forward(self, images, labels):
        context = contextlib.nullcontext()
        if self.dtype is not None:
            context = torch.autocast("cuda", dtype=self.dtype)
        with context:
            x = images.to(memory_format=torch.channels_last).float() / 255
            return nn.functional.cross_entropy(self.model(x), labels)

    def backward(self):
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


def measure(workload, policy, mode):
    step = Step(workload, policy, mode)
    count = WORKLOADS[workload][3]
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
    """What the GPU does at most: `work` units per run, by the median of rounds."""
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
    parser.add_argument("--workload", action="append", choices=list(WORKLOADS))
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--ceilings", action="store_true")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda,
                      "cudnn": torch.backends.cudnn.version(),
                      "gpu": torch.cuda.get_device_name()}), flush=True)
    if options.ceilings:
        ceilings()
    # What takes longest to prepare comes last.
    cases = [(mode, workload, policy) for mode in ("eager", "graph", "compile")
             for workload in options.workload or WORKLOADS for policy in POLICIES]
    end = time.monotonic() + options.seconds
    for mode, workload, policy in cases:
        case = {"workload": workload, "policy": policy, "mode": mode}
        if time.monotonic() > end:
            print(json.dumps({**case, "error": "no time left"}), flush=True)
            continue
        try:
            median, times = measure(workload, policy, mode)
            print(json.dumps({**case, "ms": median, "rounds": times}), flush=True)
        except Exception as error:  # any failure of a case is a result of that case
            print(json.dumps({**case, "error": str(error)[:300]}), flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
