"""A halfstep model and its optimizer in PyTorch.

Keras's formulas and constants for layers and optimizers; channels last.
"""

import network
import torch
from torch import nn

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "gelu": nn.GELU}


class Same(nn.Module):
    """Keras's `same` padding in front of a window with strides."""

    def __init__(self, kernel, strides):
        super().__init__()
        self.kernel, self.strides = kernel, strides

    def forward(self, x):
        pads = []
        for size, k, s in zip(reversed(x.shape[2:]), reversed(self.kernel), reversed(self.strides)):
            total = max((-(-size // s) - 1) * s + k - size, 0)
            pads += [total // 2, total - total // 2]
        return nn.functional.pad(x, pads)


class Reshape(nn.Module):
    """Another shape of each sample in Keras's order, channels last: a view of that memory."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape

    def forward(self, x):
        return (x.permute(0, 2, 3, 1) if x.dim() == 4 else x).reshape(x.shape[0], *self.shape)


class Positions(nn.Module):
    """A learned vector per step, for each sample."""

    def __init__(self, steps, width):
        super().__init__()
        self.vectors = nn.Parameter(torch.empty(steps, width).uniform_(-0.05, 0.05))

    def forward(self, x):
        return self.vectors.expand(x.shape[0], -1, -1)


class Attention(nn.Module):
    """Self-attention, one matmul for query, key and value, and PyTorch's fused attention."""

    def __init__(self, fields, width):
        super().__init__()
        self.heads, self.depth = fields["num_heads"], fields["key_dim"]
        self.causal = fields.get("use_causal_mask", False)
        inner = self.heads * self.depth
        self.operands, self.result = nn.Linear(width, 3 * inner), nn.Linear(inner, width)

    def forward(self, x):
        batch, steps, _ = x.shape
        heads = self.operands(x).view(batch, steps, 3 * self.heads, self.depth)
        query, key, value = heads.transpose(1, 2).chunk(3, 1)
        attended = nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=self.causal
        )
        return self.result(attended.transpose(1, 2).reshape(batch, steps, -1))


class MeanOfSteps(nn.Module):
    def forward(self, x):
        return x.mean(1)


class LastState(nn.Module):
    """The last state of an LSTM."""

    def __init__(self, channels, units):
        super().__init__()
        self.lstm = nn.LSTM(channels, units, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0][:, -1]


class CenterCrop(nn.Module):
    """The middle of every image, where halfstep takes a random part of each: less work."""

    def __init__(self, height, width):
        super().__init__()
        self.size = height, width

    def forward(self, x):
        top, left = ((have - want) // 2 for have, want in zip(x.shape[2:], self.size))
        return x[:, :, top : top + self.size[0], left : left + self.size[1]]


def conv(fields, channels):
    kernel, strides = network.pair(fields["kernel_size"]), network.pair(fields.get("strides"))
    bias = fields.get("use_bias", True)
    same = fields.get("padding", "valid") == "same"
    if same and strides == (1, 1):
        return nn.Conv2d(channels, fields["filters"], kernel, padding="same", bias=bias)
    plain = nn.Conv2d(channels, fields["filters"], kernel, strides, bias=bias)
    return nn.Sequential(Same(kernel, strides), plain) if same else plain


def module(layer, shape):
    """The module of a layer whose input has this shape (without the batch)."""
    fields, kind = layer.fields, layer.type
    if kind == "dense":
        made = nn.Linear(shape[-1], fields["units"], bias=fields.get("use_bias", True))
    elif kind == "conv2d":
        made = conv(fields, shape[0])
    elif kind == "batch_normalization":
        made = (nn.BatchNorm2d if len(shape) == 3 else nn.BatchNorm1d)(
            shape[0], eps=1e-3, momentum=0.01
        )
    elif kind == "max_pooling2d":
        size = network.pair(fields.get("pool_size"), 2)
        made = nn.MaxPool2d(size, network.pair(fields.get("strides"), list(size)))
    elif kind == "global_average_pooling2d":
        made = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    elif kind == "layer_normalization":
        made = nn.LayerNorm(shape[-1], eps=fields.get("epsilon", 1e-3))
    elif kind == "embedding":
        made = nn.Embedding(fields["input_dim"], fields["output_dim"])
    elif kind == "position_embedding":
        made = Positions(fields["sequence_length"], shape[-1])
    elif kind == "multi_head_attention":
        made = Attention(fields, shape[-1])
    elif kind == "global_average_pooling1d":
        made = MeanOfSteps()
    elif kind == "lstm":
        made = LastState(shape[-1], fields["units"])
    elif kind == "zero_padding2d":
        made = nn.ZeroPad2d(fields["padding"])
    elif kind == "random_crop":
        made = CenterCrop(fields["height"], fields["width"])
    elif kind == "random_flip":
        made = nn.Identity()  # halfstep mirrors half of the images: less work
    elif kind == "dropout":
        made = nn.Dropout(fields["rate"])
    elif kind == "flatten":
        made = Reshape([-1])
    elif kind == "reshape":
        made = Reshape(fields["target_shape"])
    elif kind in ACTIVATIONS:
        made = ACTIVATIONS[kind]()
    else:
        raise ValueError(f"the script of PyTorch has no layer {kind}")
    activation = fields.get("activation")
    return nn.Sequential(made, ACTIVATIONS[activation]()) if activation else made


def part(layer):
    """The name of a layer's module; the layers of a block have dots in theirs."""
    return layer.name.replace(".", "_")


class Model(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.layers = task.layers
        self.parts = nn.ModuleDict()
        image = task.input[-1:] + task.input[:-1] if len(task.input) == 3 else task.input
        tokens = any(layer.type == "embedding" for layer in self.layers)
        values = {"x": torch.zeros([2, *image], dtype=torch.int64 if tokens else None)}
        for layer in self.layers:
            inputs = [values[name] for name in layer.inputs]
            if layer.type != "add":
                self.parts[part(layer)] = module(layer, inputs[0].shape[1:])
            with torch.no_grad():
                values[layer.name] = self.one(layer, inputs)

    def one(self, layer, inputs):
        return inputs[0] + inputs[1] if layer.type == "add" else self.parts[part(layer)](inputs[0])

    def forward(self, x):
        values = {"x": x}
        for layer in self.layers:
            values[layer.name] = self.one(layer, [values[name] for name in layer.inputs])
        return values[self.layers[-1].name]


def optimizer_of(model, fields, **more):
    """The optimizer of a config; `more` goes to PyTorch's."""
    rate = fields.get("learning_rate", 1e-3)
    parameters = list(model.parameters())
    kind = fields["type"]
    if kind == "rmsprop":
        return torch.optim.RMSprop(parameters, rate, alpha=0.9, eps=1e-7, **more)
    if kind == "adam":
        return torch.optim.Adam(parameters, rate, eps=1e-7, fused=True, **more)
    if kind == "adamw":
        decay = fields.get("weight_decay", 0.004)
        return torch.optim.AdamW(
            parameters, rate, eps=1e-7, weight_decay=decay, fused=True, **more
        )
    return torch.optim.SGD(
        parameters,
        rate,
        momentum=fields.get("momentum", 0),
        nesterov=fields.get("nesterov", False),
        fused=True,
    )
