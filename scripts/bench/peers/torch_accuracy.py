"""Trains a halfstep model on MNIST in PyTorch until the last fifth of the rows reaches an accuracy.

    torch_accuracy.py TASK MNIST_FOLDER ACCURACY
"""

import gzip
import pathlib
import sys

import network
import torch
from torch_model import Model, optimizer_of


def main():
    task = network.read_task()
    folder, goal = pathlib.Path(sys.argv[2]), float(sys.argv[3])
    torch.set_num_threads(task.threads)
    torch.manual_seed(1)

    def read(name, offset):
        data = gzip.decompress((folder / name).read_bytes())
        return torch.frombuffer(bytearray(data), dtype=torch.uint8, offset=offset)

    image = len(task.input) == 3
    rows = [1, *task.input[:2]] if image else task.input
    x = read("train-images-idx3-ubyte.gz", 16).reshape(-1, *rows).float() / 255
    y = read("train-labels-idx1-ubyte.gz", 8).long()
    first_held_out = len(x) * 4 // 5
    train_x, train_y = x[:first_held_out], y[:first_held_out]
    model = Model(task)
    optimizer = optimizer_of(model, task.optimizer)
    loss_of = torch.nn.CrossEntropyLoss()
    autocast = torch.autocast("cpu", dtype=torch.bfloat16, enabled="bfloat16" in task.precisions)
    for _ in range(20):
        model.train()
        for rows in torch.randperm(len(train_x)).split(task.batch):
            optimizer.zero_grad(set_to_none=True)
            with autocast:
                scores = model(train_x[rows])
            loss_of(scores.float(), train_y[rows]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad(), autocast:
            parts = zip(x[first_held_out:].split(4096), y[first_held_out:].split(4096))
            right = sum(int((model(a).argmax(1) == b).sum()) for a, b in parts)
        if right / (len(x) - first_held_out) >= goal:
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
