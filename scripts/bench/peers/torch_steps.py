"""Training steps of a halfstep model in PyTorch: eager and compiled, float32 and bfloat16.

Data resident. Of each mode the fastest variant counts:
- images channels last or first;
- bfloat16 by autocast, whose casts of weights are cached over a step, or float32 tensors whose matmuls
  oneDNN computes in bfloat16 (set_float32_matmul_precision("medium") and its like for convolutions);
- compiled: the optimizer step is compiled too.
Prepacked weights exist for inference alone: a step changes the weights.
"""

import warnings

import network
import torch
from torch import nn
from torch_model import Model, optimizer_of


def set_products(dtype):
    """The arithmetic of float32 matmuls: "ieee" or "bf16"."""
    torch.set_float32_matmul_precision("medium" if dtype == "bf16" else "highest")
    convolutions = getattr(torch.backends.mkldnn, "conv", None)
    if convolutions is not None:
        convolutions.fp32_precision = dtype


def maker(task, last, autocast, products, compiled):
    """A function that makes the step of a variant."""

    def make():
        torch.manual_seed(1)
        set_products(products)
        image = len(task.input) == 3
        layout = torch.channels_last if image and last else torch.contiguous_format
        shape = task.input[-1:] + task.input[:-1] if image else task.input
        vocabulary = network.vocabulary(task)
        if vocabulary:
            x = torch.randint(0, vocabulary, [task.batch, *shape])
        else:
            x = torch.rand([task.batch, *shape]).contiguous(memory_format=layout)
        labels = torch.randint(0, task.classes, [task.batch])
        model = Model(task).train().to(memory_format=layout)
        optimizer = optimizer_of(model, task.optimizer)
        loss_of = nn.CrossEntropyLoss()

        def loss(x, labels):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                scores = model(x)
            return loss_of(scores.float(), labels)

        run = torch.compile(loss) if compiled else loss
        update = torch.compile(optimizer.step) if compiled else optimizer.step

        def step():
            set_products(products)
            optimizer.zero_grad(set_to_none=True)
            run(x, labels).backward()
            update()

        return step

    return make


def variants(task, precision, compiled):
    image = len(task.input) == 3
    made = {}
    # Compiling takes half a minute a variant: channels last alone, which oneDNN prefers.
    for last in ((True,) if compiled else (True, False)) if image else (False,):
        layout = ("channels last, " if last else "channels first, ") if image else ""
        if precision == "float32":
            ways = {"float32": (False, "ieee")}
        else:
            ways = {"autocast": (True, "ieee"), "matmuls in bfloat16": (False, "bf16")}
        for way, (autocast, products) in ways.items():
            made[layout + way] = maker(task, last, autocast, products, compiled)
    return made


def main():
    task = network.read_task()
    warnings.simplefilter("ignore")
    torch.set_num_threads(task.threads)
    modes = {}
    for precision in task.precisions:
        for compiled in (False, True):
            mode = f"torch {'compile' if compiled else 'eager'} {precision}"
            modes[mode] = variants(task, precision, compiled)
    network.serve({"PyTorch": torch.__version__.split("+")[0]}, modes)


if __name__ == "__main__":
    network.run(main)
