"""Training steps of a halfstep model in PyTorch: eager and compiled, float32 and autocast.

Data resident, channels last.
"""

import warnings

import network
import torch
from torch import nn
from torch_model import Model, optimizer_of


def main():
    task = network.read_task()
    warnings.simplefilter("ignore")
    torch.set_num_threads(task.threads)
    torch.manual_seed(1)
    image = len(task.input) == 3
    shape = task.input[-1:] + task.input[:-1] if image else task.input
    x = torch.rand([task.batch, *shape])
    if image:
        x = x.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, task.classes, [task.batch])
    loss_of = nn.CrossEntropyLoss()
    for precision in task.precisions:
        for compiled in (False, True):
            model = Model(task).train()
            if image:
                model = model.to(memory_format=torch.channels_last)
            optimizer = optimizer_of(model, task.optimizer)
            dtype = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(precision)

            def loss(x, labels):
                with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
                    scores = model(x)
                return loss_of(scores.float(), labels)

            run = torch.compile(loss) if compiled else loss

            def step():
                optimizer.zero_grad(set_to_none=True)
                run(x, labels).backward()
                optimizer.step()

            mode = f"torch {'compile' if compiled else 'eager'} {precision}"
            try:
                network.report(mode, network.measure(step, task.seconds))
            except Exception as error:  # a mode that this build cannot run
                print(f"{mode}: {str(error).splitlines()[0]}", file=__import__("sys").stderr)
                network.report(mode, None)


if __name__ == "__main__":
    main()
